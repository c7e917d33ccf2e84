/// Waits for the due times of the delayed jobs in all queues of a process. One thread is enough,
/// whatever the number of stores and caches.
///
/// The thread exists only while a job waits. It runs a job itself only if the job's queue cannot
/// start a thread.
package final class SharedTimer: Sendable {
  /// The process-wide timer.
  package static let shared = SharedTimer()

  private let timers: PerProcess<ProcessTimer>

  package init(threads: ThreadStarter = .system) {
    timers = PerProcess { ProcessTimer(threads: threads) }
  }

  /// Calls `fire` after at least this long.
  ///
  /// - Parameters:
  ///   - owner: identifies the entry for `removeAll`.
  ///   - isKept: whether to keep the entry until the next call if no thread can be started now.
  /// - Returns: whether a thread is waiting for the entry.
  @discardableResult
  package func add(
    after delay: Duration, owner: ObjectIdentifier, isKept: Bool,
    _ fire: @escaping @Sendable () -> Void
  ) -> Bool {
    timers.object.add(after: delay, owner: owner, isKept: isKept, fire)
  }

  /// Removes the entries of an owner.
  func removeAll(of owner: ObjectIdentifier) { timers.object.removeAll(of: owner) }
}

/// The timer of one process.
private final class ProcessTimer: Sendable {
  private struct Entry {
    var due: ContinuousClock.Instant
    var owner: ObjectIdentifier
    var fire: @Sendable () -> Void
  }

  private struct State: ~Copyable {
    var entries: [Entry] = []
    var hasThread = false
  }

  private let state = Lock(State(), waits: true)
  private let threads: ThreadStarter

  init(threads: ThreadStarter) { self.threads = threads }

  func add(
    after delay: Duration, owner: ObjectIdentifier, isKept: Bool,
    _ fire: @escaping @Sendable () -> Void
  ) -> Bool {
    // Adding the longest durations to a time would overflow.
    let due = ContinuousClock.now.advanced(by: min(delay, .seconds(1 << 32)))
    let entry = Entry(due: due, owner: owner, fire: fire)
    let (isAdded, isFirst) = state.withLock { state in
      let isFirst = state.entries.allSatisfy { due < $0.due }
      // Under the lock, so that no other caller relies on a thread that does not start.
      if !state.hasThread { state.hasThread = threads.start { self.run() } }
      if state.hasThread || isKept { state.entries.append(entry) }
      return (state.hasThread, isFirst)
    }
    if isAdded && isFirst { state.wakeAll() }
    return isAdded
  }

  func removeAll(of owner: ObjectIdentifier) {
    let removed = state.withLock { state -> [Entry] in
      let removed = state.entries.filter { $0.owner == owner }
      if !removed.isEmpty { state.entries.removeAll { $0.owner == owner } }
      return removed
    }
    // The entries are released outside the lock, because this frees what the jobs captured.
    if removed.isEmpty { return }
    state.wakeAll()
  }

  private func run() {
    while let fire = next() { fire() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.waitUntil(step: { state -> Lock<State>.Step<(@Sendable () -> Void)?> in
      guard
        let first = state.entries.indices.min(by: { state.entries[$0].due < state.entries[$1].due })
      else {
        state.hasThread = false
        return .done(nil)
      }
      let now = ContinuousClock.now
      if state.entries[first].due <= now { return .done(state.entries.remove(at: first).fire) }
      // One millisecond more, because the wait is truncated to whole milliseconds.
      return .wait(now.duration(to: state.entries[first].due) + .milliseconds(1))
    })
  }
}
