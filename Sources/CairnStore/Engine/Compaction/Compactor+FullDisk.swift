internal import Synchronization

/// Compaction on a full disk.
///
/// A round of a compaction writes before it removes. On a full disk, compaction can use only the
/// reserve, which has room for the copy of one segment. So the first round takes one segment, and
/// later ones as many as their copies fit.
extension Compactor {
  /// Room left for a manifest and the header of a segment.
  private static let spareByteCount = 8 << 10

  /// Makes room for a write that found none. Returns `false` if it cannot. The caller may hold no
  /// lock but the eviction lock.
  ///
  /// - Parameter search: the earlier attempts by the same write.
  func findRoom(isRemoval: Bool, _ search: inout RoomSearch) throws(StoreError) -> Bool {
    let begun = ContinuousClock.now
    defer {
      search.failureCount += 1
      if !isRemoval {
        pressure.noteWait(ContinuousClock.now - begun, isFirst: search.failureCount == 1)
      }
    }
    if try catalog.removeLeftFiles() { return true }
    // A removal of all frees its space once its manifest is on disk.
    try catalog.settle()
    if isRemoval, giveReserveToRemovals() { return true }
    if getsPinnedBytesBack() { return true }
    // Background work may free room: the inputs of a round, or the checkpoint before the one being
    // written.
    if search.failureCount < 4, state.isHeld || checkpointer.isBusy {
      state.withLock { _ in }
      checkpointer.waitUntilIdle()
      return true
    }
    var (dead, mayGain) = (0, false)
    for usage in log.withLock({ $0.segments.map(\.usage) }) {
      let (deadHere, liveHere) = (usage.deadByteCount, usage.liveByteCount)
      dead += deadHere
      // A writer that adds data does not rewrite a whole segment to gain a little room.
      let isWorthIt = isRemoval || deadHere * CompactionPlanner.highestCost >= liveHere
      if deadHere > 0, isWorthIt { mayGain = true }
    }
    if mayGain, try compactForRoom(isRemoval: isRemoval, dead: dead) { return true }
    // After the first failure, background work may have just freed room. If many bytes are dead,
    // the reader or the work that holds them ends soon.
    if search.failureCount < (mayGain && !isRemoval ? 6 : 1) { return true }
    guard !isRemoval, let lastResort = lastResort.withLock({ $0 }) else { return false }
    // Other work may take the room that an eviction makes.
    if search.evictionCount < 16, try lastResort.makeRoom(search.byteCount, &search.allowance) {
      search.evictionCount += 1
      // The next attempt then also waits for the current work, which may have the reserve.
      search.failureCount = 0
      return true
    }
    if search.evictionCount > 0 { lastResort.noteFailure() }
    return false
  }

  /// The segments that can be compacted now. If there are none, rolls the active segment, provided
  /// that a roll record fits.
  func segmentsToGiveUp() throws(StoreError) -> [Segment] {
    try state.withLock { (state) throws(StoreError) in
      for isLast in [false, true] {
        let ids = Set(plan(&state).planner.segments.lazy.filter(\.isCandidate).map(\.id))
        let segments = log.withLock { $0.sealed.filter { ids.contains($0.id) } }
        if isLast || !segments.isEmpty { return segments }
        defer { takeReserveBack(isForRemoval: true) }
        try lendReserveIfNeeded()
        do throws(StoreError) {
          try supply.leaveActiveSegment { $0.livePutCount > 0 }
          try supply.sealRolledSegments()
        } catch {
          guard case .noSpace = error else { throw error }
        }
      }
      return []
    }
  }

  /// Compacts a segment whose entries a cache has evicted.
  func giveBack(_ id: SegmentID) throws(StoreError) {
    try state.withLock { (state) throws(StoreError) in
      let pinned = lookup.table.total.pinnedByteCount
      var report = CompactionReport()
      giveBackAhead()
      try lendReserveIfNeeded()
      defer { takeReserveBack(isForRemoval: false) }
      do throws(StoreError) { try run([id], pace: nil, &state, &report) } catch {
        guard case .noSpace = error else { throw error }
      }
      // Reads end soon.
      awaitPinnedBytes { $0 <= pinned }
    }
  }

