internal import Synchronization

/// Compaction: reclaims the space of dead records. It copies the live records of a segment into new
/// segments, which replace the old one in the log.
///
/// A round copies at most a few segments, replaces the manifest once, and moves the index entries.
/// A round that ends early leaves the log unchanged. Readers and writers wait only while it moves
/// entries, a few at a time.
///
/// 1. An input stays in the log until no index entry names a record in it, or until `removeAll`
///    takes it. Until then, the copied records exist in both the input and the copy, and no
///    snapshot is taken.
/// 2. If a record is not copied, its replacement is on disk before the record is removed.
/// 3. A tombstone is dropped only if no older put of its key can be left (`TombstoneRule`), or if a
///    newer live put now keeps such puts dead (`CompactionCopier`).
/// 4. The copies are on disk before the manifest that lists them, and the inputs' files are removed
///    once that manifest is on disk.
/// 5. Rounds run one at a time. None begins while a batch is being published.
///
/// The lock is taken before the locks of checkpoints, preparation, the catalog and the log.
final class Compactor: Sendable {
  let session: Session
  let lookup: Lookup
  let supply: SegmentSupply
  let checkpointer: Checkpointer
  let pressure: BackPressure
  /// Held throughout a round.
  let state = Lock(CompactionState())
  /// How many segments had been retired when a write on a full disk last waited for their space in
  /// vain.
  let retirementsInVain = Atomic(-1)
  /// Bytes of the segments that compaction has written.
  let writtenByteCount = Atomic(0)
  /// How a cache makes room for a write on a full disk.
  let lastResort = Lock<LastResort?>(nil)

  init(
    _ lookup: Lookup, _ supply: SegmentSupply, _ checkpointer: Checkpointer,
    _ pressure: BackPressure
  ) {
    session = lookup.session
    self.lookup = lookup
    self.supply = supply
    self.checkpointer = checkpointer
    self.pressure = pressure
  }

  var catalog: Catalog { supply.catalog }
  var log: LogWriter { supply.log }

  /// The maximum number of bytes that a round copies, unless one segment alone contains more.
  ///
  /// A kill discards a round, so a round must not grow with the store or with its backlog. A limit
  /// on disk space makes segments small, but each round waits for several syncs.
  var roundByteLimit: Int {
    let configuration = session.configuration
    return max(
      2 * configuration.segmentByteLimit, configuration.diskByteLimit == nil ? 0 : 8 << 20)
  }

  /// How much room a limit on disk space leaves: `.max` without one. If there is more than twice the
  /// largest round, the result may be too low, but not below that.
  private func limitedRoom() throws(StoreError) -> Int {
    try session.directory.limitedFreeByteCount(enough: 2 * roundByteLimit)
  }

  /// Runs one round if the segments take more than the space bound allows, if a whole segment is
  /// dead, or if small segments have accumulated.
  ///
  /// - Returns: whether more work may remain.
  func compactIfNeeded() throws(StoreError) -> Bool {
    // A batch's records count as dead until they are in the index. Its writer then wakes
    // housekeeping.
    if log.withLock({ $0.unpublished != nil }) { return false }
    return try state.withLock { (state) throws(StoreError) -> Bool in
      let room = try limitedRoom()
      let (planner, allocated, live) = plan(&state, room: room)
      let allowed = allowedGarbage(live: live)
      let excess = excess(garbage: allocated - live, allowed: allowed, room: room)
      updateAllowance(planner, allowed: allowed)
      let reclaimed = state.reclaimedByteCount
      defer {
        if state.reclaimedByteCount == reclaimed,
          log.withLock({ $0.allowance.excess > 0 && $0.rolled.isEmpty })
        {
          pressure.liftAllowance()
        }
      }
      // Well above the bound, do not pause, because writers may soon be slowed.
      return try runRound(
        of: planner, isOverBound: excess > 0, highestCost: CompactionPlanner.highestCost,
        goal: excess,
        pace: excess > allowed / 8 ? nil : CompactionPace(log), &state)
    }
  }

