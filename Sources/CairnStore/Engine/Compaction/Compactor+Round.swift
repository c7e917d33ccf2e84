/// One round of a compaction: copy, switch, move.
extension Compactor {
  /// Compacts these segments, as far as they are still in the log. Where one cannot be read, that is
  /// noted and nothing has changed.
  ///
  /// - Parameter cut: where given, only what lies behind it in the one segment is compacted, and the
  ///   segment ends there from then on.
  func run(
    _ ids: [SegmentID], behind cut: SegmentOutline.Mark? = nil, pace: CompactionPace?,
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    let began = ContinuousClock.now
    let reclaimed = state.reclaimedByteCount
    defer { log.files.closeReadFiles() }
    unlinkFiles(of: try runRound(ids, behind: cut, pace: pace, &state, &report))
    let gain = state.reclaimedByteCount - reclaimed
    if gain == 0 { return }
    let (planner, _, live) = plan(state)
    updateAllowance(
      planner, allowed: allowedGarbage(live: live), state, gain: (gain, .now - began))
  }

  /// - Returns: the segments that are out of the log, held by nobody but who reads from them.
  private func runRound(
    _ ids: [SegmentID], behind cut: SegmentOutline.Mark?, pace: CompactionPace?,
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) -> [Segment] {
    // What is live is told by entries, also by those that nobody has asked for yet.
    try lookup.index.loadAll()
    // Numbers of segments are kept in 16 bits. What is left out is for another round.
    let wanted = Set(ids.prefix(1 << 14))
    let (inputs, began, barrier) = try log.withLock {
      (appender) throws(StoreError) -> ([Segment], SequenceNumber, SequenceNumber) in
      try appender.checkWritable(path: session.path)
      // What a batch on its way into the index removes is still live, though its numbers are used up.
      if appender.unpublished != nil { return ([], 0, 0) }
      let inputs = appender.sealed.filter { wanted.contains($0.id) }
      // A segment that is cut stays, with all that may lie before the cut.
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
        // With nothing that is live, and where all tombstones may go, there is nothing to read it for.
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
        if let cut { return try switchOver(inputs[0], behind: cut, copier) }
        guard let outputs = try switchOver(inputs, copier) else { return nil }
        move(copier, from: inputs, to: outputs)
        removed = takeOut(inputs)
        for segment in removed {
          segment.retire()
          lookup.table.remove(segment)
        }
        let written = outputs.reduce(0) { $0 + $1.usage.end }
        checkpointer.progress.noteCompacted(byteCount: written)
        state.reclaimedByteCount += removed.reduce(-written) { $0 + $1.usage.end }
        return outputs
      }
      guard let outputs else {
        catalog.abandon(copier.ids)
        return []
      }
      report.removedSegmentCount += cut == nil ? inputs.count : 0
      report.writtenSegmentCount += outputs.count
      report.copiedRecordCount += copier.moves.count
      report.droppedTombstoneCount += copier.droppedTombstoneCount
    } catch {
      // Where it is not known which manifest is on disk, it may be one that lists them.
      if case .poisoned = error { throw error }
      catalog.abandon(copier.ids)
      // The file of one that a removal of all took has lost its name.
      if copier.isOvertaken || inputs.contains(where: \.isRetired) { return [] }
      guard current >= 0 else { throw error }
      try noteUnreadable(inputs[current], error, &state)
    }
    return removed
  }

  /// Notes that a segment stays as it is, if an error says that it is damaged or that its bytes do not come
  /// from the disk.
  func noteUnreadable(
    _ segment: Segment, _ error: StoreError, _ state: inout CompactionState
  ) throws(StoreError) {
    guard isUnreadable(error, segment) else { throw error }
    state.unreadable.insert(segment.id)
    session.tell("\(segment.name) is not compacted: \(error)")
    if case .system = error, state.isByHand { throw error }
  }

  /// Which tombstones must be kept for the segments that stay.
  ///
  /// Under the log's lock, since the counts of a segment are exact only there.
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

  /// Whether an error says that an input is damaged, or does not come from the disk.
  private func isUnreadable(_ error: StoreError, _ input: Segment) -> Bool {
    switch error {
    case .corrupt: true
    case .system(let failure):
      failure.path == input.file.path && !SystemError.isOfProcess(failure.errorNumber)
    default: false
    }
  }

  // MARK: Switch

  /// Brings everything to disk that took the place of a record that was not copied.
  private func synchronizeThroughHead() throws(StoreError) {
    let head = log.lastSequence
    // DURABILITY: what took the place of a record that was not copied may be as new as this moment,
    // and must be on disk before the record goes: else a crash would take both.
    try log.waitForSync { $0 >= head }
  }

  /// Puts the new segments into the log in the place of the old ones; `nil` where a removal of all has
  /// taken those meanwhile.
  private func switchOver(
    _ inputs: [Segment], _ copier: borrowing CompactionCopier
  ) throws(StoreError) -> [Segment]? {
    let replaced = Set(inputs.map(\.id))
    return try switchOver(inputs, copier) { manifest in
      manifest.sealedSegments.removeAll { replaced.contains($0.id) }
      manifest.retiredIDs += inputs.map(\.id.rawValue)
    }
  }

  /// - Parameter takingOut: takes the old ones out of the manifest.
  private func switchOver(
    _ inputs: [Segment], _ copier: borrowing CompactionCopier,
    takingOut: (inout Manifest) -> Void
  ) throws(StoreError) -> [Segment]? {
    let finished = copier.finished
    let compactedAt = copier.began
    return try catalog.change { (state) throws(StoreError) -> [Segment]? in
      let isThere = try log.withLock { (appender) throws(StoreError) in
        try appender.checkWritable(path: session.path)
        let sealed = Set(appender.sealed.map(ObjectIdentifier.init))
        return inputs.allSatisfy { sealed.contains(ObjectIdentifier($0)) }
      }
      if !isThere { return nil }
      if !finished.isEmpty {
        // DURABILITY: the names of the new segments are on disk before a manifest that needs them.
        do throws(StoreError) { try session.directory.synchronize() } catch {
          state.failure = error.asFailure
          throw StoreError.poisoned(cause: error.asFailure)
        }
      }
      var outputs: [Segment] = []
      do throws(StoreError) {
        for part in finished {
          outputs.append(
            try log.files.open(
              id: part.header.id, salt: part.header.salt, byteCount: part.usage.end,
              capacity: nil, readOnly: false, compactedAt: compactedAt, usage: part.usage))
        }
        let written = Set(outputs.map(\.id.rawValue))
        // DURABILITY: before the switch the old segments are the log, after it the new ones; the old
        // files go only when the manifest without them is on disk.
        try catalog.replace(&state) { manifest in
          takingOut(&manifest)
          manifest.sealedSegments += outputs.map(\.sealedEntry)
          manifest.pendingIDs.removeAll { written.contains($0) }
        }
      } catch {
        // No entry of the index names them.
        for output in outputs { lookup.table.remove(output) }
        throw error
      }
      // The inputs stay until no entry names them: writers find the records there that they replace.
      log.withLock { appender in
        appender.sealed += outputs
        appender.holdsCopies = true
      }
      return outputs
    }
  }

  /// Puts the new segments into the log in the place of what lies behind a cut, and ends the old one
  /// there; `nil` where a removal of all has taken it meanwhile.
  private func switchOver(
    _ input: Segment, behind cut: SegmentOutline.Mark, _ copier: borrowing CompactionCopier
  ) throws(StoreError) -> [Segment]? {
    let shorter = try log.files.shortened(input, to: cut.offset)
    var checkpoint: UInt64 = 0
    let outputs = try switchOver([input], copier) { manifest in
      for index in manifest.sealedSegments.indices
      where manifest.sealedSegments[index].id == input.id {
        manifest.sealedSegments[index].byteCount = cut.offset
        manifest.sealedSegments[index].lowestSequence = cut.lowestSequence
        manifest.sealedSegments[index].highestSequence = cut.highestSequence
      }
      // It names places that are cut off, and takes space besides.
      checkpoint = manifest.checkpointID
      if checkpoint != 0 { manifest.retiredIDs.append(checkpoint) }
      manifest.checkpointID = 0
      manifest.checkpointChecksum = 0
    }
    guard let outputs else { return nil }
    move(copier, from: [input], to: outputs)
    // Under the log's lock, so that nobody sees one without the other; a removal of all may have
    // taken the segment meanwhile.
    let isThere = log.withLock { appender in
      appender.holdsCopies = false
      guard let index = appender.sealed.firstIndex(where: { $0 === input }) else { return false }
      appender.sealed[index] = shorter
      input.usage.shorten(to: cut)
      lookup.table.replace(input, with: shorter)
      return true
    }
    // Snapshots wait for this.
    log.wakeAll()
    if isThere {
      // Who found it in the table but does not hold it yet.
      lookup.index.waitForReaders()
    }
    checkpointer.progress.noteGone()
    // Where the store was closed meanwhile, the next open removes it.
    _ = catalog.whileUsable { catalog.unlinkCheckpoint(checkpoint, in: &$0) }
    return outputs
  }

  /// Takes segments out of the log that no entry names any more.
  ///
  /// - Returns: those that a removal of all has not taken meanwhile.
  private func takeOut(_ inputs: [Segment]) -> [Segment] {
    // Snapshots wait for this.
    defer { log.wakeAll() }
    return log.withLock { appender in
      let replaced = Set(inputs.map(ObjectIdentifier.init))
      defer {
        appender.sealed.removeAll { replaced.contains(ObjectIdentifier($0)) }
        appender.holdsCopies = false
      }
      return appender.sealed.filter { replaced.contains(ObjectIdentifier($0)) }
    }
  }

  /// Lets the entries of what was copied name the copies.
  ///
  /// Without the catalog's lock. After a removal of all in between nothing is moved: the places of the
  /// segments may have been given to others by then, and entries name records there.
  private func move(
    _ copier: borrowing CompactionCopier, from inputs: [Segment], to outputs: [Segment]
  ) {
    let ends = copier.ends
    move(copier.moves) { number, move in
      let (input, output) = (inputs[Int(move.input)], outputs[Int(move.output)])
      if output.isRetired { return }
      let old = input.location(at: Int(move.oldOffset) << 3)
      let new = output.location(at: Int(move.newOffset) << 3)
      // An entry that names another record by now is newer.
      // An extension that came after the copy ends later than the copy says, and stays in force.
      guard lookup.index.relocate(move.hash, from: old, to: new, end: ends[number] ?? .min) else {
        return
      }
      output.usage.revive(byteCount: move.newByteCount)
      input.usage.kill(byteCount: move.oldByteCount)
    }
    move(copier.extensionMoves) { _, move in
      let (input, output) = (inputs[Int(move.input)], outputs[Int(move.output)])
      if output.isRetired { return }
      let isInForce = lookup.index.relocateExtension(
        move.hash, from: input.location(at: Int(move.oldOffset) << 3),
        to: output.location(at: Int(move.newOffset) << 3), byteCount: move.newByteCount)
      guard isInForce else { return }
      output.usage.reviveExtension(byteCount: move.newByteCount)
      input.usage.killExtension(byteCount: move.oldByteCount)
    }
  }

  /// Does moves, a few at a time.
  private func move(
    _ moves: [CompactionCopier.Move], _ body: (Int, CompactionCopier.Move) -> Void
  ) {
    var next = 0
    var groups = 0
    while next < moves.count {
      let end = min(next + Self.moveLimit, moves.count)
      // Under the log's lock, so that writers find an entry's record where they saw it.
      log.withLock { _ in
        for number in next..<end { body(number, moves[number]) }
      }
      next = end
      groups += 1
      // Whoever waits for the lock gets it.
      if groups % 8 == 0 { session.environment.pause(.microseconds(50)) }
    }
  }

  /// Entries that are moved under one hold of the log's lock.
  private static let moveLimit = 64

  /// Removes the files of segments that are out of the log. Readers that hold one go on.
  private func unlinkFiles(of segments: consuming [Segment]) {
    if segments.isEmpty { return }
    // One by one, so that a file that had to be kept open for this is closed before the next is.
    var remaining = segments
    remaining.reverse()
    // Where the store was closed meanwhile, the next open removes them.
    let messages = try? catalog.change { (state) throws(StoreError) in
      var messages: [String] = []
      while let segment = remaining.popLast() {
        if let message = catalog.unlink(consume segment, in: &state) { messages.append(message) }
      }
      return messages
    }
    for message in messages ?? [] { session.tell(message) }
  }
}
