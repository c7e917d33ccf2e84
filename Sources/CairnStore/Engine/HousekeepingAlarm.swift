internal import Synchronization

/// How any part of a store asks for a pass of housekeeping. The housekeeper comes once, however often it is asked.
final class HousekeepingAlarm: Sendable {
  /// What the housekeeper does.
  struct Answers: Sendable {
    /// Runs a pass.
    var pass: @Sendable () -> Void
    /// Has passes run by time from now on.
    var beginTiming: @Sendable () -> Void
  }

  /// What failed, on a full disk say, is not asked for again with every write.
  static let pauseAfterFailure = Duration.seconds(1)

  private let queue: any BackgroundQueue
  private let answers = Lock<Answers?>(nil)
  /// Whether a pass is queued.
  private let isQueued = Atomic(false)
  /// Whether a pass has failed a moment ago: what failed, on a full disk say, is not tried again with every write,
  /// nor because the pass itself has asked for another.
  private let resting = Atomic(false)
  /// Whether passes also run by time.
  private let isTimed = Atomic(false)

  init(_ queue: any BackgroundQueue) { self.queue = queue }

  /// To be called before anybody rings: a ring that nobody answers leaves a pass queued for ever.
  func answer(with answers: Answers) { self.answers.withLock { $0 = answers } }

  // MARK: Passes

  /// Has a pass run soon.
  func ring() {
    if isResting { return }
    guard !isQueued.exchange(true, ordering: .relaxed) else { return }
    queue.run { [self] in answers.withLock { $0 }?.pass() }
  }

  /// To be called where a pass begins: from here on another may be asked for.
  func beginPass() { isQueued.store(false, ordering: .relaxed) }

  /// Runs `body` while no pass begins but one that was asked for before.
  func holdingBack<Value>(
    _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    let isHeldBack = !isQueued.exchange(true, ordering: .relaxed)
    defer { if isHeldBack { isQueued.store(false, ordering: .relaxed) } }
    return try body()
  }

  var isResting: Bool { resting.load(ordering: .relaxed) }

  /// Lets a pass be asked for again only after a while.
  func rest() {
    resting.store(true, ordering: .relaxed)
    // The files of a store that was closed are not held until then.
    queue.run(after: Self.pauseAfterFailure) { [self] in
      resting.store(false, ordering: .relaxed)
    }
  }

  // MARK: Time

  /// Has passes run at every interval from now on. To be called with each write: time makes entries
  /// expire, and small removals may leave much dead space before a segment is full.
  @inline(__always)
  func startTiming() {
    if !isTimed.load(ordering: .relaxed) { beginTiming() }
  }

  @inline(never)
  private func beginTiming() {
    if isTimed.exchange(true, ordering: .relaxed) { return }
    answers.withLock { $0 }?.beginTiming()
  }

  /// The next write starts it again.
  func stopTiming() { isTimed.store(false, ordering: .relaxed) }
}
