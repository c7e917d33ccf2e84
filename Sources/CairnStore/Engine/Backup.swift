/// Copies a snapshot to a directory, as an independent store.
///
/// The bytes that a snapshot covers never change, so the backup copies segments as they are while
/// writers continue. It shares blocks if the filesystem can. Then it reads the whole copy back with
/// system calls. Last, it writes the manifest that makes the copy a store.
struct Backup {
  let session: Session
  let catalog: Catalog
  let recency: RecencyClock

  init(_ engine: Engine) {
    session = engine.session
    catalog = engine.catalog
    recency = engine.lookup.index.recency
  }

  /// - Parameter progress: called occasionally, with no lock held.
  func copy(
    _ snapshot: SnapshotState, to destination: String, progress: (WorkProgress) -> Void
  ) throws(StoreError) -> BackupReport {
    try session.checkProcess()
    try StoreCopy.checkDestination(destination, outside: session.directory)
    var copy = try StoreCopy.begin(at: destination, outside: session.directory)
    do throws(StoreError) {
      var report = BackupReport()
      report.version = snapshot.lastSequence
      report.entryCount = snapshot.index.count
      let files = try copySegments(of: snapshot, to: &copy, &report, progress)
      try verify(files, in: copy.directory, &report, progress)
      var manifest = catalog.withLock { state in
        Manifest(
          storeIdentifier: state.manifest.storeIdentifier, hashSecret: state.manifest.hashSecret,
          bootIdentifier: catalog.bootIdentifier)
      }
      manifest.lastSequence = snapshot.lastSequence
      manifest.lastTime = session.clock.now()
      manifest.sealedSegments = files.map(\.entry)
      let highestID = files.reduce(0) { max($0, $1.entry.id.rawValue) }
      manifest.nextID = highestID + 2
      if let checksum = try copyIndex(of: snapshot, files, id: highestID + 1, to: &copy) {
        manifest.checkpointID = highestID + 1
        manifest.checkpointChecksum = checksum
      }
      try copy.finish(manifest)
      return report
    } catch {
      copy.discard()
      throw error.located(in: session.path)
    }
  }

  /// A segment of the copy.
  private struct CopiedSegment {
    var source: Segment
    var entry: Manifest.SealedSegment
    var covered: Checkpoint.CoveredSegment
  }

  private func copySegments(
    of snapshot: SnapshotState, to copy: inout StoreCopy, _ report: inout BackupReport,
    _ progress: (WorkProgress) -> Void
  ) throws(StoreError) -> [CopiedSegment] {
    // Skip empty segments.
    let parts = zip(snapshot.segments, snapshot.covered).filter {
      $0.0.end > SegmentHeader.byteCount && $0.1.highestSequence > 0
    }
    let total = parts.reduce(0) { $0 + $1.0.end }
    var files: [CopiedSegment] = []
    for ((segment, end), covered) in parts {
      let file = try copy.createFile(segment.name)
      try segment.bytes().copy(byteCount: end, into: file)
      // The header was sound when the segment was opened, but may be damaged in the file by now.
      try file.write(segment.header.encoded().rawSpan, at: 0)
      // DURABILITY: the copies are on disk before the check reads them and the manifest lists them.
      try file.synchronize()
      let entry = Manifest.SealedSegment(
        id: segment.id, salt: segment.header.salt, byteCount: end,
        lowestSequence: covered.lowestSequence, highestSequence: covered.highestSequence,
        compactedAt: segment.compactedAt)
      files.append(CopiedSegment(source: segment, entry: entry, covered: covered))
      report.segmentCount += 1
      report.byteCount += end
      progress(
        WorkProgress(.copying, completedCount: report.byteCount, totalCount: total))
    }
    return files
  }

  /// Reads every byte of the copy.
  ///
  /// - Throws: `corrupt` if a header or a record is damaged, because an open would refuse the copy
  ///   or miss a key.
  private func verify(
    _ files: [CopiedSegment], in directory: Directory, _ report: inout BackupReport,
    _ progress: (WorkProgress) -> Void
  ) throws(StoreError) {
    var done = 0
    for copied in files {
      guard let file = try directory.openFile(copied.source.name, mode: .readOnly) else {
        throw .corrupt(
          Corruption(
            directory: directory.path, file: copied.source.name, offset: 0, cause: .missingFile))
      }
      try file.dropCache()
      try verifyHeader(of: copied, in: file)
      let end = copied.entry.byteCount
      var scanner = SegmentScanner(file: file, header: copied.source.header, end: end)
      try scanner.readAll(of: copied.source) { (scanner, header, offset) throws(StoreError) in
        if header.kind == .roll { return }
        if try scanner.hasValidValue(header, at: offset) { return }
        let place = Corruption(
          file: file.name, offset: offset + header.headByteCount, cause: .badValue)
        let key = try scanner.withKey(of: header, at: offset) { $0.copied() }
        report.damage.append(Damage(place: place, keys: [key]))
      }
      done += end
      progress(
        WorkProgress(.verifying, completedCount: done, totalCount: report.byteCount))
    }
  }

  private func verifyHeader(of copied: CopiedSegment, in file: File) throws(StoreError) {
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.byteCount)
    guard try file.read(into: &bytes, at: 0) == bytes.count else {
      throw copied.source.corruption(at: 0, .fileTooShort)
    }
    let header = try SegmentHeader(decoding: bytes.rawSpan, file: file.name)
    guard header == copied.source.header else { throw copied.source.corruption(at: 0, .badHeader) }
  }

  /// Writes a checkpoint for the copy, so that it opens at once and keeps access times. Returns
  /// `nil` if the store is empty. If the checkpoint cannot be written, the backup fails.
  private func copyIndex(
    of snapshot: SnapshotState, _ files: [CopiedSegment], id: UInt64, to copy: inout StoreCopy
  ) throws(StoreError) -> UInt32? {
    if files.isEmpty { return nil }
    let basis = CheckpointBasis(
      id: id, floor: 0, lastSequence: snapshot.lastSequence, snapshot: snapshot.index,
      segments: files.map(\.covered), unsynced: [])
    let file = try copy.createFile(FileName.checkpoint(id))
    let sampleCount = recency.state(now: session.clock.now()).samples.count + 8
    var writer = try CheckpointWriter(
      basis, samples: sampleCount, file: file, storeIdentifier: files[0].source.storeIdentifier)
    for shard in 0..<HashIndex.shardCount {
      try writer.add(try snapshot.index.peekEntries(inShard: shard), shard: shard)
    }
    let (tick, samples) = recency.state(now: session.clock.now())
    return try writer.finish(tick: tick, samples: samples).checksum
  }
}
