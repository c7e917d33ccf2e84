import CairnStore

/// Checks every byte of every file in a store, continues after each error, and changes nothing.
struct Verifier: ~Copyable {
  private let directory: Directory
  private(set) var report = CheckReport()
  private let progress: (WorkProgress) -> Void
  /// The number of bytes to check, as known so far.
  private var totalByteCount = 0

  static func verify(
    path: String, environment: Environment, progress: (WorkProgress) -> Void
  ) throws(StoreError) -> CheckReport {
    try withoutActuallyEscaping(progress) { (progress) throws(StoreError) -> CheckReport in
      try verify(path: path, environment: environment, telling: progress)
    }
  }

  private static func verify(
    path: String, environment: Environment,
    telling progress: @escaping (WorkProgress) -> Void
  ) throws(StoreError) -> CheckReport {
    let directory = try Directory(
      path: path, fileSystem: environment.fileSystem, readOnly: true)
    var report = CheckReport()
    // Take the lock first: names change while a writer is at work.
    let lockFile = try directory.openFile(FileName.lock, mode: .readOnly)
    try lockFile?.lockStore(at: path, exclusively: false)
    defer { lockFile?.unlock() }
    let names = try directory.names()
    guard names.contains(FileName.manifest) else {
      guard names.contains(where: { FileName.identifier(in: $0) != nil }) else {
        throw .noStore(path: path)
      }
      report.damage.append(Damage(place: .ofMissingManifest(among: names)))
      report.isComplete = true
      return report
    }
    guard let lockFile else { throw .withoutLock(path: path) }
    let hasLostPages = try SyncFailureMark(lockFile: lockFile).isSet()
    var verifier = Verifier(directory: directory, report: report, progress: progress)
    try verifier.noting { (verifier) throws(StoreError) in
      guard let manifest = try ManifestFile(directory: directory).read() else {
        throw .noStore(path: path)
      }
      verifier.report.byteCount += manifest.encoded().count
      let files = SegmentFiles(
        directory: directory, storeIdentifier: manifest.storeIdentifier, usesMappings: false,
        reservesBlocks: false,
        table: SegmentTable())
      try verifier.check(
        manifest, files: files, names: names, hasLostPages: hasLostPages, environment: environment)
      try verifier.findReplaced(in: files)
    }
    verifier.report.isComplete = true
    return verifier.report
  }

  /// Checked segments, each up to the end of its records.
  private var scanned: [(id: SegmentID, salt: UInt64, byteCount: Int)] = []
  /// The highest sequence number seen, even in discarded records.
  private var highestSequence: SequenceNumber = 0
  /// The base sequence number of each segment.
  private var bases: [(file: String, sequence: SequenceNumber)] = []
  /// The checkpoint, for comparison with the log.
  private var audit: CheckpointAudit?
  /// Damaged values, by their keys.
  private var damaged: [[UInt8]: [(sequence: SequenceNumber, number: Int)]] = [:]

  private init(
    directory: Directory, report: CheckReport,
    progress: @escaping (WorkProgress) -> Void
  ) {
    self.directory = directory
    self.report = report
    self.progress = progress
  }

  /// Runs a check and reports any corruption that it throws.
  private mutating func noting(
    _ body: (inout Verifier) throws(StoreError) -> Void
  ) throws(StoreError) {
    do { try body(&self) } catch {
      guard case .corrupt(let corruption) = error else { throw error }
      report.damage.append(Damage(place: corruption.withoutDirectory))
    }
  }

  private mutating func check(
    _ manifest: Manifest, files: SegmentFiles, names: [String], hasLostPages: Bool,
    environment: Environment
  ) throws(StoreError) {
    totalByteCount =
      report.byteCount + manifest.sealedSegments.reduce(0) { $0 + $1.byteCount }
      + (manifest.isClean ? manifest.openSegments.reduce(0) { $0 + $1.byteCount } : 0)
    let covered = try checkCheckpoint(manifest, files: files)
    for entry in manifest.sealedSegments {
      try noting { (verifier) throws(StoreError) in
        try verifier.check(
          id: entry.id, salt: entry.salt, byteCount: entry.byteCount, in: files,
          sealed: entry)
      }
    }
    if manifest.isClean {
      for entry in manifest.openSegments {
        try noting { (verifier) throws(StoreError) in
          try verifier.check(
            id: entry.id, salt: entry.salt, byteCount: entry.byteCount, in: files)
        }
      }
    } else {
      try noting { (verifier) throws(StoreError) in
        try verifier.checkUnclean(
          manifest, files: files, covered: covered, hasLostPages: hasLostPages,
          environment: environment)
      }
    }
    try checkLog(manifest)
    let listed = manifest.listedFiles
    let removable = Set(manifest.retiredIDs + manifest.pendingIDs)
    for name in names {
      guard let id = FileName.identifier(in: name), id < manifest.nextID,
        !listed.contains(name), !removable.contains(id)
      else { continue }
      report.damage.append(Damage(place: Corruption(file: name, offset: 0, cause: .unlistedFile)))
    }
  }

