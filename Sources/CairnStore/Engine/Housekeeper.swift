internal import Synchronization

/// The store's background maintenance: one loop on its own thread.
///
/// A pass does each due chore once, the most urgent first. It seals rolled segments and runs one
/// round of compaction; on a slow disk, it first compacts, and seals only if that had nothing to do.
/// Then it removes the files left by large writes, makes an overdue checkpoint, removes expired
/// entries, takes a step towards the free-space floor, runs a round of the cache's
/// chore, and scrubs a little more of the log. Each chore is bounded, so none starves another, and a
/// kill loses at most one chore. While a chore has more to do, the next pass follows at once. The
/// state of the log drives the loop, not the writes of this session.
final class Housekeeper: Sendable {
  private let session: Session
  private let compactor: Compactor
  private let trimmer: Trimmer
  private let scrubber: Scrubber
  /// Whether the next pass also removes expired entries.
  private let isTimeUp = Atomic(true)
  /// Whether the previous pass failed.
  private let hasFailed = Atomic(false)
  /// The clock offset that was last logged, in milliseconds.
  private let toldClockOffset: Atomic<Int64>

  init(_ compactor: Compactor, _ trimmer: Trimmer, _ scrubber: Scrubber) {
    session = compactor.session
    self.compactor = compactor
    self.trimmer = trimmer
    self.scrubber = scrubber
    toldClockOffset = Atomic(session.clock.offset.milliseconds)
  }

  private var index: HashIndex { compactor.lookup.index }
  private var supply: SegmentSupply { compactor.supply }
  private var checkpointer: Checkpointer { compactor.checkpointer }

  /// Answers the alarm from now on, and requests a pass if the log already needs one.
  func start() {
    if session.isReadOnly { return }
    session.alarm.answer(
      with: HousekeepingAlarm.Answers(
        pass: { [weak self] in self?.runPass() },
        beginTiming: { [weak self] in self?.beginTiming() }))
    wakeIfNeeded()
    scrubber.start()
  }

  /// Runs the requested pass.
  private func runPass() {
    if session.isClosed || session.hasVanished { return }
    session.alarm.beginPass()
    // The failed pass queued this one.
    if session.alarm.isResting { return }
    noteClock()
    if session.lookForPlace() { return }
    let isTimeUp = isTimeUp.exchange(false, ordering: .relaxed)
    let outcome = doChores(byTime: isTimeUp && session.configuration.maintenanceInterval != nil) {
      session.log(session.isAtOwnLimit($1) ? .info : .error, .maintenance, "\($0): \($1)")
    }
    hasFailed.store(outcome.hasFailed, ordering: .relaxed)
    if outcome.hasFailed { return session.alarm.rest() }
    if outcome.hasMore { session.wakeHousekeeping() }
  }

  /// Schedules the session's first pass soon if the log already needs one, so that even a session
  /// that only reads cleans up after earlier ones.
  private func wakeIfNeeded() {
    if session.isReadOnly || session.configuration.maintenanceInterval == nil { return }
    let needsTime = index.expirableCount > 0 || session.configuration.freeDiskSpaceFloor != nil
    if needsTime { session.alarm.startTiming() }
    if needsTime || checkpointer.isNeeded || compactor.isNeeded { session.wakeHousekeeping() }
  }

  private func beginTiming() {
    // Without timed passes, run one now to clean up after earlier sessions.
    guard let interval = session.configuration.maintenanceInterval else {
      session.wakeHousekeeping()
      return
    }
    scheduleTick(after: interval, sequence: supply.log.lastSequence)
  }

