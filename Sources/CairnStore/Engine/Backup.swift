/// Copies a snapshot to a directory, as an independent store.
///
/// The bytes that a snapshot covers never change, so the backup copies segments as they are while
/// writers continue. It shares blocks if the filesystem can. Then it reads what it has copied back
/// with system calls. Last, it writes the manifest that makes the copy a store.
///
/// An earlier backup of the same store keeps the segments that have not changed.
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
    let earlier = try StoreCopy.resume(
      at: destination, of: catalog.withLock { $0.manifest.storeIdentifier },
      outside: session.directory)
    if earlier == nil {
      try StoreCopy.checkDestination(destination, outside: session.directory)
    }
    var copy =
      if let earlier { earlier } else {
        try StoreCopy.begin(at: destination, outside: session.directory)
      }
    do throws(StoreError) {
      var report = BackupReport()
      report.version = snapshot.lastSequence
      report.entryCount = snapshot.index.count
      let parts = parts(of: snapshot)
      try check(parts, of: snapshot, against: copy)
      let highestID = parts.reduce(0) { max($0, $1.segment.id.rawValue) }
      let checkpointID = max(highestID + 1, copy.earlier?.nextID ?? 0)
      try copy.announce(
        parts.filter { $0.entry(in: copy.earlier) == nil }.map(\.segment.id.rawValue)
          + [checkpointID])
      let files = try copySegments(parts, to: &copy, &report, progress)
      try verify(files, in: copy.directory, &report, progress)
      var manifest = catalog.withLock { state in
        Manifest(
          storeIdentifier: state.manifest.storeIdentifier, hashSecret: state.manifest.hashSecret,
          bootIdentifier: Manifest.noBoot)
      }
      manifest.lastSequence = snapshot.lastSequence
      manifest.lastTime = session.clock.now()
      manifest.sealedSegments = files.map(\.entry)
      manifest.nextID = checkpointID + 1
      if let checksum = try copyIndex(of: snapshot, files, id: checkpointID, to: &copy) {
        manifest.checkpointID = checkpointID
        manifest.checkpointChecksum = checksum
      }
      try copy.finish(manifest)
      return report
    } catch {
      copy.discard()
      throw error.located(in: session.path)
    }
  }

  /// What the snapshot has of a segment.
  private struct Part {
    var segment: Segment
    var end: Int
    var covered: Checkpoint.CoveredSegment
    /// Whether the store has written to the segment lately.
    var mayHaveChanged = false

    /// The segment in an earlier backup.
    func entry(in earlier: Manifest?) -> Manifest.SealedSegment? {
      earlier?.sealedSegments.first { $0.id == segment.id && $0.salt == segment.header.salt }
    }
  }

  /// A segment of the copy.
  private struct CopiedSegment {
    var source: Segment
    var entry: Manifest.SealedSegment
    var covered: Checkpoint.CoveredSegment
    /// 0 for a segment that an earlier backup has.
    var copiedByteCount: Int
  }

  /// At least as many segments as can be open at once.
  private static var openCount: Int { 10 }

  /// All segments but empty ones.
  private func parts(of snapshot: SnapshotState) -> [Part] {
    var parts = zip(snapshot.segments, snapshot.covered)
      .map { Part(segment: $0.0, end: $0.1, covered: $1) }
      .filter { $0.end > SegmentHeader.byteCount && $0.covered.highestSequence > 0 }
    // The open segment, and those that may be rolled but not sealed.
    let newest = parts.indices.sorted {
      parts[$0].covered.highestSequence > parts[$1].covered.highestSequence
    }
    for index in newest.prefix(Self.openCount) { parts[index].mayHaveChanged = true }
    return parts
  }

  /// Throws unless the snapshot continues an earlier backup.
  private func check(
    _ parts: [Part], of snapshot: SnapshotState, against copy: borrowing StoreCopy
  ) throws(StoreError) {
    guard let earlier = copy.earlier else { return }
    func refuse(_ reason: String) -> StoreError {
      .unusable(
        path: copy.directory.path, reason: "\(reason): make a new backup in another directory")
    }
    if earlier.lastSequence > snapshot.lastSequence {
      throw refuse("it is newer than the snapshot")
    }
    // After a restored backup or a power cut, the store may give the same ids again.
    let salts = Dictionary(
      uniqueKeysWithValues: earlier.sealedSegments.map { ($0.id, $0.salt) })
    let isOther = parts.contains { part in
      salts[part.segment.id].map { $0 != part.segment.header.salt } ?? false
    }
    if isOther { throw refuse("it has other segments than the store") }
  }

  private func copySegments(
    _ parts: [Part], to copy: inout StoreCopy, _ report: inout BackupReport,
    _ progress: (WorkProgress) -> Void
  ) throws(StoreError) -> [CopiedSegment] {
    let total = parts.reduce(0) { $0 + $1.end - ($1.entry(in: copy.earlier)?.byteCount ?? 0) }
    var files: [CopiedSegment] = []
    for part in parts {
      let segment = part.segment
      let count = try copySegment(part, to: &copy)
      let entry = Manifest.SealedSegment(
        id: segment.id, salt: segment.header.salt, byteCount: part.end,
        lowestSequence: part.covered.lowestSequence, highestSequence: part.covered.highestSequence,
        compactedAt: segment.compactedAt)
      files.append(
        CopiedSegment(
          source: segment, entry: entry, covered: part.covered, copiedByteCount: count))
      if count == 0 { continue }
      report.segmentCount += 1
      report.byteCount += count
      progress(
        WorkProgress(.copying, completedCount: report.byteCount, totalCount: total))
    }
    return files
  }

  /// - Returns: the number of bytes copied.
  private func copySegment(
    _ part: Part, to copy: inout StoreCopy
  ) throws(StoreError) -> Int {
    let segment = part.segment
    var known = 0
    let file: File
    if let entry = part.entry(in: copy.earlier) {
      guard let found = try copy.openFile(segment.name) else {
        throw .corrupt(
          Corruption(
            directory: copy.directory.path, file: segment.name, offset: 0, cause: .missingFile))
      }
      (known, file) = (entry.byteCount, found)
      let isWhole =
        known == part.end && entry.highestSequence == part.covered.highestSequence
      // A power cut, or a restored copy of the store, may have replaced records of a segment that
      // was open. Any segment made since then has another salt.
      let wasOpen =
        part.mayHaveChanged || entry.highestSequence + 1 > copy.earlier?.lastSequence ?? 0
      if isWhole, !wasOpen, try file.status().byteCount >= known { return 0 }
      guard known <= part.end, try isSame(segment, in: file, through: known) else {
        throw .unusable(
          path: copy.directory.path,
          reason: "it has other records than the store: make a new backup in another directory")
      }
      if isWhole { return 0 }
    } else {
      file = try copy.createFile(segment.name)
    }
    try segment.bytes().copy(from: known, byteCount: part.end - known, into: file)
    // The header was sound when the segment was opened, but may be damaged in the file by now.
    if known == 0 { try file.write(segment.header.encoded().rawSpan, at: 0) }
    // DURABILITY: the copies are on disk before the check reads them and the manifest lists them.
    try file.synchronize()
    return part.end - known
  }

  /// Whether a copy has the first records of a segment.
  private func isSame(
    _ segment: Segment, in file: File, through end: Int
  ) throws(StoreError) -> Bool {
    let source = try segment.bytes()
    let pieceByteCount = 1 << 20
    var (ours, theirs) = (
      [UInt8](repeating: 0, count: pieceByteCount), [UInt8](repeating: 0, count: pieceByteCount)
    )
    for offset in stride(from: SegmentHeader.byteCount, to: end, by: pieceByteCount) {
      let count = min(pieceByteCount, end - offset)
      guard
        try source.read(into: &ours, bufferOffset: 0, byteCount: count, at: offset) == count,
        try file.read(into: &theirs, bufferOffset: 0, byteCount: count, at: offset) == count,
        ours.rawSpan.extracting(first: count).equals(theirs.rawSpan.extracting(first: count))
      else { return false }
    }
    return true
  }

  /// Reads every byte of the segments that were copied.
  ///
  /// - Throws: `corrupt` if a header or a record is damaged, because an open would refuse the copy
  ///   or miss a key.
  private func verify(
    _ files: [CopiedSegment], in directory: Directory, _ report: inout BackupReport,
    _ progress: (WorkProgress) -> Void
  ) throws(StoreError) {
    var done = 0
    for copied in files where copied.copiedByteCount > 0 {
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
      done += copied.copiedByteCount
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