  /// Compacts for a writer that found no room. Returns `false` if this reclaimed nothing.
  private func compactForRoom(isRemoval: Bool, dead: Int) throws(StoreError) -> Bool {
    try state.withLock { (state) throws(StoreError) -> Bool in
      var report = CompactionReport()
      let goal = max(isRemoval ? 256 << 10 : 1 << 20, dead / 2)
      return try compactInLittleRoom(
        goal: min(goal, max(roundByteLimit, 1 << 20)),
        highestCost: isRemoval ? .max : CompactionPlanner.highestCost, isForRemoval: isRemoval,
        &state, &report)
        > 0
    }
  }

  /// Compacts on a disk without room for a regular round, the highest gain first.
  ///
  /// - Parameters:
  ///   - goal: roughly how many bytes to reclaim at most.
  ///   - highestCost: how many bytes may be written for each byte reclaimed.
  ///   - isForRemoval: whether a removal is waiting for the room.
  /// - Returns: the number of bytes reclaimed.
  func compactInLittleRoom(
    goal: Int, highestCost: Int, isForRemoval: Bool = false, _ state: inout CompactionState,
    _ report: inout CompactionReport
  ) throws(StoreError) -> Int {
    defer { takeReserveBack(isForRemoval: isForRemoval) }
    return try compactWhatGivesMost(goal: goal, highestCost: highestCost, &state, &report)
  }

  private func compactWhatGivesMost(
    goal: Int, highestCost: Int, _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) -> Int {
    giveBackAhead()
    // Segments that wait to be sealed may be wholly dead.
    do throws(StoreError) { try supply.sealRolledSegments() } catch {
      guard case .noSpace = error else { throw error }
    }
    var before = log.allocatedByteCount
    var (hasLeftActive, isTooFullForBlockers) = (false, false)
    var tooLarge: Set<SegmentID> = []
    var runsOneByOne = false
    let pinnedBefore = lookup.table.total.pinnedByteCount
    /// The bytes that the disk has gained, excluding bytes that readers still hold.
    var gained: Int {
      before - log.allocatedByteCount - max(0, lookup.table.total.pinnedByteCount - pinnedBefore)
    }
    while gained < goal {
      try lendReserveIfNeeded()
      if try !hasRoomAgain(since: pinnedBefore) { break }
      // Several segments in one round wait for fewer syncs.
      let room = try session.directory.freeByteCount() - Self.spareByteCount
      let planner = plan(&state, room: runsOneByOne ? 0 : room).planner
      let dead = planner.wholeDeadSegments()
      if !dead.isEmpty {
        try run(Array(dead), pace: nil, &state, &report)
        continue
      }
      let victims = planner.mostGain(
        highestCost: highestCost, goal: goal.subtracting(clamped: gained), without: tooLarge)
      if let first = victims.first {
        do throws(StoreError) {
          // Copy nothing in vain.
          let cost = first.cost(planner.barrier(without: []))
          if cost > room {
            throw .noSpace(path: session.path, neededByteCount: cost, limit: .disk)
          }
          try run(victims.map(\.id), pace: nil, &state, &report)
        } catch {
          guard case .noSpace = error else { throw error }
          if victims.count == 1 { tooLarge.insert(first.id) }
          runsOneByOne = true
        }
        continue
      }
      let blockers = isTooFullForBlockers ? [] : planner.blockersOfTombstones()
      if !blockers.isEmpty {
        do throws(StoreError) { try run(blockers, pace: nil, &state, &report) } catch {
          guard case .noSpace = error else { throw error }
          isTooFullForBlockers = true
        }
      } else if !hasLeftActive {
        hasLeftActive = true
        let allocated = log.allocatedByteCount
        // Bytes cut off by sealing were never dead, and do not count as a gain.
        defer { before -= allocated - log.allocatedByteCount }
        do throws(StoreError) {
          let least = 2 * Segment.slack
          if planner.hasGainWhereWritten(atLeast: least, highestCost: highestCost) {
            try supply.leaveActiveSegment { $0.deadByteCount > 0 }
          }
          try supply.sealRolledSegments()
        } catch {
          guard case .noSpace = error else { throw error }
        }
      } else {
        break
      }
    }
    return gained
  }

