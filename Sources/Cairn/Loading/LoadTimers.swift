internal import CairnStore

/// The time limits of loads and waits, measured by the cache's clock.
///
/// A background job checks the limits. Another job is scheduled only for an earlier limit.
final class LoadTimers: Sendable {
  fileprivate struct Timer {
    let end: Int64
    let body: @Sendable () -> Void
  }

  fileprivate struct State {
    var timers: [UInt64: Timer] = [:]
    var lastID: UInt64 = 0
    /// When the scheduled jobs will run.
    var looks: [Int64] = []
  }

  private let clock: StoreClock
  private let background: any BackgroundQueue
  private let state = Lock(State())

  init(clock: StoreClock, background: any BackgroundQueue) {
    self.clock = clock
    self.background = background
  }

  /// The time in milliseconds, by the monotonic clock if one exists. Never goes back.
  func now() -> Int64 {
    clock.elapsed()?.milliseconds ?? clock.now().millisecondsSinceEpoch
  }

  /// Calls `body`, with no lock held, once this much time has passed. The body runs none of the
  /// callers' code, because other limits would wait for it.
  func add(after limit: Duration, _ body: @escaping @Sendable () -> Void) -> UInt64 {
    let now = now()
    let end = now.adding(clamped: max(0, limit.milliseconds))
    let (id, isFirst) = state.withLock { state in
      state.lastID += 1
      state.timers[state.lastID] = Timer(end: end, body: body)
      return (state.lastID, state.asksForLook(at: end))
    }
    if isFirst { look(at: end, now: now) }
    return id
  }

  func remove(_ id: UInt64) {
    let timer = state.withLock { $0.timers.removeValue(forKey: id) }
    withExtendedLifetime(timer) {}
  }

  private func look(at time: Int64, now: Int64) {
    background.run(after: .milliseconds(max(1, time.subtracting(clamped: now)))) { [weak self] in
      self?.look(for: time)
    }
  }

  private func look(for time: Int64) {
    let now = now()
    let (due, next) = state.withLock { state -> ([Timer], Int64?) in
      if let index = state.looks.firstIndex(of: time) { state.looks.remove(at: index) }
      let due = state.timers.filter { $0.value.end <= now }
      for id in due.keys { state.timers[id] = nil }
      let next = state.timers.values.lazy.map(\.end).min()
      return (Array(due.values), next.flatMap { state.asksForLook(at: $0) ? $0 : nil })
    }
    if let next { look(at: next, now: now) }
    for timer in due { timer.body() }
  }
}

extension LoadTimers.State {
  /// Whether to schedule a job for this time, because no scheduled job runs by then. Records the
  /// new job.
  fileprivate mutating func asksForLook(at time: Int64) -> Bool {
    if looks.contains(where: { $0 <= time }) { return false }
    looks.append(time)
    return true
  }
}
