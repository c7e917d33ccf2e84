import CairnStore

/// A store on a simulated disk, with the history of what was written to it and the place of each
/// record.
struct SalvageHistory {
  /// A record as it was written.
  struct Written {
    var file: String
    var head: Range<Int>
    var value: Range<Int>
    var version: UInt64
    /// `nil` for a removal.
    var bytes: [UInt8]?
    /// Whether the value got to the file. A kill or a power cut may have prevented that.
    var isSound: Bool
    var isInBatch: Bool
    /// Whether the manifest covers the record: its segment is sealed, or the store was closed.
    var isSettled: Bool
  }

  /// A record that does not count.
  struct Stray {
    var file: String
    var range: Range<Int>
    var version: UInt64
    /// Whether the value got to the file.
    var isSound: Bool
  }

  enum End: CaseIterable {
    case closed, killed, powerCut
  }

  var disk = SimulatedDisk()
  var end: End
  /// The records of each key in the store's files, oldest first.
  var records: [[UInt8]: [Written]] = [:]
  /// Every value that the key ever had, by version.
  var values: [[UInt8]: [UInt64: SalvageValue]] = [:]
  /// The records of each key where an open does not look: in segments that the manifest does not
  /// list, which are the old or the new files of a compaction, and beyond the lengths that it
  /// lists.
  var strays: [[UInt8]: [Stray]] = [:]
  /// The segments that the manifest does not list.
  var unlisted: [String] = []
  /// The last record of a log that was not closed, and the last record of its last batch if that
  /// ends the log.
  var lastRecord: (file: String, range: Range<Int>)?
  /// Keys of records after the first gap of a segment that was still open. If a power cut made the
  /// gap, they may belong to the last batch, whose sound records a salvage copies.
  var keysAfterGap: Set<[UInt8]> = []
  var lastOfLastBatch: (file: String, range: Range<Int>)?
  /// The versions of the records of that batch.
  var lastBatch: Set<UInt64> = []
  /// Whether a segment has numbers out of order.
  var isUnordered = false
  private var manifest: Manifest? {
    disk.contents(of: "/store/MANIFEST").flatMap { try? Manifest(decoding: $0.rawSpan) }
  }

  init(_ random: inout FuzzRandom) throws {
    end = End.allCases[random.below(3)]
    let clock = ManualClock()
    var configuration = StoreConfiguration.simulated(clock)
    if random.once(in: 2) {
      // Keeps background compaction busy.
      configuration.spaceBound = 1.1
      configuration.deadByteFloor = 0
    }
    if random.once(in: 3) { try compactMiddle(clock, &random) }
    let sessions = 1 + random.below(3)
    for session in 1...sessions {
      let process = SimulatedProcess.start(on: disk, seed: random.next())
      let store = try process.open(configuration)
      for _ in 0..<(1 + random.below(25)) {
        try write(to: store, &random)
        if random.once(in: 12) { process.queue.runAll() }
        if random.once(in: 12) { try store.sync() }
        clock.advance(by: .milliseconds(random.below(5000)))
      }
      if random.once(in: 2) { try compact(store, &random) }
      if random.once(in: 3) {
        try writeBatch(of: 1 + random.below(6), to: store, &random)
      } else {
        try put([1], key: Array("end".utf8), to: store, &random)
      }
      if end == .closed || session < sessions && random.once(in: 2) {
        try store.close()
        process.queue.runAll()
      } else if random.once(in: 2) {
        try dieInCompaction(process, store, &random)
      }
      process.kill()
    }
    if end == .powerCut {
      var chooser = RandomCut(random.split())
      disk = disk.afterPowerCut(&chooser)
    }
    findRecords()
  }

  /// Compacts the second of three segments, and the result together with the third, whose numbers
  /// come first then.
  private mutating func compactMiddle(_ clock: ManualClock, _ random: inout FuzzRandom) throws {
    var configuration = StoreConfiguration.simulated(clock)
    configuration.spaceBound = 1.1
    configuration.deadByteFloor = 0
    func key(_ name: String) -> [UInt8] { Array(name.utf8) }
    for session in 0..<4 as Range<UInt8> {
      let process = SimulatedProcess.start(on: disk, seed: random.next())
      let store = try process.open(configuration)
      if session < 3 {
        let cold = [UInt8](repeating: session, count: 3000)
        if session != 1 { try put(cold, key: key("cold\(session)"), to: store, &random) }
        for _ in 0..<(session == 1 ? 40 : 1) {
          try put([session], key: key("key\(session)"), to: store, &random)
        }
        try put([session], key: key("warm\(session)"), to: store, &random)
      } else {
        try store.maintain()
        for number in 1..<3 { try put([9], key: key("warm\(number)"), to: store, &random) }
        try store.compact()
      }
      // The next process seals the segment.
      process.kill()
    }
  }