  /// Whether there is room for more copies, or readers have released the bytes that were cut off.
  /// Reads end soon, but a snapshot may stay open. More copies would then only use up the reserve.
  private func hasRoomAgain(since pinned: Int) throws(StoreError) -> Bool {
    let least = log.reserveSize.copyByteCount / 2
    if try session.directory.hasRoom(for: least) { return true }
    awaitPinnedBytes { $0 <= pinned }
    return lookup.table.total.pinnedByteCount <= pinned + Self.spareByteCount
  }

  /// Waits for readers of removed bytes, for example after `removeAll`, and returns whether some
  /// bytes became free. The reader may be the store's own background work, which ends soon.
  private func getsPinnedBytesBack() -> Bool {
    let before = lookup.table.total.pinnedByteCount
    if before == 0 { return false }
    awaitPinnedBytes { $0 < before }
    return lookup.table.total.pinnedByteCount < before
  }

  /// Waits up to a second until `isReached` accepts the number of pinned bytes. The reader that
  /// holds them, perhaps in another store, may have to wait for a processor. After one wait in
  /// vain, for example for a snapshot, does not wait again until more bytes have been removed.
  private func awaitPinnedBytes(_ isReached: (Int) -> Bool) {
    var pauses = 1000
    while true {
      Reclamation.reclaim()
      let pinned = lookup.table.total.pinnedByteCount
      let retirements = lookup.table.total.retirements.load(ordering: .relaxed)
      if isReached(pinned) || retirements == retirementsInVain.load(ordering: .relaxed) { return }
      if pauses == 0 { return retirementsInVain.store(retirements, ordering: .relaxed) }
      pauses -= 1
      session.environment.pause(.milliseconds(1))
    }
  }

  // MARK: The reserve

  // No thread may write to the store after its lock is released.

  private func giveReserveToRemovals() -> Bool {
    let size = log.reserveSize
    return session.storeLock.whileHeld { _ in log.reserve.giveToRemovals(size) } ?? false
  }

  /// Lends the reserve to the compaction if little room is left without it. Otherwise the reserve
  /// stays, and writers continue.
  private func lendReserveIfNeeded() throws(StoreError) {
    if log.reserve.isLent { return }
    let least = 2 * log.reserveSize.byteCount
    if try session.directory.hasRoom(for: least) { return }
    _ = session.storeLock.whileHeld { _ in log.reserve.lend() }
  }

  private func takeReserveBack(isForRemoval: Bool) {
    if !log.reserve.isLent { return }
    let size = log.reserveSize
    _ = session.storeLock.whileHeld { _ in
      log.reserve.takeBack(size, isForRemoval: isForRemoval)
    }
  }

  /// Frees the space preallocated for writers. Called on a full disk.
  private func giveBackAhead() {
    log.withLock { appender in
      guard let active = appender.active, appender.failure == nil, !appender.isClosed else {
        return
      }
      let needed = appender.offset + Segment.slack
      if active.allocatedByteCount > needed { try? active.trim(to: needed) }
      if let next = appender.prepared, next.allocatedByteCount > Appender.firstAllocation {
        try? next.trim(to: Appender.firstAllocation)
      }
    }
  }
}

/// The state of a write's search for room.
struct RoomSearch {
  let byteCount: Int
  /// How often the search found no room.
  var failureCount = 0
  /// How often a cache has evicted entries for the write, and how many more it may evict. `nil`
  /// means a tenth.
  var evictionCount = 0
  var allowance: Int?
}