  /// Whether a round would run now.
  var isNeeded: Bool {
    state.withLock { state in
      let (planner, allocated, live) = plan(&state)
      let excess = excess(
        garbage: allocated - live, allowed: allowedGarbage(live: live),
        room: (try? limitedRoom()) ?? .max)
      return !planner.wholeDeadSegments().isEmpty
        || !planner.nextRound(isOverBound: excess > 0).isEmpty
    }
  }

  /// Runs one round that reclaims dead space, however much it must copy.
  ///
  /// - Returns: whether it reclaimed anything.
  func reclaimDeadSpace() throws(StoreError) -> Bool {
    return try state.withLock { (state) throws(StoreError) -> Bool in
      let planner = plan(&state, room: try limitedRoom()).planner
      if try runRound(
        of: planner, isOverBound: true, highestCost: .max, goal: roundByteLimit,
        pace: CompactionPace(log), &state)
      {
        return true
      }
      // The active segment's contents can be compacted once the segment is rolled.
      let least = 2 * Segment.slack
      guard planner.hasGainWhereWritten(atLeast: least, highestCost: .max) else { return false }
      do throws(StoreError) {
        try supply.leaveActiveSegment { $0.deadByteCount >= least }
        try supply.sealRolledSegments()
      } catch {
        guard case .noSpace = error else { throw error }
        return false
      }
      return true
    }
  }

  /// Runs the round that a planner proposes. On a full disk, uses the reserve, and reclaims up
  /// to `goal` bytes.
  private func runRound(
    of planner: CompactionPlanner, isOverBound: Bool, highestCost: Int, goal: Int,
    pace: CompactionPace?, _ state: inout CompactionState
  ) throws(StoreError) -> Bool {
    var report = CompactionReport()
    let dead = planner.wholeDeadSegments()
    if !dead.isEmpty {
      try run(Array(dead), pace: nil, &state, &report)
      return report.removedSegmentCount > 0
    }
    let inputs = planner.nextRound(
      isOverBound: isOverBound, highestCost: highestCost, isUrgent: pace == nil)
    if inputs.isEmpty { return false }
    do throws(StoreError) { try run(inputs, pace: pace, &state, &report) } catch {
      guard case .noSpace = error, isOverBound else { throw error }
      let gained = try compactInLittleRoom(
        goal: min(goal, roundByteLimit), highestCost: highestCost, &state, &report)
      if gained <= 0 { throw error }
      return true
    }
    return report.removedSegmentCount > 0
  }

  /// Compacts every segment with a dead byte.
  func compact() throws(StoreError) -> CompactionReport {
    try session.checkWritable()
    defer { session.wakeHousekeeping() }
    var report = CompactionReport()
    // The report must cover all work, so no pass may run at the same time.
    try session.alarm.holdingBack { () throws(StoreError) in
      do throws(StoreError) { try compactAll(&report) } catch {
        throw error.located(in: session.path)
      }
    }
    report.pinnedByteCount = lookup.table.total.pinnedByteCount
    return report
  }

