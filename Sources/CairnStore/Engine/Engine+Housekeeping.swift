internal import Synchronization

/// What a store does for itself, in one loop on a thread of its own, so that it can go on for years.
///
/// A pass does each chore that is due once, the most urgent first: segments that were left are
/// sealed, the files that a removal of all has left are removed, an overdue checkpoint is made, the next removal of
/// all is prepared, one round of compaction is run, what has expired is removed, a step is
/// taken towards the floor of free space, and the log is scrubbed a little further. Each chore is bounded, so none starves
/// another, and a kill loses no more than one of them. While a chore has more to do, the next pass
/// follows at once; the loop runs by what the log needs, not by what this session has written.
extension Engine {
  /// Has a pass run soon.
  func wakeHousekeeping() {
    if isReadOnly || isClosed || housekeeping.isResting.load(ordering: .relaxed) { return }
    guard !housekeeping.isQueued.exchange(true, ordering: .relaxed) else { return }
    maintenanceQueue.run { [self] in
      if isClosed || hasVanished { return }
      housekeeping.isQueued.store(false, ordering: .relaxed)
      // Queued by the pass that has failed.
      if housekeeping.isResting.load(ordering: .relaxed) { return }
      noteClock()
      if lookForPlace() { return }
      let isTimeUp = housekeeping.isTimeUp.exchange(false, ordering: .relaxed)
      let outcome = doChores(byTime: isTimeUp && configuration.maintenanceInterval != nil) {
        configuration.log?("\($0): \($1)")
      }
      housekeeping.hasFailed.store(outcome.hasFailed, ordering: .relaxed)
      if outcome.hasFailed { return restHousekeeping() }
      if outcome.hasMore { wakeHousekeeping() }
    }
  }

  /// Has the session's first pass run soon if the log needs one already: a session that only reads
  /// gives back what those before it left.
  func wakeHousekeepingIfNeeded() {
    if isReadOnly || configuration.maintenanceInterval == nil { return }
    let needsTime = index.expirableCount > 0 || configuration.freeDiskSpaceFloor != nil
    if needsTime { startTiming() }
    if needsTime || needsCheckpoint || needsCompaction || removesWithoutSync && index.count > 0 {
      wakeHousekeeping()
    }
  }

  /// After a failure, lets a pass be asked for again only after a while.
  private func restHousekeeping() {
    housekeeping.isResting.store(true, ordering: .relaxed)
    // The files of a store that was closed are not held until then.
    maintenanceQueue.run(after: Self.pauseAfterFailure) { [housekeeping] in
      housekeeping.isResting.store(false, ordering: .relaxed)
    }
  }

  /// Has passes run at every interval from now on. To be called with each write: time makes entries
  /// expire, and small removals may leave much dead space before a segment is full.
  @inline(__always)
  func startTiming() {
    if !housekeeping.isTimed.load(ordering: .relaxed) { beginTiming() }
  }

  @inline(never)
  private func beginTiming() {
    guard !isReadOnly, !housekeeping.isTimed.exchange(true, ordering: .relaxed) else { return }
    // Without passes by time there is one for what the sessions before have left.
    guard let interval = configuration.maintenanceInterval else { return wakeHousekeeping() }
    handle.hold(self)
    scheduleTick(after: interval, sequence: lastSequence)
  }

  private func scheduleTick(after interval: Duration, sequence: SequenceNumber) {
    maintenanceQueue.run(after: interval) { [handle] in
      guard let engine = handle.engine, !engine.isClosed, !engine.hasVanished else { return }
      engine.housekeeping.isTimeUp.store(true, ordering: .relaxed)
      engine.wakeHousekeeping()
      let last = engine.lastSequence
      // A store that rests needs no timer; its next write starts one.
      guard
        last != sequence || engine.index.expirableCount > 0
          || engine.configuration.freeDiskSpaceFloor != nil
          || engine.housekeeping.hasFailed.load(ordering: .relaxed)
      else { return engine.housekeeping.isTimed.store(false, ordering: .relaxed) }
      engine.scheduleTick(after: interval, sequence: last)
    }
  }

