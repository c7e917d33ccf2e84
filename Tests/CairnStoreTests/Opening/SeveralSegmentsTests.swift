import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Several segments that the manifest lists as open, because no process sealed them.
@Suite("Recovery over several open segments")
struct SeveralSegmentsTests {
  static let killed = Result {
    try KilledStore { store in
      for number in 0..<200 {
        try store.setValue([UInt8](repeating: UInt8(number), count: 1000), forKey: "key\(number)")
      }
    } last: {
      try $0.setValue("last", forKey: "last")
    }
  }

  @Test("Every record is found", arguments: [nil, otherBoot])
  func undamaged(boot: [UInt8]?) throws {
    let killed = try Self.killed.get()
    #expect(try killed.image.manifest.openSegments.count >= 4)
    #expect(try killed.image.manifest.sealedSegments.count == 0)
    #expect(try Opening(killed.image, boot: boot) == .contents(killed.after))
  }

  /// After a jump in the numbers, a batch cut short would look as if earlier records were lost. A
  /// segment that grows while the checkpoint cannot be read would overlap others at the next open.
  @Test(
    "A new segment is begun after a jump of the numbers, and if the checkpoint cannot be used",
    arguments: [(false, false), (true, false), (true, true)])
  func notResumed(byJump: Bool, earlier: Bool) throws {
    let directory = try TemporaryDirectory()
    var store = try Store(directory.store)
    for number in 0..<20 { try store.setValue("old", forKey: "key\(number)") }
    try store.checkpoint()
    try store.close()
    let before = try Image(of: directory.store)
    let manifest = try before.manifest
    let last = try #require(manifest.openSegments.first)
    if !byJump {
      let name = FileName.checkpoint(manifest.checkpointID)
      try check("unlink", unsafe unlink("\(directory.store)/\(name)"))
    }
    if earlier {
      // Another session only records the jump.
      store = try Store(directory.store, fileSystem: FaultyFileSystem(bootIdentifier: otherBoot))
      try store.checkpoint()
      try store.close()
    }
    store = try Store(
      directory.store,
      fileSystem: FaultyFileSystem(bootIdentifier: byJump && !earlier ? otherBoot : nil))
    try store.setValue("new", forKey: "key0")
    #expect(store.lastVersion > (byJump ? Manifest.lostSequenceLimit : 20))
    let segment = FileName.segment(last.id)
    #expect(
      try Image(of: directory.store).files[segment]?.prefix(last.byteCount)
        == before.files[segment]?.prefix(last.byteCount))
    #expect(
      try !Image(of: directory.store).files[segment, default: []].contains(Array("new".utf8)))
    let contents = try store.contents()
    #expect(contents.count == 20)
    try Image(of: directory.store).write(to: directory("killed"))
    #expect(try Store(directory("killed")).contents() == contents)
    try store.close()
  }

  /// Found by the fuzzer of faults: a record beside the end of a checkpoint could not be read, and
  /// the open went on without a word.
  @Test("No failed read of a segment is hidden", arguments: [nil, otherBoot])
  func failingReads(boot: [UInt8]?) throws {
    let killed = try KilledStore { store in
      for number in 0..<20 { try store.setValue("value", forKey: "key\(number)") }
      try store.checkpoint()
      for number in 20..<40 { try store.setValue("value", forKey: "key\(number)") }
    }
    let directory = try TemporaryDirectory()
    var readCount = 0
    for number in 0..<1000 {
      try killed.image.write(to: directory("\(number)"))
      let system = FaultyFileSystem(bootIdentifier: boot)
      let reads = Atomic(0)
      system.setHook { event in
        guard event.call == .read, event.file.hasPrefix("seg-") else { return nil }
        return reads.wrappingAdd(1, ordering: .relaxed).newValue == number + 1 ? EIO : nil
      }
      let error = storeError {
        let store = try Store(directory("\(number)"), fileSystem: system)
        try store.close()
      }
      readCount = reads.load(ordering: .relaxed)
      if readCount <= number { break }
      guard case .system(let failure) = error else {
        Issue.record("read \(number): \(String(describing: error))")
        continue
      }
      #expect(failure.errorNumber == EIO && failure.path.contains("/seg-"))
    }
    #expect(readCount > 2)
  }

  /// Found by a review: the last open segment was appended to. A kill left the earlier ones open,
  /// without the roll that an open segment has if another follows.
  @Test("If another program left several open segments at its close, none is appended to")
  func leftByClose() throws {
    let directory = try TemporaryDirectory()
    var store = try Store(directory.store)
    try store.setValue("one", forKey: "one")
    // A segment sealed as found after a kill ends without a roll.
    try Image(of: directory.store).write(to: directory("killed"))
    try store.close()
    store = try Store(directory("killed"))
    try store.setValue("two", forKey: "two")
    try store.close()
    var image = try Image(of: directory("killed")).changingManifest { manifest in
      let first = manifest.sealedSegments.removeFirst()
      manifest.openSegments.insert(
        .init(id: first.id, salt: first.salt, byteCount: first.byteCount), at: 0)
    }
    #expect(try image.manifest.isClean && image.manifest.openSegments.count == 2)
    try image.write(to: directory("two"))
    #expect(try Store.verify(path: directory("two")).errors == [])
    store = try Store(directory("two"))
    try store.setValue("three", forKey: "three", durability: .durable)
    let contents = try store.contents()
    image = try Image(of: directory("two"))
    try store.close()
    #expect(contents.count == 3)
    #expect(try Opening(image) == .contents(contents))
    #expect(try Opening(image, boot: otherBoot) == .contents(contents))
  }

  @Test("After the seal, every record is found too")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    let store = try Store(directory.store, background: queue)
    for number in 0..<225 {
      try store.setValue([UInt8](repeating: UInt8(number), count: 1000), forKey: "key\(number)")
    }
    queue.runAll()
    let image = try Image(of: directory.store)
    #expect(try image.manifest.sealedSegments.count >= 3)
    #expect(try Opening(image) == .contents(store.contents()))
    // Damage in a sealed segment is never a torn tail.
    let name = image.segmentNames[0]
    let record = try #require(try image.records(in: name).dropLast().last)
    let opening = try Opening(image.flipping(name, at: record.offset), boot: otherBoot)
    #expect(
      opening.corruption == Corruption(file: name, offset: record.offset, cause: .badRecordHeader))
  }

  @Test("A torn last record in the last segment")
  func tornTail() throws {
    let killed = try Self.killed.get()
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.flipping(try killed.lastSegment, at: last.offset)
    #expect(try Opening(image) == .contents(killed.before))
    #expect(try Opening(image, boot: otherBoot) == .contents(killed.before))
  }

  @Test("Damage in an earlier segment, in the same boot, is corruption", arguments: [0, 30, 1000])
  func earlier(index: Int) throws {
    let killed = try Self.killed.get()
    let name = killed.image.segmentNames[0]
    let records = try killed.image.records(in: name)
    // The last record of all is the roll record.
    let record = records[min(index, records.count - 1)]
    let opening = try Opening(killed.image.flipping(name, at: record.offset))
    #expect(
      opening.corruption == Corruption(file: name, offset: record.offset, cause: .lostRecords))
  }

  @Test(
    "Damage in an earlier segment, in another boot, discards all later ones",
    arguments: [0, 30, 1000])
  func earlierOtherBoot(index: Int) throws {
    let killed = try Self.killed.get()
    let name = killed.image.segmentNames[0]
    let records = try killed.image.records(in: name)
    let record = records[min(index, records.count - 1)]
    let kept = records.filter { $0.offset < record.offset }
      .map { String(decoding: $0.key, as: UTF8.self) }
    let opening = try Opening(killed.image.flipping(name, at: record.offset), boot: otherBoot)
    #expect(opening == .contents(killed.after.filter { kept.contains($0.key) }))
  }

  @Test("A sync in a later segment proves that the earlier ones were durable")
  func laterProof() throws {
    let killed = try KilledStore { store in
      for number in 0..<100 {
        try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
      }
      try store.sync()
      try store.setValue("v", forKey: "after")
    }
    #expect(try killed.image.manifest.openSegments.count >= 2)
    let name = killed.image.segmentNames[0]
    let record = try killed.image.records(in: name)[10]
    let opening = try Opening(
      killed.image.flipping(name, at: record.offset), boot: otherBoot)
    #expect(
      opening.corruption == Corruption(file: name, offset: record.offset, cause: .lostRecords))
  }

  @Test("A missing segment is corruption, and the error names it", arguments: 0..<3)
  func missing(index: Int) throws {
    let killed = try Self.killed.get()
    let name = killed.image.segmentNames[index]
    var image = killed.image
    image.files[name] = nil
    #expect(
      try Opening(image).corruption == Corruption(file: name, offset: 0, cause: .missingFile))
  }

  @Test("A segment too short for its header is corruption", arguments: [0, 1, 71])
  func shortHeader(count: Int) throws {
    let killed = try Self.killed.get()
    let name = killed.image.segmentNames[1]
    let image = killed.image.changing(name) { $0.removeLast($0.count - count) }
    #expect(
      try Opening(image).corruption == Corruption(file: name, offset: count, cause: .fileTooShort))
  }

  @Test("A segment in another's place is corruption")
  func swapped() throws {
    let killed = try Self.killed.get()
    var image = killed.image
    let names = image.segmentNames
    image.files[names[0]] = killed.image.files[names[1]]
    image.files[names[1]] = killed.image.files[names[0]]
    #expect(try Opening(image).corruption?.cause == .badHeader)
  }

  @Test("A value with its own segment, followed by others, survives a kill")
  func ownSegment() throws {
    let killed = try KilledStore { store in
      try store.setValue("v", forKey: "before")
      try store.setValue([UInt8](repeating: 1, count: 150_000), forKey: "large")
      try store.setValue([UInt8](repeating: 2, count: 150_000), forKey: "larger")
      try store.setValue("v", forKey: "after")
    }
    #expect(try Opening(killed.image) == .contents(killed.after))
    #expect(try Opening(killed.image, boot: otherBoot) == .contents(killed.after))
  }

  @Test("A kill before the first record, and after a session without writes")
  func noRecords() throws {
    let killed = try KilledStore { _ in }
    #expect(try Opening(killed.image) == .contents([:]))
  }

  // MARK: Made by hand

  private static let put = {
    var header = RecordHeader(kind: .put)
    header.keyByteCount = 1
    return header
  }()

  /// The first of two records that belong together. The second is missing.
  private static let halfBatch = {
    var header = put
    header.flags = .batch
    header.batchCount = 2
    return header
  }()

  private static let roll = RecordHeader(kind: .roll)

  /// The report about a killed store of these segments, given the first sequence number and the
  /// records of each.
  private static func outcome(
    _ segments: [(base: UInt64, records: [RecordHeader])]
  ) throws -> StoreError? {
    var files: [String: [UInt8]] = [:]
    var image = try HostileStoreTests.image(isClean: false).changingManifest { manifest in
      manifest.nextID = UInt64(segments.count + 1)
      manifest.openSegments = segments.enumerated().map { index, segment in
        var records = segment.records
        for index in records.indices { records[index].sequenceDelta = UInt32(index) }
        let (header, bytes) = HostileStoreTests.segment(
          UInt64(index + 1), baseSequence: segment.base, records: records)
        files[FileName.segment(header.id)] = bytes
        return .init(id: header.id, salt: header.salt, byteCount: 0)
      }
    }
    image.files.merge(files) { $1 }
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    return storeError { _ = try Store(directory.store, readOnly: true) }
  }

  @Test("Half a batch with the next numbers, after an empty segment, is a torn tail")
  func batchThatComesNext() throws {
    // The counterpart of the next test: here nothing is missing before the batch.
    let outcome = try Self.outcome([
      (1, [Self.put, Self.put, Self.roll]), (3, []), (3, [Self.halfBatch]),
    ])
    #expect(outcome == nil)
  }

  @Test("Half a batch after an empty segment does not hide that records before it are lost")
  func batchBehindEmptySegment() throws {
    // The batch shows that the numbers 3 to 19 existed.
    let damage = try Self.outcome([
      (1, [Self.put, Self.put, Self.roll]), (3, []), (20, [Self.halfBatch]),
    ])?.corruption
    #expect(damage?.file == FileName.segment(SegmentID(rawValue: 2)))
    #expect(damage?.cause == .lostRecords)
  }

  @Test("Half a batch in one segment does not explain what is in the next")
  func batchBehindHalfBatch() throws {
    // The numbers of an unfinished batch do not count as if it were complete.
    let damage = try Self.outcome([
      (1, [Self.put, Self.put, Self.halfBatch]), (4, [Self.halfBatch]),
    ])?.corruption
    #expect(damage?.file == FileName.segment(SegmentID(rawValue: 1)))
    #expect(damage?.cause == .lostRecords)
  }
}