  /// Checks that are possible only if all the log's records were found.
  private mutating func checkLog(_ manifest: Manifest) throws(StoreError) {
    let isWhole = report.errors.allSatisfy {
      !FileName.isSegment($0.file) || $0.cause == .badValue || $0.cause == .badPadding
    }
    guard isWhole else { return }
    let highest = max(highestSequence, manifest.highestSequence)
    for base in bases where base.sequence > highest + 1 {
      report.damage.append(
        Damage(
          place: Corruption(
            file: base.file, offset: SegmentHeader.baseSequenceOffset, cause: .badHeader)))
    }
    guard let audit else { return }
    try noting { (verifier) throws(StoreError) in
      verifier.report.damage += try audit.differences().map { Damage(place: $0) }
    }
  }

  /// Checks the whole file of the checkpoint. Opening a store ignores a damaged checkpoint.
  ///
  /// - Returns: how many bytes of each segment the checkpoint covers; they were durable.
  private mutating func checkCheckpoint(
    _ manifest: Manifest, files: SegmentFiles
  ) throws(StoreError) -> [SegmentID: Int] {
    if manifest.checkpointID == 0 { return [:] }
    let name = FileName.checkpoint(manifest.checkpointID)
    var covered: [SegmentID: Int] = [:]
    try noting { (verifier) throws(StoreError) in
      let file: CheckpointFile
      do throws(StoreError) {
        file = try CheckpointFile(
          in: verifier.directory, id: manifest.checkpointID,
          storeIdentifier: manifest.storeIdentifier, checksum: manifest.checkpointChecksum)
      } catch {
        switch error {
        case .unsafeFile: throw .corrupt(Corruption(file: name, offset: 0, cause: .unsafeFile))
        // The checkpoint is from a later version. An open ignores it too.
        case .unsupportedVersion: return
        default: throw error
        }
      }
      verifier.totalByteCount += file.header.byteCount
      verifier.report.byteCount += file.header.byteCount
      let places = SegmentPlaces(file.header.segments)
      for shard in 0..<Checkpoint.shardCount {
        try verifier.noting { (_) throws(StoreError) in
          _ = try file.entries(ofShard: shard, in: places)
        }
      }
      verifier.highestSequence = file.header.lastSequence
      // An open ignores a checkpoint that does not fit the manifest.
      guard file.header.agrees(with: manifest) else {
        throw .corrupt(
          Corruption(file: name, offset: Checkpoint.floorSequenceOffset, cause: .badHeader))
      }
      for segment in file.header.segments { covered[segment.id] = segment.end }
      verifier.audit = CheckpointAudit(file, places, files: files, manifest: manifest)
      _ = try file.oldest(in: places)
    }
    return covered
  }

  /// Checks the segments of a store that was not closed: they must be sound up to where a recovery
  /// would cut the log.
  private mutating func checkUnclean(
    _ manifest: Manifest, files: SegmentFiles, covered: [SegmentID: Int], hasLostPages: Bool,
    environment: Environment
  ) throws(StoreError) {
    let boot = try environment.fileSystem.currentBoot(path: files.home.directory.path)
    let sameBoot = boot == manifest.bootIdentifier && !hasLostPages
    var tail = LogTail()
    for entry in manifest.openSegments {
      let durable = max(entry.byteCount, covered[entry.id] ?? 0)
      let name = FileName.segment(entry.id)
      guard let file = try directory.openFile(name, mode: .readOnly) else {
        try tail.addAbsent(entry, durable: durable)
        continue
      }
      try tail.scan(
        file, of: entry, storeIdentifier: manifest.storeIdentifier,
        byteCount: try file.status().byteCount, durable: durable, sameBoot: sameBoot)
    }
    try tail.resolve(sameBoot: sameBoot)
    highestSequence = max(highestSequence, tail.highestSequence)
    report.tornByteCount = tail.tornByteCount
    totalByteCount += tail.extents.reduce(0) { $0 + $1.end }
    for (entry, extent) in zip(manifest.openSegments, tail.extents)
    where extent.end > SegmentHeader.byteCount {
      try noting { (verifier) throws(StoreError) in
        try verifier.check(
          id: entry.id, salt: entry.salt, byteCount: extent.end, in: files)
      }
    }
  }