  /// Does all that is due, until nothing is.
  ///
  /// - Throws: the first error, after all was tried.
  package func maintain() throws(StoreError) {
    try checkWritable()
    noteClock()
    if lookForPlace() { throw .vanished(path: path) }
    var failure: StoreError?
    var outcome = ChoresOutcome(hasMore: true)
    while outcome.hasMore, failure == nil {
      outcome = doChores(byTime: true) { _, error in failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  /// Logs that the clock was set while the store was open, once for each time that a pass finds it.
  private func noteClock() {
    let offset = clock.offset.milliseconds
    let told = backgroundFlags.toldClockOffset.exchange(offset, ordering: .relaxed)
    guard abs(offset.subtractingReportingOverflow(told).partialValue) >= 1000 else {
      return backgroundFlags.toldClockOffset.store(told, ordering: .relaxed)
    }
    let side = offset < 0 ? "behind" : "ahead of"
    tell(
      "the clock was set: it is \(offset.magnitude / 1000) s \(side) the time at the open and what has passed since"
    )
  }

  // MARK: Chores

  /// What came of a pass.
  private struct ChoresOutcome {
    /// Whether a chore has more to do.
    var hasMore = false
    var hasFailed = false
  }

  /// Does each chore that is due, once.
  ///
  /// - Parameters:
  ///   - byTime: whether what has expired is looked for.
  ///   - onFailure: called with each chore that failed; the others are done all the same.
  private func doChores(
    byTime: Bool, onFailure: (_ chore: String, StoreError) -> Void
  ) -> ChoresOutcome {
    var outcome = ChoresOutcome()
    func attempt(_ name: String, _ chore: () throws(StoreError) -> Bool) {
      if isClosed { return }
      do throws(StoreError) {
        if try chore() { outcome.hasMore = true }
      } catch {
        if isClosed { return }
        outcome.hasFailed = true
        onFailure(name, error)
      }
    }
    attempt("sealing a segment") { () throws(StoreError) in
      try sealRolledSegments()
      return false
    }
    attempt("removing files") { () throws(StoreError) in
      try removeLeftFiles()
      return false
    }
    attempt("a checkpoint") { () throws(StoreError) in
      try checkpointIfNeeded()
      return false
    }
    attempt("preparing a removal of all") { () throws(StoreError) in
      try prepareRemovalOfAll()
      return false
    }
    attempt("compacting") { () throws(StoreError) in try compactIfNeeded() }
    if byTime, index.expirableCount > 0 {
      attempt("removing what has expired") { () throws(StoreError) in
        _ = try removeExpired(durability: .process)
        return false
      }
    }
    if let floor = configuration.freeDiskSpaceFloor,
      byTime || configuration.maintenanceInterval != nil
    {
      attempt("freeDiskSpaceFloor") { () throws(StoreError) in try approach(floor) }
    }
    attempt("scrubbing") { () throws(StoreError) in
      try scrubIfDue()
      return false
    }
    return outcome
  }

  /// Takes one step towards the floor of free space, if there is less.
  private func approach(_ floor: Int) throws(StoreError) -> Bool {
    let free = try directory.freeByteCount()
    if free >= floor, !housekeeping.isWinningSpace.load(ordering: .relaxed) { return false }
    // As much more than the floor as the log allocates ahead. Not more: the less is dead, the more has to be
    // copied for each byte that is given back.
    let more = min(max(floor / 64, 2 * Appender.firstAllocation), Appender.largestGrowth)
    let (target, isTooLarge) = floor.addingReportingOverflow(more)
    var removal = try beginRemoval(.evicted(.freeDiskSpace), sparesRead: true)
    let hasMore = try makeFreeSpace(isTooLarge ? floor : target, in: &removal)
    housekeeping.isWinningSpace.store(hasMore, ordering: .relaxed)
    let summary = try finish(removal, .process)
    housekeeping.evictedCount.wrappingAdd(summary.count, ordering: .relaxed)
    if hasMore { return true }
    let count = housekeeping.evictedCount.exchange(0, ordering: .relaxed)
    if count > 0, try missingByteCount(floor) > 0 {
      tell("freeDiskSpaceFloor: \(count) entries went, and the disk has less free all the same")
    }
    return false
  }
}
