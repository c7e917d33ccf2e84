import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Stores made by someone who knows the format: every checksum is right, but the numbers are not.
/// Each is opened and used in its own process, so that a trap is a failed test.
@Suite("Hostile stores")
struct HostileStoreTests {
  private static let identifier = [UInt8](repeating: 1, count: 16)

  /// Makes a segment by hand. Each key consists of the letter `a`.
  static func segment(
    _ id: UInt64, baseSequence: UInt64 = 1, baseTime: Int64 = 1_700_000_000,
    records: [RecordHeader]
  ) -> (SegmentHeader, [UInt8]) {
    let header = SegmentHeader(
      storeIdentifier: identifier, id: SegmentID(rawValue: id), salt: 9,
      baseSequence: baseSequence, baseTime: baseTime)
    var bytes = header.encoded()
    for record in records {
      let start = bytes.count
      var encoded = [UInt8](repeating: 0x61, count: max(record.byteCount, record.headByteCount))
      let padding = min(record.headByteCount + record.valueByteCount, encoded.count)
      for index in padding..<encoded.count { encoded[index] = 0 }
      encoded.withMutableSpan { span in
        record.encodeFields(into: &span)
        record.seal(&span, at: start, seed: header.recordSeed)
      }
      bytes += encoded
    }
    return (header, bytes)
  }

  /// Makes a store of one open segment by hand.
  static func image(
    isClean: Bool, baseSequence: UInt64 = 1, baseTime: Int64 = 1_700_000_000,
    lastSequence: UInt64 = 0, records: [RecordHeader] = []
  ) -> Image {
    let (header, bytes) = segment(
      1, baseSequence: baseSequence, baseTime: baseTime, records: records)
    var manifest = Manifest(
      storeIdentifier: identifier, hashSecret: identifier,
      bootIdentifier: (try? SystemFileSystem().bootIdentifier()) ?? identifier)
    manifest.nextID = 2
    manifest.lastSequence = lastSequence
    manifest.isClean = isClean
    manifest.openSegments = [
      .init(id: SegmentID(rawValue: 1), salt: 9, byteCount: isClean ? bytes.count : 0)
    ]
    var image = Image()
    image.files = ["MANIFEST": manifest.encoded(), "LOCK": [], FileName.segment(header.id): bytes]
    return image
  }

  /// Makes every call on the store that its errors do not prevent.
  static func use(_ image: Image) throws {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    for readOnly in [true, false] {
      do {
        let store = try Store(directory.store, readOnly: readOnly)
        _ = try? store.contents()
        _ = try? store.count()
        _ = try? store.statistics()
        for number in 0..<100 {
          _ = try? store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
        }
        try? store.write { try $0.setValue("v", forKey: "key") }
        _ = try? store.removeValue(forKey: "key")
        _ = try? store.value(forKey: "aaaa")
        _ = try? store.entry(forKey: "a")
        try? store.sync()
        try? store.close()
      } catch {
      }
    }
    _ = try? Store.verify(path: directory.store)
  }

  /// Found by a review: a compaction wrote a segment for each record, and trapped at the 65,537th.
  @Test("A compaction ends even if sequence numbers alternate between distant values")
  func farNumbers() throws {
    let base: UInt64 = 1 << 40
    // Each record has a different key, by its length.
    func record(_ number: Int, delta: UInt32) -> RecordHeader {
      var record = RecordHeader(kind: .put)
      record.keyByteCount = number + 1
      record.sequenceDelta = delta
      return record
    }
    let (near, nearBytes) = Self.segment(2, records: (0..<2).map { record(0, delta: $0) })
    var records = (UInt32(1)..<1000).map { number in
      record(Int(number), delta: number % 2 == 0 ? number : .max - number)
    }
    // Compaction needs dead bytes.
    records.append(record(1, delta: 0))
    let (far, farBytes) = Self.segment(1, baseSequence: base, records: records)
    var image = try Self.image(isClean: true, lastSequence: base + UInt64(UInt32.max))
      .changingManifest { manifest in
        manifest.openSegments = []
        manifest.nextID = 3
        manifest.sealedSegments = [
          .init(
            id: near.id, salt: near.salt, byteCount: nearBytes.count, lowestSequence: 1,
            highestSequence: 2, compactedAt: 0),
          .init(
            id: far.id, salt: far.salt, byteCount: farBytes.count, lowestSequence: base,
            highestSequence: base + UInt64(UInt32.max), compactedAt: 0),
        ]
      }
    image.files[FileName.segment(near.id)] = nearBytes
    image.files[FileName.segment(far.id)] = farBytes
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let errors = try Store.verify(path: directory.store).errors
    #expect(errors.allSatisfy { $0.cause == .badPadding })
    // Both segments are compacted together.
    let store = try Store(
      directory.store, StoreConfiguration(), background: ManualBackgroundQueue())
    #expect(try store.count() == 1000)
    let report = try store.compact()
    #expect(report.unreadableSegmentCount > 0)
    #expect(try Image(of: directory.store).segmentNames.count < 100)
    #expect(try store.contents().count == 1000)
    try store.close()
  }

