internal import Synchronization

/// What the lock of maintenance guards.
struct MaintenanceState: ~Copyable {
  var compaction = CompactionState()
}

/// What a store does for itself, on a thread of its own, so that it can go on for years: what has
/// expired is removed, the free space that the configuration asks for is kept. All of it can also be
/// asked for by hand.
extension Engine {
  /// One round of all that may be due.
  ///
  /// - Throws: the first error, after all was tried.
  package func maintain() throws(StoreError) {
    try checkWritable()
    var failure: StoreError?
    func attempt(_ job: () throws(StoreError) -> Void) {
      do throws(StoreError) { try job() } catch { failure = failure ?? error }
    }
    if index.expirableCount > 0 {
      attempt { () throws(StoreError) in _ = try removeExpired(durability: .process) }
    }
    if let floor = configuration.freeDiskSpaceFloor {
      attempt { () throws(StoreError) in
        if try directory.freeByteCount() < floor {
          // And some more, so that not every round has to: the log allocates ahead.
          let more = max(floor / 64, 2 * Appender.firstAllocation)
          let (target, isTooLarge) = floor.addingReportingOverflow(more)
          let summary = try trim(
            toFreeDiskSpace: isTooLarge ? floor : target, durability: .process)
          if summary.count > 0, try missingByteCount(floor) > 0 {
            tell(
              "freeDiskSpaceFloor: \(summary.count) entries went, and the disk has less free all the same"
            )
          }
        }
      }
    }
    attempt { () throws(StoreError) in try compactIfNeeded() }
    attempt { () throws(StoreError) in try checkpointIfNeeded() }
    if let failure { throw failure }
  }

  /// Has a session's first round run soon, unless it was asked for before: after the first write, and
  /// where that is part of a trim or a compaction by hand, after all of it.
  ///
  /// It is for what the processes before have left. Those that end, or are killed, before their first
  /// segment is full and the first interval is over would leave everything to the next, for ever. Where
  /// rounds are not wanted, space is given back nevertheless, and a checkpoint made.
  package func requestFirstRound() {
    guard backgroundFlags.firstRoundDue.load(ordering: .relaxed),
      backgroundFlags.firstRoundDue.exchange(false, ordering: .relaxed)
    else { return }
    let hasSegments = appender.withLock { !$0.sealed.isEmpty }
    guard hasSegments || index.expirableCount > 0 || configuration.freeDiskSpaceFloor != nil
    else { return }
    guard configuration.maintenanceInterval != nil else {
      requestCompaction()
      return requestCheckpoint()
    }
    handle.hold(self)
    maintenanceQueue.run { [handle] in
      guard let engine = handle.engine else { return }
      engine.attempt("maintenance") { () throws(StoreError) in try engine.maintain() }
    }
  }

  /// Has rounds of maintenance run from now on, where time alone can make something due. To be called
  /// whenever that may have come to be so.
  @inline(__always)
  func startMaintenance() {
    if !backgroundFlags.maintaining.load(ordering: .relaxed) { beginMaintenance() }
  }

  @inline(never)
  private func beginMaintenance() {
    guard let interval = configuration.maintenanceInterval, !isReadOnly,
      !backgroundFlags.maintaining.exchange(true, ordering: .relaxed)
    else { return }
    handle.hold(self)
    scheduleMaintenance(after: interval)
  }

  private func scheduleMaintenance(after interval: Duration) {
    maintenanceQueue.run(after: interval) { [handle] in
      guard let engine = handle.engine, !engine.isClosed else { return }
      engine.attempt("maintenance") { () throws(StoreError) in try engine.maintain() }
      engine.scheduleMaintenance(after: interval)
    }
  }
}
