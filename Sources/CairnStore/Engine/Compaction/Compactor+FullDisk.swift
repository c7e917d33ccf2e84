internal import Synchronization

/// Compaction on a full disk.
///
/// A regular round of a compaction writes before it removes. On a full disk, compaction can use
/// only the reserve, and works in pieces. It copies the live records at the end of a segment, then
/// cuts the segment there, which makes room for the next piece. So no segment is too large.
extension Compactor {
  /// Room left for a manifest and the header of a segment while pieces are copied.
  private static let spareByteCount = 8 << 10
  /// A piece smaller than this is not worth a segment.
  private static let smallestPiece = 8 << 10

  /// Makes room for a write that found none. Returns `false` if it cannot. The caller may hold no
  /// lock but the eviction lock.
  ///
  /// - Parameter search: the earlier attempts by the same write.
  func findRoom(isRemoval: Bool, _ search: inout RoomSearch) throws(StoreError) -> Bool {
    if !isRemoval, search.failureCount == 0 { pressure.noteWait() }
    defer { search.failureCount += 1 }
    if try catalog.removeLeftFiles() { return true }
    // A removal of all frees its space once its manifest is on disk.
    try catalog.settle()
    if isRemoval, giveHalfOfReserve() { return true }
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

  /// Reclaims up to `goal` bytes from the end of a segment, if few bytes there are live.
  func giveBack(endOf id: SegmentID, goal: Int) throws(StoreError) {
    try state.withLock { (state) throws(StoreError) in
      let before = log.allocatedByteCount
      let pinned = lookup.table.total.pinnedByteCount
      var report = CompactionReport()
      try inLittleRoom(isForRemoval: false) { () throws(StoreError) in
        giveBackAhead()
        try lendReserveIfNeeded()
        do throws(StoreError) {
          if plan(&state).planner.wholeDeadSegments().contains(id) {
            try run([id], pace: nil, &state, &report)
          } else {
            try compactByPieces(id, of: nil, &state, &report) {
              before - log.allocatedByteCount >= goal
            }
          }
        } catch {
          guard case .noSpace = error else { throw error }
        }
      }
      // Reads end soon.
      awaitPinnedBytes { $0 <= pinned }
    }
  }

  /// Takes the reserve back after `body`. If a cut has removed the checkpoint, makes another one
  /// due.
  private func inLittleRoom<Value>(
    isForRemoval: Bool, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    defer {
      takeReserveBack(isForRemoval: isForRemoval)
      if checkpointer.progress.isGone.exchange(false, ordering: .relaxed) {
        checkpointer.progress.noteCompacted(byteCount: log.allocatedByteCount)
      }
    }
    return try body()
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
    try inLittleRoom(isForRemoval: isForRemoval) { () throws(StoreError) in
      try compactWhatGivesMost(goal: goal, highestCost: highestCost, &state, &report)
    }
  }

  private func compactWhatGivesMost(
    goal: Int, highestCost: Int, _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) -> Int {
    giveBackAhead()
    var before = log.allocatedByteCount
    var (hasLeftActive, isTooFullForBlockers) = (false, false)
    var tooLarge: Set<SegmentID> = []
    let pinnedBefore = lookup.table.total.pinnedByteCount
    /// The bytes that the disk has gained, excluding bytes that readers still hold.
    var gained: Int {
      before - log.allocatedByteCount - max(0, lookup.table.total.pinnedByteCount - pinnedBefore)
    }
    while gained < goal {
      try lendReserveIfNeeded()
      if try !hasRoomAgain(since: pinnedBefore) { break }
      let planner = plan(&state).planner
      let dead = planner.wholeDeadSegments()
      if !dead.isEmpty {
        try run(Array(dead), pace: nil, &state, &report)
        continue
      }
      if let victim = planner.mostGain(highestCost: highestCost, without: tooLarge) {
        do throws(StoreError) {
          try compact(victim, barrier: planner.barrier(without: []), &state, &report) {
            gained >= goal
          }
        } catch {
          guard case .noSpace = error else { throw error }
          tooLarge.insert(victim.id)
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

  /// Compacts one segment, as a whole if there is room.
  private func compact(
    _ victim: SegmentFacts, barrier: SequenceNumber, _ state: inout CompactionState,
    _ report: inout CompactionReport, until isEnough: () -> Bool
  ) throws(StoreError) {
    let cost = victim.cost(barrier)
    let room = try pieceByteCount()
    // A header, and the unused rest of the last block.
    let mean = victim.liveByteCount / max(1, victim.livePutCount)
    let pieceOverhead = SegmentHeader.byteCount + min(4096, mean)
    if cost <= room {
      do throws(StoreError) { return try run([victim.id], pace: nil, &state, &report) } catch {
        // Other programs have taken the room, or a quota allows less than the disk has.
        guard case .noSpace = error else { throw error }
      }
    } else if victim.gain(barrier) < (cost / room + 1) * pieceOverhead {
      // The pieces would take more than they reclaim.
      throw .noSpace(path: session.path, neededByteCount: cost, limit: .disk)
    }
    try compactByPieces(victim.id, of: nil, &state, &report, until: isEnough)
  }

  /// How much a piece may copy now.
  private func pieceByteCount() throws(StoreError) -> Int {
    max(Self.smallestPiece, try session.directory.freeByteCount() - Self.spareByteCount)
  }

  /// Compacts a segment from its end, cutting off each piece once it is copied.
  ///
  /// - Parameter byteCount: how much to copy at a time, or `nil` for as much as fits.
  private func compactByPieces(
    _ id: SegmentID, of byteCount: Int?, _ state: inout CompactionState,
    _ report: inout CompactionReport, until isEnough: () -> Bool
  ) throws(StoreError) {
    var outline = SegmentOutline(distance: min(16 << 10, byteCount ?? .max))
    guard let end = self.end(of: id), try add(id, to: end, &outline, &state) else { return }
    var limit = Int.max
    let pinned = lookup.table.total.pinnedByteCount
    while true {
      var room = limit
      if let byteCount {
        room = min(room, byteCount)
      } else {
        room = min(room, try pieceByteCount())
      }
      // `removeAll` may have taken the segment.
      guard let stretch = outline.stretch(room: room), self.end(of: id) == outline.end.offset
      else { return }
      var mark = stretch.end
      if mark.offset > SegmentHeader.byteCount {
        // Use a finer outline, so that little is lost in the last block.
        var fine = SegmentOutline(from: stretch.start, distance: 1)
        guard try add(id, to: stretch.end.offset, &fine, &state) else { return }
        mark = fine.bestCut(before: outline.end, room: room)
      }
      let isWhole = mark.offset == SegmentHeader.byteCount
      do throws(StoreError) {
        try run([id], behind: isWhole ? nil : mark, pace: nil, &state, &report)
      } catch {
        // Other programs take room too, and the free space does not reflect a quota.
        guard case .noSpace = error else { throw error }
        limit = min(limit, try pieceByteCount()) / 2
        if limit < Self.smallestPiece { throw error }
        continue
      }
      if isWhole || isEnough() { return }
      if try !hasRoomAgain(since: pinned) { return }
      outline.shorten(to: mark)
    }
  }

  /// Whether there is room for more copies, or readers have released the bytes that were cut off.
  /// Reads end soon, but a snapshot may stay open. More copies would then only use up the reserve.
  private func hasRoomAgain(since pinned: Int) throws(StoreError) -> Bool {
    let least = DiskReserve.byteCount(forLogOf: log.allocatedByteCount) / 4
    if try session.directory.freeByteCount() >= least { return true }
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
      giveBackLeft()
      let pinned = lookup.table.total.pinnedByteCount
      let retirements = lookup.table.total.retirements.load(ordering: .relaxed)
      if isReached(pinned) || retirements == retirementsInVain.load(ordering: .relaxed) { return }
      if pauses == 0 { return retirementsInVain.store(retirements, ordering: .relaxed) }
      pauses -= 1
      session.environment.pause(.milliseconds(1))
    }
  }

  /// Tries again to free the bytes that were cut off while another session was reading them.
  func giveBackLeft() {
    if lookup.table.total.pinnedByteCount == 0 { return }
    for segment in log.withLock({ $0.sealed }) { segment.giveBackLeft() }
  }

  // MARK: The reserve

  // No thread may write to the store after its lock is released.

  private func giveHalfOfReserve() -> Bool {
    let byteCount = log.allocatedByteCount
    return session.storeLock.whileHeld { _ in log.reserve.giveHalf(forLogOf: byteCount) } ?? false
  }

  /// Lends the reserve to the compaction if little room is left without it. Otherwise the reserve
  /// stays, and writers continue.
  private func lendReserveIfNeeded() throws(StoreError) {
    if log.reserve.isLent { return }
    let least = 2 * DiskReserve.byteCount(forLogOf: log.allocatedByteCount)
    if try session.directory.freeByteCount() >= least { return }
    _ = session.storeLock.whileHeld { _ in log.reserve.lend() }
  }

  private func takeReserveBack(isForRemoval: Bool) {
    if !log.reserve.isLent { return }
    let byteCount = log.allocatedByteCount
    _ = session.storeLock.whileHeld { _ in
      log.reserve.takeBack(forLogOf: byteCount, isForRemoval: isForRemoval)
    }
  }

  /// The end of the records of a sealed segment.
  private func end(of id: SegmentID) -> Int? {
    log.withLock { $0.sealed.first { $0.id == id }?.usage.end }
  }

  /// Adds the records of a segment up to `end` to an outline. Returns `false` if the segment is
  /// missing or unreadable. An unreadable one is not tried again.
  private func add(
    _ id: SegmentID, to end: Int, _ outline: inout SegmentOutline, _ state: inout CompactionState
  ) throws(StoreError) -> Bool {
    try lookup.index.loadAll()
    guard let segment = log.withLock({ $0.sealed.first { $0.id == id } }) else { return false }
    var copier = CompactionCopier(compactor: self, inputs: [segment])
    do throws(StoreError) {
      try copier.outline(&outline, to: end)
      return true
    } catch {
      if !copier.isOvertaken { try noteUnreadable(segment, error, &state) }
      return false
    }
  }

  /// Compacts every sealed segment in pieces, however much room the disk has. For tests, which
  /// cannot use a full disk for every interleaving.
  func compactByPieces(
    of byteCount: Int, until isEnough: () -> Bool
  ) throws(StoreError) {
    try session.checkWritable()
    try state.withLock { (state) throws(StoreError) in
      try supply.leaveActiveSegment { $0.recordCount > 0 }
      try supply.sealRolledSegments()
      var report = CompactionReport()
      for id in log.withLock({ $0.sealed.map(\.id) }) {
        try compactByPieces(id, of: byteCount, &state, &report, until: isEnough)
      }
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
    }
  }
}