  @Test("A segment whose first sequence number is above all others")
  func baseBeyondSequence() async {
    await #expect(processExitsWith: .success) {
      for base in [2, 1 << 31, 1 << 32, 1 << 61, 1 << 62] as [UInt64] {
        try HostileStoreTests.use(HostileStoreTests.image(isClean: true, baseSequence: base))
        try HostileStoreTests.use(HostileStoreTests.image(isClean: false, baseSequence: base))
      }
    }
  }

  @Test("A manifest whose last sequence number is far beyond the segment's")
  func sequenceBeyondReach() async {
    await #expect(processExitsWith: .success) {
      for last in [1 << 31, 1 << 32, 1 << 40, 1 << 61, (1 << 62) - 1, 1 << 62] as [UInt64] {
        try HostileStoreTests.use(HostileStoreTests.image(isClean: true, lastSequence: last))
        try HostileStoreTests.use(HostileStoreTests.image(isClean: false, lastSequence: last))
      }
    }
  }

  @Test("A roll record whose sequence number is 0 is refused")
  func rollAtZero() async {
    await #expect(processExitsWith: .success) {
      for isClean in [true, false] {
        let image = HostileStoreTests.image(
          isClean: isClean, baseSequence: 0, records: [RecordHeader(kind: .roll)])
        try HostileStoreTests.use(image)
        let directory = try TemporaryDirectory()
        try image.write(to: directory.store)
        guard storeError({ _ = try Store(directory.store) })?.corruption != nil,
          try !Store.verify(path: directory.store).errors.isEmpty
        else { throw SupportError(call: "not refused", number: 0) }
      }
    }
  }

  @Test("Records with extreme numbers in every field")
  func extremeRecords() async {
    await #expect(processExitsWith: .success) {
      for number in [0, 1, UInt64(Int64.max), 1 << 63, .max] {
        var record = RecordHeader(kind: .put)
        record.flags = .known.subtracting([.batch, .metadata])
        record.keyByteCount = 1
        record.sequenceDelta = UInt32(clamping: number)
        record.writtenDelta = UInt32(clamping: number)
        record.expires = Int64(bitPattern: number)
        record.idleLimit = number
        record.cost = number
        record.syncMark = number
        for isClean in [true, false] {
          for time in [0, -(1 << 50) + 1, (1 << 50) - 1] as [Int64] {
            try HostileStoreTests.use(
              HostileStoreTests.image(isClean: isClean, baseTime: time, records: [record, record]))
          }
        }
      }
    }
  }

  @Test("A cost beyond what can be represented is returned as the highest")
  func extremeCost() throws {
    var record = RecordHeader(kind: .put)
    record.flags = .cost
    record.keyByteCount = 1
    for cost in [UInt64(Int.max), 1 << 63, .max] {
      let directory = try TemporaryDirectory()
      record.cost = cost
      try Self.image(isClean: true, lastSequence: 1, records: [record]).write(to: directory.store)
      let store = try Store(directory.store)
      #expect(try store.info(forKey: "a")?.cost == .max)
      #expect(try store.entry(forKey: "a")?.info.cost == .max)
      try store.close()
    }
  }

  @Test("Batches whose counts are not those of their records")
  func hostileBatches() async {
    await #expect(processExitsWith: .success) {
      for count in [1, 2, 3, UInt32.max] {
        for index in [0, 1, UInt32.max - 1] where index < count {
          var record = RecordHeader(kind: .put)
          record.flags = .batch
          record.keyByteCount = 1
          record.batchIndex = index
          record.batchCount = count
          for isClean in [true, false] {
            try HostileStoreTests.use(
              HostileStoreTests.image(isClean: isClean, records: [record, record]))
          }
        }
      }
    }
  }

  @Test("Lengths that were changed under an open store do not lead beyond the end of its file")
  func lengthUnderOpenStore() async {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let queue = ManualBackgroundQueue()
      let store = try Store(directory.store, background: queue)
      for number in 0..<5 { try store.setValue("value", forKey: "key\(number)") }
      // A value with its own segment ends the one before early. Once sealed, that file ends with
      // its last record.
      try store.setValue([UInt8](repeating: 1, count: 100_000), forKey: "large")
      queue.runAll()
      let image = try Image(of: directory.store)
      let name = image.segmentNames[0]
      let records = try image.records(in: name).dropLast()
      guard let record = records.last, record.header.kind == .put,
        image.files[name]?.count ?? 0 < 4096
      else {
        throw SupportError(call: "not as the test needs it", number: 0)
      }
      let key = String(decoding: record.key, as: UTF8.self)
      try overwriteFile("\(directory.store)/\(name)", [0xFF, 0x7F], at: record.offset + 20)
      guard storeError({ _ = try store.value(forKey: key) })?.corruption?.file == name else {
        throw SupportError(call: "no corruption", number: 0)
      }
      // Everything before this record is unaffected.
      for record in records.dropLast() {
        guard try store.text(String(decoding: record.key, as: UTF8.self)) == "value" else {
          throw SupportError(call: "another value", number: 0)
        }
      }
    }
  }

  @Test("A segment that claims to be huge is refused without taking memory for it")
  func hugeSegment() throws {
    let directory = try TemporaryDirectory()
    let image = try Self.image(isClean: true).changingManifest {
      $0.openSegments[0].byteCount = FormatVersion.highestOffset
    }
    try image.write(to: directory.store)
    #expect(storeError { _ = try Store(directory.store) }?.corruption?.cause == .fileTooShort)
    let sparse = "\(directory.store)/\(image.segmentNames[0])"
    try check("truncate", unsafe truncate(sparse, off_t(FormatVersion.highestOffset + 1)))
    #expect(storeError { _ = try Store(directory.store) }?.corruption?.cause == .badLength)
  }

  @Test("A segment that claims to be huge is not rewritten after a failed sync")
  func hugeSegmentAfterFailedSync() throws {
    let directory = try TemporaryDirectory()
    var image = Self.image(isClean: false)
    image.files["LOCK"] = [0]
    try image.write(to: directory.store)
    let name = image.segmentNames[0]
    try check(
      "truncate",
      unsafe truncate("\(directory.store)/\(name)", off_t(FormatVersion.highestOffset + 1)))
    let system = FaultyFileSystem()
    system.setHook { $0.call == .write && $0.file == name ? SystemError.inputOutput : nil }
    let error = storeError { _ = try Store(directory.store, fileSystem: system) }
    #expect(error?.corruption == Corruption(file: name, offset: 0, cause: .badLength))
  }

  @Test("After a jump of a manifest's numbers, the store continues and opens again")
  func jumpOfNumbers() async {
    await #expect(processExitsWith: .success) {
      let changes: [(inout Manifest) -> Void] = [
        { $0.generation = .max }, { $0.lastSequence = 1 << 40 },
      ]
      for change in changes {
        let scene = try StoreScene()
        let store = try scene.open()
        try store.setValue("1", forKey: "a")
        try store.close()
        try scene.editManifest(change)
        for key in ["b", "c"] {
          let store = try scene.open()
          try store.setValue("1", forKey: key)
          try store.close()
        }
        #expect(try scene.open().count() == 3)
      }
    }
  }

  @Test("Sequence numbers at their limit are refused, at the open or at a write, never later")
  func sequenceLimit() async {
    await #expect(processExitsWith: .success) {
      // No manifest may contain a number that no open accepts.
      let highest = FormatVersion.highestSequence
      for last in highest - 3...highest {
        let scene = try StoreScene()
        try scene.open().close()
        try scene.editManifest { $0.lastSequence = last }
        guard let store = try? scene.open() else { continue }
        for index in 0..<4 { _ = try? store.setValue("1", forKey: "key\(index)") }
        let count = try store.count()
        try store.close()
        #expect(try scene.open().count() == count)
      }
    }
  }

  @Test("A next session's manifest with ids at their limit is not used")
  func limitOfNextManifest() throws {
    let scene = try StoreScene()
    try scene.open().close()
    let bytes = try scene.bytes(of: FileName.nextManifest)
    var next = try Manifest(decoding: bytes.rawSpan)
    next.nextID = FormatVersion.highestSequence - 100
    try #require(next.continues(scene.manifest(), in: next.bootIdentifier))
    try Data(next.encoded()).write(to: scene.url(FileName.nextManifest))
    for key in ["a", "b"] {
      let store = try scene.open()
      try store.setValue("1", forKey: key)
      try store.close()
    }
    #expect(try scene.manifest().nextID < 1 << 20)
  }
}

