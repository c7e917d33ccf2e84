internal import Synchronization

/// Makes writers wait if they make bytes dead faster than compaction reclaims them.
/// `SpaceAllowance`, under the log's lock, decides how many bytes are too many.
final class BackPressure: Sendable {
  /// How long writers sleep at a time while they wait for compaction.
  private static let longestSleep = Duration.milliseconds(10)
  /// After this many sleeps (ten seconds), a writer assumes that compaction is stuck.
  private static let sleepLimit = 1000

  private let session: Session
  private let log: LogWriter
  /// The number of writes that waited, and the milliseconds they waited in total.
  let writeCount = Atomic(0)
  let delay = Atomic(Int64(0))

  init(_ log: LogWriter) {
    session = log.session
    self.log = log
  }

  /// Delays a writer that has made `byteCount` bytes dead, because `SpaceAllowance.spend` requested
  /// it. The caller must hold no lock.
  @inline(never)
  func waitForCompaction(afterMakingDead byteCount: Int) {
    session.wakeHousekeeping()
    var rest = log.withLock { $0.allowance.wait(afterSpending: byteCount) }
    var slept = Duration.zero
    var count = 0
    while !session.isClosed {
      let (isDue, isNews, isScarce) = log.withLock {
        $0.failure == nil ? $0.allowance.look() : (false, false, false)
      }
      if isNews {
        session.tell(
          .warning, .writing,
          "overwriting waits for compaction: far more is dead than spaceBound or diskByteLimit allows"
        )
      }
      if !isDue, !isScarce || rest < .milliseconds(1) { break }
      if count == Self.sleepLimit {
        liftAllowance()
        break
      }
      // Housekeeping that rests after a failure ignores the request.
      if isDue { session.wakeHousekeeping() }
      let sleep = isDue ? Self.longestSleep : min(rest, Self.longestSleep)
      session.environment.pause(sleep)
      slept += sleep
      rest -= sleep
      if isDue { count += 1 }
    }
    noteDelay(slept)
  }

  /// Waits until compaction has reclaimed the debt of large writes. The caller must hold no lock
  /// that compaction takes.
  func waitForDebt() {
    var last = Int.max
    var slept = Duration.zero
    // The number of sleeps since part of the debt was last paid.
    var count = 0
    while !session.isClosed {
      let debt = log.withLock { $0.failure == nil ? $0.allowance.debt : 0 }
      if debt == 0 { break }
      if debt < last { (last, count) = (debt, 0) }
      guard count < Self.sleepLimit else {
        liftAllowance()
        break
      }
      session.wakeHousekeeping()
      session.environment.pause(Self.longestSleep)
      slept += Self.longestSleep
      count += 1
    }
    noteDelay(slept)
  }

  private func noteDelay(_ slept: Duration) {
    if slept == .zero { return }
    writeCount.wrappingAdd(1, ordering: .relaxed)
    delay.wrappingAdd(slept.milliseconds, ordering: .relaxed)
  }

  /// Counts a write that at first found no room, and the time that it took to make room.
  func noteWait(_ time: Duration, isFirst: Bool) {
    if isFirst { writeCount.wrappingAdd(1, ordering: .relaxed) }
    delay.wrappingAdd(time.milliseconds, ordering: .relaxed)
  }

  /// Lets writers continue because compaction reclaims nothing.
  func liftAllowance() {
    let isNew = log.withLock { appender in
      defer { appender.allowance.lift() }
      return !appender.allowance.isLifted
    }
    if isNew {
      session.tell(
        .warning, .writing,
        "overwriting no longer waits for compaction, because it reclaims nothing")
    }
  }
}
