internal import Synchronization

extension Engine {
  /// Writers sleep for so long at a time while they wait for compaction.
  private static let longestSleep = Duration.milliseconds(10)
  /// After so many sleeps, ten seconds, a writer takes it that compaction is stuck.
  private static let sleepLimit = 1000

  /// Slows a writer that has made `byteCount` bytes dead, as `SpaceAllowance.spend` said. Under no lock.
  @inline(never)
  func waitForCompaction(afterMakingDead byteCount: Int) {
    wakeHousekeeping()
    var rest = appender.withLock { $0.allowance.wait(afterSpending: byteCount) }
    var slept = Duration.zero
    var count = 0
    while !isClosed {
      let (isDue, isFirst) = appender.withLock {
        $0.failure == nil ? $0.allowance.look() : (false, false)
      }
      if isFirst {
        tell("overwriting waits for compaction: half as much again is dead as spaceBound allows")
      }
      if !isDue, rest < .milliseconds(1) { break }
      if count == Self.sleepLimit {
        liftAllowance()
        break
      }
      let sleep = isDue ? Self.longestSleep : min(rest, Self.longestSleep)
      pause(sleep)
      slept += sleep
      rest -= sleep
      count += 1
    }
    noteDelay(slept)
  }

  /// Waits until compaction has given back what large writes lack. Under no lock that compaction takes.
  func waitForDebt() {
    var last = Int.max
    var slept = Duration.zero
    // Since the debt was paid in part.
    var count = 0
    while !isClosed {
      let debt = appender.withLock { $0.failure == nil ? $0.allowance.debt : 0 }
      if debt == 0 { break }
      if debt < last { (last, count) = (debt, 0) }
      guard count < Self.sleepLimit else {
        liftAllowance()
        break
      }
      wakeHousekeeping()
      pause(Self.longestSleep)
      slept += Self.longestSleep
      count += 1
    }
    noteDelay(slept)
  }

  private func noteDelay(_ slept: Duration) {
    if slept == .zero { return }
    housekeeping.delayedWriteCount.wrappingAdd(1, ordering: .relaxed)
    housekeeping.writeDelay.wrappingAdd(slept.milliseconds, ordering: .relaxed)
  }

  /// Sets what writers may make dead, after a look at the log.
  ///
  /// - Parameter gain: what a round has given back, and how long it took.
  func updateAllowance(
    _ planner: CompactionPlanner, allowed: Int, _ state: CompactionState,
    gain: (byteCount: Int, duration: Duration)? = nil
  ) {
    appender.withLock { appender in
      // Nothing gives back what is written to, nor what cannot be read.
      let reclaimable = planner.gain(of: {
        $0 != appender.active?.id && !state.unreadable.contains($0)
      })
      appender.allowance.update(reclaimable: reclaimable, allowed: allowed, gain: gain)
    }
  }

  /// Lets writers go on, since compaction gives nothing back.
  func liftAllowance() {
    let isNew = appender.withLock { appender in
      defer { appender.allowance.lift() }
      return !appender.allowance.isLifted
    }
    if isNew { tell("overwriting no longer waits for compaction: it gives nothing back") }
  }
}
