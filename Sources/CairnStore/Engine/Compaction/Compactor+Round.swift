internal import Synchronization

/// One round of a compaction: copy, switch, move.
extension Compactor {
  /// Compacts these segments, if they are still in the log. If one cannot be read, excludes it from
  /// later rounds and changes nothing.
  ///
  /// - Parameter cut: if given, compacts only the part of a single segment after the cut. The
  ///   segment then ends at the cut.
  func run(
    _ ids: [SegmentID], behind cut: SegmentOutline.Mark? = nil, pace: CompactionPace?,
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    let began = ContinuousClock.now
    let reclaimed = state.reclaimedByteCount
    defer { log.files.closeReadFiles() }
    SegmentSwitch(self).unlinkFiles(of: try runRound(ids, behind: cut, pace: pace, &state, &report))
    let gain = state.reclaimedByteCount - reclaimed
    if gain == 0 { return }
    let (planner, _, live) = plan(state)
    updateAllowance(
      planner, allowed: allowedGarbage(live: live), state,
      gain: (gain, .now - began - (pace?.rested ?? .zero)))
  }

  /// - Returns: the segments that have left the log and are held only by their readers.
  private func runRound(
    _ ids: [SegmentID], behind cut: SegmentOutline.Mark?, pace: CompactionPace?,
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) -> [Segment] {
    // The entries show what is live, so all of them must be loaded.
    try lookup.index.loadAll()
    // A move stores segment numbers in 16 bits. The other segments wait for another round.
    let wanted = Set(ids.prefix(1 << 14))
    let (inputs, began, barrier) = try log.withLock {
      (appender) throws(StoreError) -> ([Segment], SequenceNumber, SequenceNumber) in
      try appender.checkWritable(path: session.path)
      // Records that a pending batch removes are still live, though the batch's numbers are used
      // up.
      if appender.unpublished != nil { return ([], 0, 0) }
      let inputs = appender.sealed.filter { wanted.contains($0.id) }
      // A segment that is cut stays, with everything before the cut.
      let leaving = cut == nil ? wanted : []
      return (inputs, appender.nextSequence - 1, Self.barrier(of: appender, without: leaving))
    }
    if inputs.isEmpty { return [] }
    var copier = CompactionCopier(
      compactor: self, inputs: inputs, cut: cut, began: began, barrier: barrier, pace: pace)
    var current = 0
    var removed: [Segment] = []
    do throws(StoreError) {
      for index in inputs.indices {
        current = index
        // A segment without live records need not be read if all its tombstones may be dropped.
        let usage = inputs[index].usage
        if cut == nil, usage.livePutCount == 0, usage.liveExtensionCount == 0,
          usage.highestTombstoneSequence < barrier
        {
          report.droppedTombstoneCount += usage.tombstoneCount
          continue
        }
        try copier.copy(index)
      }
      current = -1
      try copier.finishOutput()
      try synchronizeThroughHead()
      let outputs = try checkpointer.keepingOut { () throws(StoreError) -> [Segment]? in
        let exchange = SegmentSwitch(self)
        if let cut { return try exchange.switchOver(inputs[0], behind: cut, copier) }
        guard let outputs = try exchange.switchOver(inputs, copier) else { return nil }
        exchange.move(copier, from: inputs, to: outputs)
        removed = exchange.takeOut(inputs)
        for segment in removed {
          segment.retire()
          lookup.table.remove(segment)
        }
        let written = outputs.reduce(0) { $0 + $1.usage.end }
        checkpointer.progress.noteCompacted(byteCount: written)
        state.reclaimedByteCount += removed.reduce(-written) { $0 + $1.usage.end }
        return outputs
      }
      Reclamation.reclaimIfDue()
      guard let outputs else {
        catalog.abandon(copier.ids)
        return []
      }
      writtenByteCount.wrappingAdd(
        outputs.reduce(0) { $0 + $1.usage.end }, ordering: .relaxed)
      report.removedSegmentCount += cut == nil ? inputs.count : 0
      report.writtenSegmentCount += outputs.count
      report.copiedRecordCount += copier.moves.count
      report.droppedTombstoneCount += copier.droppedTombstoneCount
    } catch {
      // If it is unknown which manifest is on disk, the new segments stay, because that manifest
      // may list them.
      if case .poisoned = error { throw error }
      catalog.abandon(copier.ids)
      // `removeAll` unlinks the files of the segments that it takes.
      if copier.isOvertaken || inputs.contains(where: \.isRetired) { return [] }
      guard current >= 0 else { throw error }
      try noteUnreadable(inputs[current], error, &state)
    }
    return removed
  }

  /// Excludes a segment from later rounds if an error says that it is damaged or that the disk
  /// cannot read it.
  func noteUnreadable(
    _ segment: Segment, _ error: StoreError, _ state: inout CompactionState
  ) throws(StoreError) {
    guard isUnreadable(error, segment) else { throw error }
    state.unreadable.insert(segment.id)
    session.tell(.error, .maintenance, "\(segment.name) is not compacted: \(error)")
    if case .system = error, state.isByHand { throw error }
  }

  /// The barrier that the segments outside `inputs` impose.
  ///
  /// Call under the log's lock, because a segment's counts are exact only there.
  private static func barrier(
    of appender: borrowing Appender, without inputs: Set<SegmentID>
  ) -> SequenceNumber {
    var barrier = SequenceNumber.max
    for segment in appender.segments where !inputs.contains(segment.id) {
      let usage = segment.usage
      barrier = min(
        barrier,
        TombstoneRule.barrier(
          lowestSequence: usage.lowestSequence, compactedAt: segment.compactedAt,
          deadPutCount: usage.deadPutCount))
    }
    return barrier
  }

  /// Whether an error says that an input is damaged or unreadable.
  private func isUnreadable(_ error: StoreError, _ input: Segment) -> Bool {
    switch error {
    case .corrupt: true
    case .system(let failure):
      failure.path == input.file.path && !SystemError.isOfProcess(failure.errorNumber)
    default: false
    }
  }

  // MARK: Before the switch

  /// Syncs every record that replaced a record that was not copied.
  private func synchronizeThroughHead() throws(StoreError) {
    let head = log.lastSequence
    // DURABILITY: some records were not copied because newer ones replaced them. The newer ones,
    // even the latest, must be on disk before the old records are removed. Otherwise a crash would
    // take both.
    try log.waitForSync { $0 >= head }
  }
}