  private func scheduleTick(after interval: Duration, sequence: SequenceNumber) {
    let isTimed = session.environment.maintenance.runIfPossible(after: interval) { [weak self] in
      guard let self, !session.isClosed, !session.hasVanished else { return }
      isTimeUp.store(true, ordering: .relaxed)
      session.wakeHousekeeping()
      let last = supply.log.lastSequence
      // An idle store needs no timer; its next write starts one.
      guard
        last != sequence || index.expirableCount > 0
          || session.configuration.freeDiskSpaceFloor != nil || hasFailed.load(ordering: .relaxed)
      else {
        session.alarm.stopTiming()
        // A write may have found the timer just before.
        if supply.log.lastSequence != last { session.alarm.startTiming() }
        return
      }
      scheduleTick(after: interval, sequence: last)
    }
    if !isTimed { session.alarm.noteTimingRefused() }
  }

  /// Runs chores until none has more to do.
  ///
  /// - Throws: the first error, after trying every chore.
  func maintain() throws(StoreError) {
    try session.checkWritable()
    noteClock()
    if session.lookForPlace() { throw .vanished(path: session.path) }
    var failure: StoreError?
    var outcome = ChoresOutcome(hasMore: true)
    while outcome.hasMore, failure == nil {
      outcome = doChores(byTime: true) { _, error in failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  /// Logs that the clock was set while the store was open. Each change is logged once.
  private func noteClock() {
    let offset = session.clock.offset.milliseconds
    let told = toldClockOffset.exchange(offset, ordering: .relaxed)
    guard offset.subtracting(clamped: told).magnitude >= 1000 else {
      return toldClockOffset.store(told, ordering: .relaxed)
    }
    let side = offset < 0 ? "behind" : "ahead of"
    session.tell(
      .info, .clock,
      "the clock was set: it is \(offset.magnitude / 1000) s \(side) the time at the open "
        + "plus the time elapsed since"
    )
  }

  // MARK: Chores

  /// The result of a pass.
  private struct ChoresOutcome {
    /// Whether a chore has more to do.
    var hasMore = false
    var hasFailed = false
  }

  /// Does each due chore once.
  ///
  /// - Parameters:
  ///   - byTime: whether to look for expired entries.
  ///   - onFailure: called for each failed chore. The other chores run anyway.
  private func doChores(
    byTime: Bool, onFailure: (_ chore: String, StoreError) -> Void
  ) -> ChoresOutcome {
    var outcome = ChoresOutcome()
    func attempt(_ name: String, _ chore: () throws(StoreError) -> Bool) {
      if session.isClosed { return }
      do throws(StoreError) {
        if try chore() { outcome.hasMore = true }
      } catch {
        if session.isClosed { return }
        if !session.isAtOwnLimit(error) { outcome.hasFailed = true }
        onFailure(name, error)
      }
    }
    let isDiskSlow = supply.log.isDiskSlow
    if !isDiskSlow {
      attempt("sealing a segment") { () throws(StoreError) in
        try supply.sealRolledSegments()
        return false
      }
    }
    attempt("compacting") { () throws(StoreError) in try compactor.compactIfNeeded() }
    // A round of compaction seals what was rolled before it, without further syncs. Without one, what
    // is sealed now may be due.
    if isDiskSlow, !outcome.hasMore {
      attempt("sealing a segment") { () throws(StoreError) in
        if try !supply.sealRolledSegments() { return false }
        return try compactor.compactIfNeeded()
      }
    }
    attempt("removing files") { () throws(StoreError) in
      try supply.catalog.removeLeftFiles()
      return false
    }
    attempt("a checkpoint") { () throws(StoreError) in
      try checkpointer.checkpointIfNeeded(byTime: byTime)
      return false
    }
    if byTime, index.expirableCount > 0 {
      attempt("removing expired entries") { () throws(StoreError) in
        _ = try trimmer.removeUnretained()
        return false
      }
    }
    if let floor = session.configuration.freeDiskSpaceFloor,
      byTime || session.configuration.maintenanceInterval != nil
    {
      attempt("freeDiskSpaceFloor") { () throws(StoreError) in try trimmer.approach(floor) }
    }
    if let chore = session.configuration.chore { attempt("removing tagged entries", chore) }
    attempt("scrubbing") { () throws(StoreError) in
      try scrubber.scrubIfDue()
      return false
    }
    return outcome
  }
}