  private mutating func put(
    _ value: [UInt8], key: [UInt8], to store: Store, _ random: inout FuzzRandom
  ) throws {
    // No value expires while the history is made and examined.
    _ = try store.setValue(
      value, forKey: key,
      options: EntryOptions(
        cost: random.once(in: 4) ? Int(random.next() >> 8) : nil,
        lifetime: random.once(in: 3) ? .seconds(100_000 + random.below(1000)) : .standard,
        idleLimit: random.once(in: 5) ? .seconds(50_000 + random.below(1000)) : nil,
        metadata: [1, 2, 3]))
    guard let entry = try store.entry(forKey: key), entry.value == value else {
      throw FuzzFailure("a value differs from what was just written")
    }
    values[key, default: [:]][entry.info.version] = SalvageValue(entry)
  }

  private mutating func setLifetime(_ key: [UInt8], in store: Store, _ random: inout FuzzRandom)
    throws
  {
    let before = try store.entry(forKey: key)
    let isThere = try store.setLifetime(.seconds(100_000 + random.below(2000)), forKey: key)
    let after = try store.entry(forKey: key)
    guard isThere == (before != nil), before?.value == after?.value,
      before?.metadata == after?.metadata, before?.info.givenCost == after?.info.givenCost,
      before?.info.idleLimit == after?.info.idleLimit
    else { throw FuzzFailure("a change of a lifetime changes more than the lifetime") }
    if let after { values[key, default: [:]][after.info.version] = SalvageValue(after) }
  }

  /// Compacts the store completely, perhaps twice with writes in between.
  private mutating func compact(
    _ store: Store, _ random: inout FuzzRandom, mayWrite: Bool = true
  ) throws {
    _ = try store.compact()
    guard mayWrite, random.once(in: 3) else { return }
    for _ in 0..<2 { try put([2], key: Array("key\(random.below(8))".utf8), to: store, &random) }
    _ = try store.compact()
  }

  /// Ends the process during a compaction: just before it removes a file, or anywhere.
  private mutating func dieInCompaction(
    _ process: SimulatedProcess, _ store: Store, _ random: inout FuzzRandom
  ) throws {
    var choices = random.split()
    var callsToDeath = choices.once(in: 2) ? choices.below(80) : -1
    process.fileSystem.intervene = { call in
      if callsToDeath < 0 { return call == .unlink && choices.once(in: 3) ? .die : nil }
      callsToDeath -= 1
      return callsToDeath < 0 ? .die : nil
    }
    do { try compact(store, &random, mayWrite: false) } catch {
      guard process.fileSystem.isDead else { throw error }
    }
  }

  private mutating func write(to store: Store, _ random: inout FuzzRandom) throws {
    let key = Array("key\(random.below(8))".utf8)
    switch random.below(11) {
    case 0..<2: try store.removeValue(forKey: key)
    case 2..<4:
      try writeBatch(of: 1 + random.below(4), to: store, &random)
    case 4 where random.once(in: 8): try store.removeAll()
    case 4..<6: try setLifetime(key, in: store, &random)
    case 10: try compact(store, &random)
    default:
      let limit = random.once(in: 20) ? 30_000 : 150
      try put(random.bytes(count: random.below(limit)), key: key, to: store, &random)
    }
  }

  private mutating func writeBatch(
    of count: Int, to store: Store, _ random: inout FuzzRandom
  ) throws {
    var writes: [(key: [UInt8], value: [UInt8]?)] = []
    for _ in 0..<count {
      let key = Array("key\(random.below(8))".utf8)
      writes.append((key, random.once(in: 3) ? nil : random.bytes(count: random.below(100))))
    }
    try store.write { batch in
      for (key, value) in writes {
        if let value {
          try batch.setValue(value, forKey: key)
        } else {
          try batch.removeValue(forKey: key)
        }
      }
    }
    let last = try store.statistics().lastVersion
    for (index, write) in writes.enumerated() {
      if let value = write.value {
        values[write.key, default: [:]][last - UInt64(writes.count - 1 - index)] =
          SalvageValue(value)
      }
    }
  }