  /// Checks one segment up to the end of its records.
  private mutating func check(
    id: SegmentID, salt: UInt64, byteCount: Int, in files: SegmentFiles,
    sealed: Manifest.SealedSegment? = nil
  ) throws(StoreError) {
    let (file, header, fileByteCount) = try files.check(id: id, salt: salt, readOnly: true)
    guard fileByteCount >= byteCount else {
      throw .corrupt(Corruption(file: file.name, offset: fileByteCount, cause: .fileTooShort))
    }
    report.byteCount += byteCount
    defer {
      progress(
        WorkProgress(.reading, completedCount: report.byteCount, totalCount: totalByteCount))
    }
    scanned.append((id, salt, byteCount))
    bases.append((file.name, header.baseSequence))
    let segment = try openForAudit(id: id, salt: salt, byteCount: byteCount)
    var scanner = SegmentScanner(file: file, header: header, end: byteCount)
    var batch = BatchProgress()
    var offset = SegmentHeader.byteCount
    func note(_ offset: Int, _ cause: Corruption.Cause) {
      report.damage.append(Damage(place: Corruption(file: file.name, offset: offset, cause: cause)))
    }
    var isInHole = false
    // Records after a hole may belong to a batch that began in the hole or before it.
    var isInBrokenBatch = false
    while offset < byteCount {
      guard let record = try isInHole ? scanner.candidate(at: offset) : scanner.header(at: offset)
      else {
        // Report one error for each hole. Then try every offset until a record is found.
        if !isInHole { note(offset, .badRecordHeader) }
        isInHole = true
        isInBrokenBatch = true
        batch = BatchProgress()
        offset = scanner.candidateOffset(after: offset)
        continue
      }
      let next = offset + record.byteCount
      let isAccepted = batch.accept(record, at: offset)
      if !isAccepted {
        // Report one error for each batch.
        if !isInBrokenBatch { note(offset, .incompleteBatch) }
        batch = BatchProgress()
      }
      isInBrokenBatch = !isAccepted
      isInHole = false
      let sequence = header.baseSequence + UInt64(record.sequenceDelta)
      if record.kind != .roll { highestSequence = max(highestSequence, sequence) }
      if let segment { try noteForAudit(record, at: offset, in: segment, scanner: &scanner) }
      let isSound = try checkBody(record, sequence, at: offset, scanner: &scanner, file: file)
      if let sealed, record.kind != .roll,
        sequence < sealed.lowestSequence || sequence > sealed.highestSequence
      {
        note(offset, .badHeader)
      }
      if record.kind == .roll {
        if next != byteCount { note(next, .badLength) }
        return
      }
      if isSound { report.recordCount += 1 }
      offset = next
    }
    if let start = batch.start { note(start, .incompleteBatch) }
  }

  /// The segment in the checkpoint audit, or `nil` if there is no audit.
  private mutating func openForAudit(
    id: SegmentID, salt: UInt64, byteCount: Int
  ) throws(StoreError) -> Segment? {
    do throws(StoreError) {
      return try audit?.open(id: id, salt: salt, byteCount: byteCount)
    } catch {
      guard case .corrupt(let corruption) = error else { throw error }
      report.damage.append(Damage(place: corruption.withoutDirectory))
      audit = nil
      return nil
    }
  }

  private mutating func noteForAudit(
    _ record: RecordHeader, at offset: Int, in segment: Segment,
    scanner: inout SegmentScanner
  ) throws(StoreError) {
    do throws(StoreError) {
      try audit?.add(record, at: offset, in: segment, scanner: &scanner)
    } catch {
      // If the record to compare with has a damaged head, another check reports that.
      guard case .corrupt = error else { throw error }
      audit = nil
    }
  }

  /// Checks the value and the padding of a record.
  ///
  /// - Returns: whether the value is sound. Padding carries no data, so salvage copies a record
  ///   whose padding is damaged.
  private mutating func checkBody(
    _ record: RecordHeader, _ sequence: SequenceNumber, at offset: Int,
    scanner: inout SegmentScanner, file: File
  ) throws(StoreError) -> Bool {
    let valueStart = offset + record.headByteCount
    let isSound = try scanner.hasValidValue(record, at: offset)
    if !isSound {
      let place = Corruption(file: file.name, offset: valueStart, cause: .badValue)
      let key = try scanner.withKey(of: record, at: offset) { $0.copied() }
      damaged[key, default: []].append((sequence, report.damage.count))
      report.damage.append(Damage(place: place, keys: [key]))
    }
    let padding = valueStart + record.valueByteCount
    if try scanner.endOfData(from: padding, to: offset + record.byteCount) != padding {
      report.damage.append(
        Damage(place: Corruption(file: file.name, offset: padding, cause: .badPadding)))
    }
    return isSound
  }

  /// Scans all segments once more for records that replace damaged ones.
  private mutating func findReplaced(in files: SegmentFiles) throws(StoreError) {
    if damaged.isEmpty { return }
    for (id, salt, byteCount) in scanned {
      let (file, header, _) = try files.check(id: id, salt: salt, readOnly: true)
      var scanner = SegmentScanner(file: file, header: header, end: byteCount)
      var offset = SegmentHeader.byteCount
      while offset < byteCount {
        guard let record = try scanner.candidate(at: offset) else {
          offset = scanner.candidateOffset(after: offset)
          continue
        }
        if record.kind == .put || record.kind == .tombstone {
          let sequence = header.baseSequence + UInt64(record.sequenceDelta)
          let key = try scanner.withKey(of: record, at: offset) { $0.copied() }
          for older in damaged[key] ?? [] where older.sequence < sequence {
            report.damage[older.number].keyCount = 0
          }
        }
        offset += record.byteCount
      }
    }
  }
}