  private func compactAll(_ report: inout CompactionReport) throws(StoreError) {
    report.byteCountBefore = log.allocatedByteCount
    // A manual compaction retries segments that were unreadable before. It forgets read errors,
    // which may have passed. That is safe: a segment without an entry here holds back all newer
    // tombstones.
    state.withLock { state in
      state.damaged = state.damaged.filter { !$0.value.hasReadErrors && !$0.value.holes.isEmpty }
      state.held = HeldTombstones()
      state.readError = nil
      for id in state.damaged.keys { state.damaged[id]?.rest = nil }
    }
    var isActiveLeft = true
    do throws(StoreError) { try supply.leaveActiveSegment { $0.deadByteCount > 0 } } catch {
      // On a full disk, the segment stays for now, and others may be removed.
      guard case .noSpace = error else { throw error }
      isActiveLeft = false
    }
    var isSealed = true
    do throws(StoreError) { try supply.sealRolledSegments() } catch {
      // Listing a new segment makes the manifest longer; removing wholly dead segments makes it
      // shorter.
      guard case .noSpace = error else { throw error }
      isSealed = false
    }
    var gainedInAll = 0
    while true {
      do throws(StoreError) {
        try compactInRounds(&report)
        if !isActiveLeft {
          isActiveLeft = true
          // Use the reserve to compact the active segment, if that reclaims something.
          let gained = try state.withLock { (state) throws(StoreError) in
            try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
          }
          gainedInAll += max(0, gained)
          if gained >= 4096 { continue }
        }
        if isSealed { break }
        isSealed = true
        try supply.sealRolledSegments()
      } catch {
        guard case .noSpace = error else { throw error }
        let gained = try state.withLock { (state) throws(StoreError) in
          try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
        }
        // If there is room again, rounds can handle segments that belong together. If nothing was
        // gained, the caller gets the error.
        gainedInAll += max(0, gained)
        if gainedInAll == 0 { throw error }
        if gained < 4096 { break }
      }
    }
    // After the last sync that a round waited for, a later sync may have failed. The steps after
    // such a failure do nothing and report nothing.
    try log.checkWritable()
    report.byteCountAfter = log.allocatedByteCount
    report.unreadableSegmentCount = try state.withLock { (state) throws(StoreError) in
      _ = plan(&state)
      // The other segments are compacted.
      if let error = state.readError { throw error }
      return state.damaged.count
    }
  }

  private func compactInRounds(_ report: inout CompactionReport) throws(StoreError) {
    func run(_ inputs: [SegmentID]) throws(StoreError) {
      try state.withLock { (state) throws(StoreError) in
        try self.run(inputs, pace: nil, &state, &report)
      }
    }
    let planner = try state.withLock { (state) throws(StoreError) in
      plan(&state, room: try limitedRoom()).planner
    }
    let dead = planner.wholeDeadSegments()
    if !dead.isEmpty { try run(Array(dead)) }
    for inputs in planner.allRounds() { try run(inputs.filter { !dead.contains($0) }) }
    try compactRemainders(&report)
  }

  /// Compacts the remainders of earlier rounds: tombstones that waited for a segment of a later
  /// round.
  private func compactRemainders(_ report: inout CompactionReport) throws(StoreError) {
    var passesLeft = log.withLock { $0.segments.count } + 1
    let next = log.withLock { $0.nextSequence }
    repeat {
      passesLeft -= 1
      let rounds = try state.withLock { (state) throws(StoreError) in
        plan(&state, room: try limitedRoom()).planner.remainingRounds()
      }
      if rounds.isEmpty { return }
      for inputs in rounds {
        try state.withLock { (state) throws(StoreError) in
          try run(inputs, pace: nil, &state, &report)
        }
      }
    } while passesLeft > 0 && log.withLock { $0.nextSequence } == next
  }

  // MARK: State

  /// Bytes that the segments of the log may take beyond the live bytes.
  ///
  /// Below two segments of dead bytes, compaction does nothing: the active segment cannot be
  /// compacted, and a new segment is written while the old ones still exist.
  func allowedGarbage(live: Int) -> Int {
    let configuration = session.configuration
    let share = Int(min(Double(live) * (configuration.spaceBound - 1), 1e18))
    return max(
      configuration.deadByteFloor ?? 2 * configuration.segmentByteLimit,
      min(share, configuration.logByteLimit - max(0, live)))
  }

  /// The number of dead bytes above which overwrites wait. It covers what writers make dead during a
  /// round, even if `allowed` is only a few segments. A limit on disk space leaves no room for more.
  func highestGarbage(allowed: Int) -> Int {
    if session.configuration.diskByteLimit != nil { return allowed }
    return allowed + max(allowed / 2, roundByteLimit)
  }

