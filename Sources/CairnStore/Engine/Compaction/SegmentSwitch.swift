/// The end of a round of a compaction: the copies replace the originals.
///
/// First, one manifest lists the new segments instead of the old ones. Then the entries that still
/// name an old location get the new one. Finally, the old segments leave the log and their files
/// are removed. This order maintains invariants 1 and 4 of `Compactor`.
struct SegmentSwitch {
  private let session: Session
  private let lookup: Lookup
  private let catalog: Catalog
  private let supply: SegmentSupply
  private let log: LogWriter
  private let checkpointer: Checkpointer

  init(_ compactor: Compactor) {
    session = compactor.session
    lookup = compactor.lookup
    catalog = compactor.catalog
    supply = compactor.supply
    log = compactor.log
    checkpointer = compactor.checkpointer
  }

  /// Puts the new segments into the log in place of the old ones. Returns `nil` if `removeAll` has
  /// taken the old ones in the meantime.
  func switchOver(
    _ inputs: [Segment], _ copier: borrowing CompactionCopier
  ) throws(StoreError) -> [Segment]? {
    let replaced = Set(inputs.map(\.id))
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
        try catalog.synchronizeNames(&state)
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
        // DURABILITY: before the switch the old segments are the log; after it the new ones are.
        // The old files are removed only when the manifest without them is on disk.
        func list(in manifest: inout Manifest) {
          manifest.sealedSegments.removeAll { replaced.contains($0.id) }
          manifest.retiredIDs += inputs.map(\.id.rawValue)
          manifest.sealedSegments += outputs.map(\.sealedEntry)
          manifest.pendingIDs.removeAll { written.contains($0) }
        }
        do throws(StoreError) { try supply.replaceManifest(&state, list) } catch {
          // A full disk may have room for a manifest that seals no more than before.
          guard case .noSpace = error else { throw error }
          try catalog.replace(&state, list)
        }
      } catch {
        // No index entry names these segments.
        for output in outputs { lookup.table.remove(output) }
        throw error
      }
      // The inputs stay until no entry names them: writers look there for the records that they
      // replace.
      log.withLock { appender in
        appender.sealed += outputs
        appender.holdsCopies = true
      }
      return outputs
    }
  }

  /// Takes segments that no entry names out of the log.
  ///
  /// - Returns: the segments that `removeAll` has not taken in the meantime.
  func takeOut(_ inputs: [Segment]) -> [Segment] {
    // Snapshots wait for this.
    defer { log.wakeAll() }
    return log.withLock { appender in
      let replaced = Set(inputs.map(ObjectIdentifier.init))
      defer {
        appender.sealed.removeAll { replaced.contains(ObjectIdentifier($0)) }
        appender.holdsCopies = false
      }
      let removed = appender.sealed.filter { replaced.contains(ObjectIdentifier($0)) }
      // Here, because only the holder of the log's lock changes counts.
      for segment in removed { segment.usage.killAll() }
      return removed
    }
  }

  /// Makes the entries of copied records name the copies.
  ///
  /// Runs without the catalog's lock. If `removeAll` comes in between, moves nothing: the granules
  /// of the segments may then belong to other segments, and entries may name records there.
  func move(
    _ copier: borrowing CompactionCopier, from inputs: [Segment], to outputs: [Segment]
  ) {
    move(copier.moves) { move in
      let (input, output) = (inputs[Int(move.input)], outputs[Int(move.output)])
      if output.isRetired { return }
      let old = input.location(at: Int(move.oldOffset) << 3)
      let new = output.location(at: Int(move.newOffset) << 3)
      // If an entry now names another record, that record is newer.
      guard lookup.index.relocate(move.hash, from: old, to: new) else { return }
      output.usage.revive(byteCount: move.newByteCount)
      input.usage.kill(byteCount: move.oldByteCount)
    }
  }

  /// Moves entries, a few at a time.
  private func move(
    _ moves: [CompactionCopier.Move], _ body: (CompactionCopier.Move) -> Void
  ) {
    var next = 0
    var groups = 0
    while next < moves.count {
      let end = min(next + Self.moveLimit, moves.count)
      // Under the log's lock, so that writers find an entry's record where they saw it.
      log.withLock { _ in
        for number in next..<end { body(moves[number]) }
      }
      next = end
      groups += 1
      // Let threads that wait for the lock take it.
      if groups % 8 == 0 { session.environment.pause(.microseconds(50)) }
    }
  }

  /// How many entries are moved before the log's lock is released.
  private static let moveLimit = 64

  /// Removes the files of segments that have left the log. Readers that hold a segment continue.
  func unlinkFiles(of segments: consuming [Segment]) {
    if segments.isEmpty { return }
    // Remove them one by one. The file of an unmapped segment is opened before it is unlinked, and
    // closed when its last reader ends, so few files are open at a time.
    var remaining = segments
    remaining.reverse()
    // If the store has been closed in the meantime, the next open removes the files.
    let messages = try? catalog.change { (state) throws(StoreError) in
      var messages: [String] = []
      while let segment = remaining.popLast() {
        if let message = catalog.unlink(consume segment, in: &state) { messages.append(message) }
      }
      return messages
    }
    for message in messages ?? [] { session.tell(.warning, .maintenance, message) }
  }
}
