internal import Synchronization

/// One round of a compaction: copy, switch, move.
extension Compactor {
  /// Compacts these segments, if they are still in the log. If one cannot be read, leaves it
  /// unchanged, and compacts the others.
  func run(
    _ ids: [SegmentID], pace: CompactionPace?, _ state: inout CompactionState,
    _ report: inout CompactionReport
  ) throws(StoreError) {
    let began = ContinuousClock.now
    let reclaimed = state.reclaimedByteCount
    defer { log.files.closeReadFiles() }
    log.withLock { $0.allowance.beginRound() }
    SegmentSwitch(self).unlinkFiles(of: try runRound(ids, pace: pace, &state, &report))
    let gain = state.reclaimedByteCount - reclaimed
    if gain == 0 { return }
    let (planner, _, live) = plan(&state)
    updateAllowance(
      planner, allowed: allowedGarbage(live: live),
      gain: (gain, .now - began - (pace?.rested ?? .zero)))
  }

  /// - Returns: the segments that have left the log and are held only by their readers.
  private func runRound(
    _ ids: [SegmentID], pace: CompactionPace?, _ state: inout CompactionState,
    _ report: inout CompactionReport
  ) throws(StoreError) -> [Segment] {
    // The entries show what is live, so all of them must be loaded.
    try lookup.index.loadAll()
    // A move stores segment numbers in 16 bits. The other segments wait for another round.
    var wanted = Set(ids.prefix(1 << 14))
    let holes = try holesToPass(&wanted, &state)
    let (leaving, path, damaged) = (wanted, session.path, state.damaged)
    typealias Beginning = Result<([Segment], SequenceNumber, TombstoneBarriers), StoreError>
    let beginning = log.waitUntil { (appender) -> Beginning? in
      do throws(StoreError) { try appender.checkWritable(path: path) } catch {
        return .failure(error)
      }
      // Records that a pending batch removes are still live, though the batch's numbers are used up.
      // Publishing it takes a moment, and needs no lock that is held here.
      if appender.unpublished != nil { return nil }
      return .success(
        (
          appender.sealed.filter { wanted.contains($0.id) }, appender.nextSequence - 1,
          TombstoneBarriers(of: appender, without: leaving, damaged)
        ))
    }
    let (inputs, began, barriers) = try beginning.get()
    if inputs.isEmpty { return [] }
    var copier = CompactionCopier(
      compactor: self, inputs: inputs, began: began, barriers: barriers,
      held: state.held, pace: pace)
    var current = 0
    var removed: [Segment] = []
    var droppedTombstoneCount = 0
    do throws(StoreError) {
      for index in inputs.indices {
        current = index
        let usage = inputs[index].usage
        if usage.canBeDropped(below: barriers.lowest) {
          droppedTombstoneCount += usage.tombstoneCount
          continue
        }
        try copier.copy(index, passing: holes[inputs[index].id])
      }
      current = -1
      try copier.finishOutput()
      try copier.synchronize()
      try synchronizeThroughHead()
      let outputs = try checkpointer.keepingOut { () throws(StoreError) -> [Segment]? in
        let exchange = SegmentSwitch(self)
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
        copier.abandon()
        return []
      }
      writtenByteCount.wrappingAdd(
        outputs.reduce(0) { $0 + $1.usage.end }, ordering: .relaxed)
      report.removedSegmentCount += inputs.count
      report.writtenSegmentCount += outputs.count
      report.copiedRecordCount += copier.moves.count
      report.droppedTombstoneCount += copier.droppedTombstoneCount + droppedTombstoneCount
      copier.noteHeld(in: &state.held)
      copier.tellOfDamage(in: outputs)
    } catch {
      // If it is unknown which manifest is on disk, the new segments stay, because that manifest
      // may list them.
      if case .poisoned = error { throw error }
      copier.abandon()
      // `removeAll` unlinks the files of the segments that it takes.
      if copier.isOvertaken || inputs.contains(where: \.isRetired) { return [] }
      guard current >= 0 else { throw error }
      try noteUnreadable(inputs[current], error, &state)
      return try runRound(ids, pace: pace, &state, &report)
    }
    return removed
  }

  /// Excludes damaged segments from a round that cannot copy them.
  ///
  /// - Returns: the holes of those that it can copy.
  private func holesToPass(
    _ wanted: inout Set<SegmentID>, _ state: inout CompactionState
  ) throws(StoreError) -> [SegmentID: [Range<Int>]] {
    var holes: [SegmentID: [Range<Int>]] = [:]
    var isSettled = state.damaged.isEmpty
    while !isSettled {
      isSettled = true
      let (ids, damaged) = (wanted, state.damaged)
      let segments = log.withLock { appender in
        let barrier = TombstoneBarriers(of: appender, without: ids, damaged).lowest
        return appender.sealed.filter {
          ids.contains($0.id) && damaged[$0.id] != nil && holes[$0.id] == nil
            && !$0.usage.canBeDropped(below: barrier)
        }
      }
      for segment in segments {
        holes[segment.id] = try holesToPass(in: segment, &state)
        if holes[segment.id] != nil { continue }
        wanted.remove(segment.id)
        isSettled = false
      }
    }
    return holes
  }

  /// The holes of a damaged segment, or `nil` if a round cannot copy it yet.
  private func holesToPass(
    in segment: Segment, _ state: inout CompactionState
  ) throws(StoreError) -> [Range<Int>]? {
    let now = session.clock.now()
    guard var damage = state.damaged[segment.id], damage.isDue(at: now, lookup.index) else {
      return nil
    }
    if damage.hasReadErrors {
      damage = try SegmentDamage(of: segment, lookup, log, failureCount: damage.failureCount)
    }
    let barrier = log.withLock {
      TombstoneBarriers(of: $0, without: [segment.id], state.damaged).lowest
    }
    let canBePassed = damage.canBePassed(segment.usage, barrier: barrier, lookup.index)
    if !canBePassed { damage.pause(from: now) }
    state.damaged[segment.id] = damage
    return canBePassed ? damage.holes : nil
  }

  /// Notes that a segment is damaged or that the disk cannot read it, if an error says so.
  func noteUnreadable(
    _ segment: Segment, _ error: StoreError, _ state: inout CompactionState
  ) throws(StoreError) {
    guard isUnreadable(error, segment) else { throw error }
    let known = state.damaged[segment.id]
    var damage = try SegmentDamage(
      of: segment, lookup, log, failureCount: known?.failureCount ?? 0)
    // Holes that no entry names are passed at once. An error of the disk may pass.
    if known != nil || damage.hasReadErrors || error.isOfMedium {
      damage.pause(from: session.clock.now())
    }
    state.damaged[segment.id] = damage
    if known == nil {
      session.tell(.error, .maintenance, "\(segment.name) is not compacted: \(error)")
    }
    if case .system = error, state.readError == nil { state.readError = error }
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