  /// How many dead bytes compaction should reclaim now.
  ///
  /// Compaction waits until the whole allowance is used, because records that die in the meantime
  /// need not be copied. It starts earlier if writers would otherwise wait. With a limit on disk
  /// space, they wait for room, and a round needs room too. On a slow disk, they wait for the end of
  /// a round.
  func excess(garbage: Int, allowed: Int, room: Int) -> Int {
    let growth = log.withLock { $0.allowance.roundGrowth }
    let isLimited = session.configuration.diskByteLimit != nil
    let latest = isLimited ? allowed - allowed / 4 : allowed
    let start = max(allowed / 2, min(latest, highestGarbage(allowed: allowed) - 2 * growth))
    let wanted = min((session.configuration.diskByteLimit ?? 0) / 32, 2 * roundByteLimit)
    return max(garbage - start, min(garbage, wanted - room))
  }

  /// - Parameter room: how much room there is on the disk. A round leaves a part of it to writers.
  func plan(
    _ state: inout CompactionState, room: Int = .max
  ) -> (planner: CompactionPlanner, allocated: Int, live: Int) {
    let sealed = catalog.sealedIDs
    let live = lookup.table.total.liveByteCount
    let now = session.clock.now()
    let damaged = state.damaged.mapValues { $0.isDue(at: now, lookup.index) }
    // Use the segments only under the lock: one held for longer would keep its space during
    // `removeAll`.
    let facts = log.withLock { appender in
      state.forgetAllBut(appender.segments)
      return appender.segments.map { segment in
        let isSealed = sealed.contains(segment.id)
        var facts = SegmentFacts(
          segment,
          // Locations in a copy are kept in 32 bits; no writer makes a segment that long.
          isCandidate: isSealed && damaged[segment.id] ?? true
            && segment.usage.end <= Int(UInt32.max) << 3, isSealed: isSealed)
        facts.isDamaged = damaged[segment.id] != nil
        facts.heldByteCount = state.held.byteCounts[segment.id] ?? 0
        return facts
      }
    }
    return (
      CompactionPlanner(
        facts, segmentByteCount: log.withLock { $0.segmentByteCount },
        budget: min(roundByteLimit, room / 4 * 3)),
      log.allocatedByteCount, live
    )
  }

  /// Sets how many bytes writers may make dead, based on the log.
  ///
  /// - Parameter gain: the bytes that a round has reclaimed, and its duration.
  func updateAllowance(
    _ planner: CompactionPlanner, allowed: Int,
    gain: (byteCount: Int, duration: Duration)? = nil
  ) {
    log.withLock { appender in
      // Neither the segment being written nor damaged ones can be reclaimed.
      let reclaimable = planner.gain(of: { $0.id != appender.active?.id && !$0.isDamaged })
      appender.allowance.update(
        reclaimable: reclaimable, allowed: allowed, limit: highestGarbage(allowed: allowed),
        gain: gain)
      appender.allowance.heldByteCount = planner.heldByteCount
    }
  }
}

/// A cache that makes room for a write by evicting entries.
struct LastResort: Sendable {
  /// Makes room for this many bytes. Returns `false` if it cannot.
  let makeRoom: @Sendable (_ byteCount: Int, _ allowance: inout Int?) throws(StoreError) -> Bool
  /// Called if the write still finds no room.
  let noteFailure: @Sendable () -> Void
}

/// The state that the compactions of a session share.
struct CompactionState: Sendable {
  /// Segments that a round could not read.
  var damaged: [SegmentID: SegmentDamage] = [:]
  /// Tombstones that were kept for them.
  var held = HeldTombstones()

  /// Forgets damaged segments that are gone. The others may not need what was kept for those.
  mutating func forgetAllBut(_ segments: [Segment]) {
    if damaged.isEmpty { return }
    let ids = Set(segments.map(\.id))
    if damaged.keys.allSatisfy(ids.contains) { return }
    damaged = damaged.filter { ids.contains($0.key) }
    held = HeldTombstones()
  }

  /// Bytes that the rounds of the session have reclaimed.
  var reclaimedByteCount = 0
  /// The first error of the disk in an input since a manual compaction began.
  var readError: StoreError?
}
