internal import Synchronization

/// Lets any part of a store request a pass of housekeeping. However many requests arrive, only one
/// pass runs at a time.
final class HousekeepingAlarm: Sendable {
  /// How the housekeeper responds.
  struct Answers: Sendable {
    /// Runs a pass.
    var pass: @Sendable () -> Void
    /// Starts timed passes.
    var beginTiming: @Sendable () -> Void
  }

  /// How long requests are ignored after a failed chore, for example on a full disk.
  static let pauseAfterFailure = Duration.seconds(1)

  private let queue: any BackgroundQueue
  private let answers = Lock<Answers?>(nil)
  /// Whether a pass is queued.
  private let isQueued = Atomic(false)
  /// Whether a pass has failed recently. During the pause, neither writes nor the pass itself can
  /// trigger a retry.
  private let resting = Atomic(false)
  /// Whether passes also run at intervals.
  private let isTimed = Atomic(false)
  /// How many writes do not try to start timed passes: each attempt costs a system call.
  private let skippedCount = Atomic(0)
  private static let refusalCount = 256

  init(_ queue: any BackgroundQueue) { self.queue = queue }

  /// Call before any request: an unanswered request leaves a pass queued forever.
  func answer(with answers: Answers) { self.answers.withLock { $0 = answers } }

  // MARK: Passes

  /// Schedules a pass soon. Returns `false` if it ignores the request.
  func ring() -> Bool {
    if isResting { return false }
    // SAFETY: as in `Committer`: a pass that begins after this sees what this thread has changed.
    guard !isQueued.exchange(true, ordering: .acquiringAndReleasing) else { return true }
    let pass: @Sendable () -> Void = { [self] in answers.withLock { $0 }?.pass() }
    // If no thread can be started, the timer's thread may run the pass. Without that one either,
    // the next request tries again.
    if queue.runIfPossible(pass) || queue.runIfPossible(after: .milliseconds(100), pass) {
      return true
    }
    beginPass()
    return false
  }

  /// Call when a pass begins. From here on, another may be requested.
  func beginPass() { _ = isQueued.exchange(false, ordering: .acquiringAndReleasing) }

  /// Runs `body` while no pass begins, except one that was already requested.
  func holdingBack<Value>(
    _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    let isHeldBack = !isQueued.exchange(true, ordering: .relaxed)
    defer { if isHeldBack { isQueued.store(false, ordering: .relaxed) } }
    return try body()
  }

  var isResting: Bool { resting.load(ordering: .relaxed) }

  /// Ignores requests for a while.
  func rest() {
    resting.store(true, ordering: .relaxed)
    // Meanwhile, the job keeps no files of a closed store open.
    let isEnding = queue.runIfPossible(after: Self.pauseAfterFailure) { [self] in
      resting.store(false, ordering: .relaxed)
    }
    if !isEnding { resting.store(false, ordering: .relaxed) }
  }

  // MARK: Time

  /// From now on, also runs passes at intervals. Call at each write: entries expire over time, and
  /// small removals may leave much dead space before a segment is full.
  @inline(__always)
  func startTiming() {
    if !isTimed.load(ordering: .relaxed) { beginTiming() }
  }

  @inline(never)
  private func beginTiming() {
    if skippedCount.load(ordering: .relaxed) > 0 {
      skippedCount.wrappingSubtract(1, ordering: .relaxed)
      return
    }
    if isTimed.exchange(true, ordering: .relaxed) { return }
    answers.withLock { $0 }?.beginTiming()
  }

  /// Stops timed passes. The next write restarts them.
  func stopTiming() { isTimed.store(false, ordering: .relaxed) }

  /// Notes that no thread can be started for timed passes. One of the next writes tries again.
  func noteTimingRefused() {
    skippedCount.store(Self.refusalCount, ordering: .relaxed)
    stopTiming()
  }
}