/// Stores whose checkpoint names, for a key, a record that is not a put.
@Suite("Hostile stores: entries for other records")
struct HostileEntryTests {
  static let kinds: [RecordKind] = [.tombstone, .roll]

  /// A store whose entry for `key5` names a record of a kind. Returns that record's key too.
  static func forged(
    _ kind: RecordKind, _ later: ((Store) throws -> Void)? = nil
  ) throws -> (TemporaryDirectory, key: String) {
    let fixture = try CheckpointFixture(keys: 2000, later)
    for covered in try fixture.header.segments {
      for record in try fixture.image.records(in: FileName.segment(covered.id))
      where record.header.kind == kind && record.offset < covered.end {
        let directory = try TemporaryDirectory()
        let location = Location(granule: covered.granule, offset: record.offset)
        try fixture.naming(location, forKey: "key5").write(to: directory.store)
        return (directory, String(decoding: record.key, as: UTF8.self))
      }
    }
    throw SupportError(call: "no record of the kind", number: 0)
  }

  @Test("A replay compares a record that has no key with no other")
  func replay() async {
    await #expect(processExitsWith: .success) {
      for kind in HostileEntryTests.kinds {
        let (directory, _) = try HostileEntryTests.forged(kind) { store in
          try store.setValue("later", forKey: "key5")
        }
        let store = try Store(directory.store, .small())
        guard try store.text("key5") == "later" else {
          throw SupportError(call: "another value", number: 0)
        }
        _ = try? store.contents()
        try store.close()
      }
    }
  }

  @Test("An iteration shows no removed key, and throws", arguments: kinds)
  func iteration(kind: RecordKind) throws {
    let (directory, key) = try Self.forged(kind)
    let store = try Store(directory.store, .small())
    #expect(try store.text("key5") == nil)
    var keys: [String] = []
    let error = storeError {
      try store.forEachKey { bytes in
        keys.append(String(decoding: [UInt8](copying: bytes), as: UTF8.self))
        return .next
      }
    }
    #expect(error?.corruption?.cause == .badRecordHeader)
    #expect(keys.count == (try store.count()) - 1)
    #expect(!keys.contains(key))
    try store.close()
  }

  @Test("A trim writes no tombstone for it, and counts it as damaged", arguments: kinds)
  func trim(kind: RecordKind) throws {
    let (directory, _) = try Self.forged(kind)
    let store = try Store(directory.store, .small(), background: ManualBackgroundQueue())
    #expect(try store.trim(.toCount(1)).damagedCount == 1)
    try store.close()
    // The log alone is sound.
    let image = try Image(of: directory.store).changingManifest { $0.checkpointID = 0 }
    let copy = try TemporaryDirectory()
    try image.write(to: copy.store)
    #expect(try Store.verify(path: copy.store).errors.allSatisfy { $0.cause == .unlistedFile })
    try Store(copy.store, .small()).close()
  }
}
