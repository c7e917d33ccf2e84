import CairnRepair
import CairnStore

/// Reads segments with the store's own code and compares the result with the reference.
struct StoreProbe {
  private struct FixedClock: WallClock {
    func now() -> Timestamp { SegmentCheck.now }
  }

  /// A store opened for reading has no background work.
  private struct NoBackgroundQueue: BackgroundQueue {
    func run(_ job: @escaping @Sendable () -> Void) { job() }
    func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {}
  }

  let log: ReferenceLog
  private let byteCount: Int

  init(log: ReferenceLog) {
    self.log = log
    byteCount = log.segments.reduce(0) { $0 + $1.bytes.count }
  }

  private var files: [(name: String, bytes: [UInt8])] {
    log.segments.map { (FileName.segment($0.header.id), $0.bytes) }
  }

  private func file(_ index: Int, of fileSystem: FixedFileSystem) throws -> File {
    let directory = try Directory(path: "/", fileSystem: fileSystem, readOnly: true)
    guard let file = try directory.openFile(files[index].name, mode: .readOnly) else {
      throw FuzzFailure("probe: no file")
    }
    return file
  }

  /// Looks for a record at every offset. The work must be proportional to the bytes.
  func checkScanner() throws {
    for (index, segment) in log.segments.enumerated() {
      let fileSystem = FixedFileSystem(files: files)
      let end = segment.bytes.count
      var scanner = SegmentScanner(
        file: try file(index, of: fileSystem), header: segment.header, end: end)
      let budget = scanner.candidateBudget
      for offset in stride(from: SegmentHeader.byteCount, to: end, by: 8) {
        guard let header = try scanner.candidate(at: offset) else { continue }
        try require(
          header.byteCount <= end - offset, "scanner: the record at \(offset) passes the end")
        try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) in
          precondition(key.byteCount == header.keyByteCount)
        }
      }
      let work = budget - scanner.candidateBudget
      let longestHead = RecordHeader.maximumFieldByteCount + 65_535 + 65_535
      try require(
        work <= budget + longestHead + 1024 * (end / 8),
        "scanner: checksums over \(work) bytes for \(end)")
      try require(
        fileSystem.readByteCount <= 2 * end, "scanner: read \(fileSystem.readByteCount) of \(end)")
    }
  }

  /// Checks the end of an unclean log, for both boots.
  func checkTail() throws {
    for sameBoot in [false, true] {
      let fileSystem = FixedFileSystem(files: files)
      var tail = LogTail()
      var refusal: ReferenceLog.Place?
      for (index, segment) in log.segments.enumerated() {
        let file = try file(index, of: fileSystem)
        do throws(StoreError) {
          try tail.scan(
            file: file, header: segment.header, byteCount: segment.bytes.count,
            durable: segment.knownLength)
        } catch {
          guard case .corrupt(let corruption) = error,
            [.badLength, .fileTooShort].contains(corruption.cause)
          else { throw FuzzFailure("tail: not an error of a scan: \(error)") }
          refusal = place(corruption)
          break
        }
        try compare(tail.extents[index], log.extents[index])
      }
      try require(
        refusal == log.refusal,
        "tail: \(String(describing: refusal)), expected \(String(describing: log.refusal))")
      if refusal != nil { continue }
      try require(
        fileSystem.readByteCount <= 6 * byteCount,
        "tail: read \(fileSystem.readByteCount) of \(byteCount)")
      let expected = log.outcome(sameBoot: sameBoot)
      var found: ReferenceLog.Outcome
      do throws(StoreError) {
        try tail.resolve(sameBoot: sameBoot)
        found = .ends(tail.extents.map(\.end), damaged: tail.damagedValues.map(place))
      } catch {
        guard case .corrupt(let corruption) = error, corruption.cause == .lostRecords else {
          throw FuzzFailure("tail: not an error of recovery: \(error)")
        }
        found = .corrupt(place(corruption))
      }
      try require((0...byteCount).contains(tail.tornByteCount), "tail: torn \(tail.tornByteCount)")
      try require(found == expected, "tail: same boot \(sameBoot): \(found), expected \(expected)")
    }
  }

  private func place(_ corruption: Corruption) -> ReferenceLog.Place {
    ReferenceLog.Place(
      segment: files.firstIndex { $0.name == corruption.file } ?? -1, offset: corruption.offset)
  }

  private func compare(_ found: LogTail.Extent, _ expected: ReferenceLog.Extent) throws {
    func same<Value: Equatable>(_ found: Value, _ expected: Value, _ what: String) throws {
      try require(found == expected, "tail: \(what) \(found), expected \(expected)")
    }
    try same(found.end, expected.hole, "end")
    try same(found.lastUnit, expected.lastUnit, "last unit")
    try same(found.hasRolled, expected.hasRolled, "roll")
    try same(found.hasLaterRecords, expected.hasLaterRecords, "later records")
    try same(found.syncMark, expected.mark, "sync mark")
    try same(
      found.damagedValues.map { [$0.offset, $0.unit] },
      expected.unsound.map { [$0.offset, $0.unit] }, "damaged values")
  }

  /// Opens a store of these segments for reading, reads it and verifies it.
  func checkStore(isClean: Bool, sameBoot: Bool) throws {
    let manifest = manifest(isClean: isClean, isSealed: isClean && sameBoot, sameBoot: sameBoot)
    let fileSystem = FixedFileSystem(
      files: [(FileName.lock, []), (FileName.manifest, manifest.encoded())] + files,
      bootIdentifier: SegmentCheck.boot)
    let environment = Environment(fileSystem: fileSystem, background: NoBackgroundQueue())
    let expected = isClean ? log.cleanOutcome() : log.outcome(sameBoot: sameBoot)

    let report = try Store.verify(path: "/", environment: environment)
    let errors = report.errors.filter { ![.badValue, .badPadding].contains($0.cause) }
    if case .corrupt(let place) = expected {
      try require(
        errors.contains { $0.file == files[place.segment].name },
        "verify: nothing found, expected \(expected)")
    } else {
      try require(errors.isEmpty || mayRefuse, "verify: \(errors), expected \(expected)")
    }

    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.mapsFiles = false
    configuration.clock = FixedClock()
    let store: Store
    do {
      store = try Store(
        path: "/", configuration: configuration, environment: environment, readOnly: true)
    } catch {
      guard case .corrupt(let corruption) = error else {
        throw FuzzFailure("open: not an error of opening: \(error)")
      }
      if case .corrupt(let place) = expected {
        try require(
          corruption.file == files[place.segment].name, "open: \(corruption), expected \(place)")
      } else {
        try require(mayRefuse, "open: \(corruption), expected \(expected)")
      }
      return
    }
    guard case .ends(let ends, let damaged) = expected else {
      throw FuzzFailure("open: expected \(expected)")
    }
    if !isClean {
      let recovery = try store.statistics().recovery
      try require(
        recovery.damage.map(\.place).map(place) == damaged, "open: damaged \(recovery.damage)")
    }
    try checkContents(of: store, ends: ends)
    try require(
      fileSystem.readByteCount <= 64 * byteCount + (64 << 10),
      "store: read \(fileSystem.readByteCount) of \(byteCount)")
  }

  private func manifest(isClean: Bool, isSealed: Bool, sameBoot: Bool) -> Manifest {
    var manifest = Manifest(
      storeIdentifier: log.segments[0].header.storeIdentifier,
      hashSecret: [UInt8](repeating: 7, count: 16),
      bootIdentifier: sameBoot ? SegmentCheck.boot : [UInt8](repeating: 1, count: 16))
    manifest.isClean = isClean
    let headers = log.segments.map(\.header)
    manifest.nextID = 1 + (headers.map(\.id.rawValue).max() ?? 0)
    manifest.lastSequence = headers.map(\.baseSequence).max() ?? 0
    for segment in log.segments {
      let id = segment.header.id
      let salt = segment.header.salt
      if isSealed {
        manifest.sealedSegments.append(
          Manifest.SealedSegment(
            id: id, salt: salt, byteCount: segment.bytes.count, lowestSequence: 1,
            highestSequence: FormatVersion.highestSequence, compactedAt: 0))
      } else {
        manifest.openSegments.append(
          Manifest.OpenSegment(
            id: id, salt: salt, byteCount: isClean ? segment.bytes.count : segment.knownLength))
      }
    }
    return manifest
  }

  /// Whether there may be records with numbers that no manifest can bound.
  private var mayRefuse: Bool {
    log.segments.contains { $0.header.baseSequence > FormatVersion.highestSequence - 1 << 33 }
  }

  private func checkContents(of store: Store, ends: [Int]) throws {
    var liveCount = 0
    for (key, (record, sequence)) in log.newest(ends: ends) {
      let hasExpired =
        record.expires.map { $0 <= SegmentCheck.now.millisecondsSinceEpoch } ?? false
        || record.idleLimit == 0
      let isLive = record.kind == 1 && !hasExpired
      if isLive { liveCount += 1 }
      do {
        let entry = try store.entry(forKey: key)
        guard let entry else {
          try require(!isLive, "store: the record at \(record.offset) is missing")
          continue
        }
        try require(
          isLive && record.hasValidValue && entry.value == record.value
            && entry.metadata == record.metadata && entry.info.version == sequence,
          "store: the record at \(record.offset) is read as another")
      } catch StoreError.corrupt(let corruption) {
        try require(
          corruption.cause == .badValue && isLive && !record.hasValidValue,
          "store: \(corruption), the record is at \(record.offset)")
      }
    }
    var visited = 0
    try store.forEachKey { _ in
      visited += 1
      return .next
    }
    try require(visited == liveCount, "store: \(visited) keys, expected \(liveCount)")
  }
}