  /// Finds the records in the segments that count, as far as they can be read without a gap.
  private mutating func findRecords() {
    guard let manifest else { return }
    let ends =
      manifest.sealedSegments.map { ($0.id, $0.byteCount) }
      + manifest.openSegments.map { ($0.id, manifest.isClean ? $0.byteCount : Int.max) }
    for (id, end) in ends {
      let name = FileName.segment(id)
      guard let bytes = disk.contents(of: "/store/\(name)") else { continue }
      let isSettled = end < .max
      findRecords(in: bytes.rawSpan, file: name, end: end, isSettled: isSettled)
      if !isSettled { noteKeysAfterGap(in: bytes.rawSpan, file: name) }
    }
    for key in records.keys { records[key]?.sort { $0.version < $1.version } }
    let lengths = Dictionary(uniqueKeysWithValues: ends.map { (FileName.segment($0.0), $0.1) })
    for name in disk.names(at: "/store") where FileName.isSegment(name) {
      if lengths[name] == nil { unlisted.append(name) }
      findStrays(in: name, from: lengths[name] ?? SegmentHeader.byteCount)
    }
  }

  private mutating func noteKeysAfterGap(in bytes: RawSpan, file: String) {
    guard let header = try? SegmentHeader(decoding: bytes, file: file) else { return }
    let known = Set(records.values.joined().lazy.filter { $0.file == file }.map(\.head.lowerBound))
    for offset in stride(from: SegmentHeader.byteCount, to: bytes.byteCount, by: 8) {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      guard !known.contains(offset),
        let record = RecordHeader(decoding: rest, limit: rest.byteCount),
        record.hasValidChecksum(rest, at: offset, seed: header.recordSeed)
      else { continue }
      keysAfterGap.insert(rest.extracting(record.keyRange).copied())
    }
  }

  private mutating func findStrays(in file: String, from start: Int) {
    guard let bytes = disk.contents(of: "/store/\(file)"), start < bytes.count else { return }
    let span = bytes.rawSpan
    guard let header = try? SegmentHeader(decoding: span, file: file) else { return }
    for offset in stride(from: start, to: span.byteCount, by: 8) {
      let rest = span.extracting(offset..<span.byteCount)
      guard let record = RecordHeader(decoding: rest, limit: rest.byteCount),
        record.hasValidChecksum(rest, at: offset, seed: header.recordSeed)
      else { continue }
      strays[rest.extracting(record.keyRange).copied(), default: []].append(
        Stray(
          file: file, range: offset..<(offset + record.headByteCount + record.valueByteCount),
          version: header.baseSequence + UInt64(record.sequenceDelta),
          isSound: Self.isSound(record, in: rest)))
    }
  }

  private static func isSound(_ record: RecordHeader, in bytes: RawSpan) -> Bool {
    CRC32C.checksum(of: bytes.extracting(record.valueRange)) == record.valueChecksum
  }

  private mutating func noteLast(
    _ record: RecordHeader, _ version: UInt64, at offset: Int, in file: String
  ) {
    lastRecord = (file, offset..<(offset + record.byteCount))
    if record.batchIndex == 0 { lastBatch = [] }
    lastOfLastBatch = nil
    guard record.flags.contains(.batch) else { return }
    lastBatch.insert(version)
    if record.batchIndex == record.batchCount - 1 {
      lastOfLastBatch = (file, offset..<(offset + record.headByteCount + record.valueByteCount))
    }
  }

  private mutating func findRecords(
    in bytes: RawSpan, file: String, end: Int, isSettled: Bool
  ) {
    guard let header = try? SegmentHeader(decoding: bytes, file: file) else { return }
    var offset = SegmentHeader.byteCount
    var last: UInt64 = 0
    while offset < min(end, bytes.byteCount) {
      let rest = bytes.extracting(offset..<bytes.byteCount)
      guard let record = RecordHeader(decoding: rest, limit: rest.byteCount),
        record.hasValidChecksum(rest, at: offset, seed: header.recordSeed), record.kind != .roll
      else { return }
      let value = offset + record.headByteCount
      let version = header.baseSequence + UInt64(record.sequenceDelta)
      if version < last { isUnordered = true }
      last = version
      if !isSettled { noteLast(record, version, at: offset, in: file) }
      let range = value..<(value + record.valueByteCount)
      records[rest.extracting(record.keyRange).copied(), default: []].append(
        Written(
          file: file, head: offset..<value, value: range,
          version: version, bytes: record.kind == .put ? bytes.extracting(range).copied() : nil,
          isSound: Self.isSound(record, in: rest),
          isInBatch: record.flags.contains(.batch), isSettled: isSettled))
      offset += record.byteCount
    }
  }
}
