extension OpenedStore {
  /// The checkpoint that the manifest lists, if it is usable. A defective checkpoint only costs a
  /// scan of the log.
  func usableCheckpoint(log: DiagnosticLog) -> CheckpointFile? {
    if manifest.checkpointID == 0 { return nil }
    do {
      let file = try CheckpointFile(
        in: directory, id: manifest.checkpointID, storeIdentifier: manifest.storeIdentifier,
        checksum: manifest.checkpointChecksum)
      guard file.header.agrees(with: manifest) else {
        throw StoreError.corrupt(
          Corruption(
            file: file.name, offset: Checkpoint.floorSequenceOffset, cause: .badHeader))
      }
      return file
    } catch {
      log(.warning, .recovery, path: directory.path, Self.uselessCheckpoint(error))
      return nil
    }
  }

  /// Loads a checkpoint into the index. Returns `false` if it turns out to be unusable.
  mutating func apply(_ file: CheckpointFile, log: DiagnosticLog) throws(StoreError) -> Bool {
    var byID: [SegmentID: Segment] = [:]
    for segment in segments { byID[segment.id] = segment }
    for (number, covered) in file.header.segments.enumerated() {
      guard let segment = byID[covered.id], covered.end < ends[covered.id] ?? 0,
        try !Self.hasRecord(segment, at: covered.end)
      else { continue }
      let damage = Corruption(
        file: file.name, offset: file.header.offset(ofSegment: number), cause: .differsFromLog)
      log(
        .warning, .recovery, path: directory.path,
        Self.uselessCheckpoint(StoreError.corrupt(damage)))
      return false
    }
    // Shards are read under their locks, and the log may use the store. So the log is called later.
    let warn: @Sendable (String) -> Void = { [background, path = directory.path] text in
      guard log.takes(.warning) else { return }
      background.run { log(.warning, .recovery, path: path, text) }
    }
    let source = CheckpointSource(
      file, segments: byID, hash: hash, floor: manifest.floorSequence, recency: index.recency,
      warn: warn)
    let header = file.header
    index.recency.restore(tick: header.tick, samples: header.samples, now: clock.now())
    index.attach(source, counts: header.shards.map { ($0.count, $0.expirableCount) })
    if source.dropsEntries {
      do throws(StoreError) { try index.loadAll() } catch {
        log(.warning, .recovery, path: directory.path, Self.uselessCheckpoint(error))
        index.removeAll()
        return false
      }
    }
    for covered in header.segments { byID[covered.id]?.usage.restore(covered) }
    if header.tick > IndexEntry.tickLimit / 16 {
      source.forgetOldest()
      do throws(StoreError) { try index.compressTicks() } catch {
        log(.warning, .recovery, path: directory.path, "the order of accesses is lost: \(error)")
      }
    }
    checkpoint = header
    checkpointSource = source
    return true
  }

  private static func hasRecord(_ segment: Segment, at offset: Int) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let record = try Record(in: segment, at: offset, part: .head, byCalls: true)
      return record.header.byteCount > 0
    } catch {
      // Replay reads the same bytes next, and would throw other errors too.
      if case .corrupt = error { return false }
      throw error
    }
  }

  private static func uselessCheckpoint(_ error: any Error) -> String {
    "the whole log is read, because the checkpoint cannot be used: \(error)"
  }
}
