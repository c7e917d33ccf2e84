import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Corner cases of Docs/FileFormat.md on which the document, the library and the reader that was
/// written from the document alone once differed. Each is decided, and all three agree.
@Suite(
  "The document, the library and the independent reader agree",
  .enabled(if: IndependentReader.isAvailable, "there is no python3"))
struct FormatDecisionTests {
  /// The results of the library and of the independent reader for one store.
  private struct Verdict {
    var errors: [Corruption] = []
    /// The result of `verify` if it cannot check at all.
    var refusal: StoreError?
    /// The result of the independent reader.
    var status: Int32
    var lines: [IndependentReader.Line]
    var message: String
    /// The result of an open that only reads.
    var reading: StoreError?
    var content: Set<IndependentReader.Line> = []
    /// The result of an open that may write, afterwards.
    var writing: StoreError?
  }

  private func verdict(
    _ image: Image, boot: [UInt8]? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Verdict {
    let directory = try TemporaryDirectory()
    var image = image
    // The independent reader gets the current boot from the kernel, so the manifest must have
    // another one.
    if boot != nil { image = try image.changingManifest { $0.bootIdentifier[0] ^= 1 } }
    try image.write(to: directory.store)
    let result = try IndependentReader.read(directory.store)
    var verdict = Verdict(
      status: result.status, lines: result.lines, message: result.errors)
    verdict.refusal = storeError {
      verdict.errors = try Store.verify(path: directory.store).errors
    }
    #expect(
      (verdict.refusal == nil && verdict.errors.isEmpty) == (result.status == 0),
      "reader: \(result.errors), verify: \(verdict.errors)", sourceLocation: sourceLocation)
    let configuration = StoreConfiguration.small(clock: IndependentReader.clock)
    verdict.reading = storeError {
      let store = try Store(directory.store, configuration, readOnly: true)
      verdict.content = try IndependentReader.content(of: store)
      try store.close()
    }
    if verdict.reading == nil, result.status == 0 {
      #expect(verdict.content == Set(result.lines), sourceLocation: sourceLocation)
    }
    verdict.writing = storeError { try Store(directory.store, configuration).close() }
    return verdict
  }

  private static func record(
    _ keyByteCount: Int, delta: UInt32, kind: RecordKind = .put,
    _ change: (inout RecordHeader) -> Void = { _ in }
  ) -> RecordHeader {
    var header = RecordHeader(kind: kind)
    header.keyByteCount = keyByteCount
    header.sequenceDelta = delta
    change(&header)
    return header
  }

  private static func batch(_ index: UInt32, of count: UInt32, delta: UInt32) -> RecordHeader {
    record(1 + Int(index), delta: delta) { header in
      header.flags = [.batch]
      header.batchIndex = index
      header.batchCount = count
      if index == 0 { header.flags.insert(.syncMark) }
    }
  }

  // MARK: The manifest

  @Test("The secret matters to a checkpoint and to nothing else")
  func secret() throws {
    let fixture = try CheckpointFixture()
    let renewed = try fixture.image.changingManifest { $0.hashSecret[0] ^= 1 }
    let found = try verdict(renewed)
    #expect(found.errors.first?.cause == .differsFromLog && found.status == 3)
    let without = try renewed.changingManifest { manifest in
      manifest.retiredIDs.append(manifest.checkpointID)
      manifest.checkpointID = 0
      manifest.checkpointChecksum = 0
    }
    #expect(try verdict(without).status == 0)
  }

  @Test("Numbers up to 2^62 are read; a writer uses none above 2^61")
  func numbers() throws {
    let image = HostileStoreTests.image(isClean: true, records: [Self.record(3, delta: 0)])
    func changed(last: UInt64 = 0, next: UInt64 = 2) throws -> Verdict {
      try verdict(
        try image.changingManifest { manifest in
          manifest.lastSequence = last
          manifest.nextID = next
        })
    }
    let limit: UInt64 = 1 << 61
    for found in [try changed(last: limit - 1), try changed(next: limit)] {
      #expect(found.status == 0 && found.content.count == 1 && found.writing == nil)
    }
    for (found, offset) in [
      (try changed(last: limit), 72), (try changed(last: 1 << 62), 72),
      (try changed(next: limit + 1), 40),
    ] {
      #expect(found.status == 0 && found.reading == nil && found.content.count == 1)
      let corruption = found.writing?.corruption
      #expect(corruption?.file == "MANIFEST" && corruption?.offset == offset)
    }
    for found in [try changed(last: 1 << 62 + 1), try changed(next: 1 << 62 + 1)] {
      #expect(found.status == 3 && found.reading?.corruption?.file == "MANIFEST")
    }
  }

  @Test("A base sequence above all numbers in use is refused, even by a check")
  func baseSequence() throws {
    for (base, isSound) in [(2, true), (3, false)] as [(UInt64, Bool)] {
      var image = HostileStoreTests.image(isClean: true, records: [Self.record(3, delta: 0)])
      let (header, bytes) = HostileStoreTests.segment(2, baseSequence: base, records: [])
      image.files[FileName.segment(header.id)] = bytes
      image = try image.changingManifest { manifest in
        manifest.openSegments.append(
          .init(id: header.id, salt: header.salt, byteCount: bytes.count))
        manifest.nextID = 3
      }
      let found = try verdict(image)
      #expect((found.status == 0) == isSound && (found.reading == nil) == isSound)
      if !isSound {
        #expect(found.errors.map(\.offset) == [48])
        #expect(found.reading?.corruption?.offset == 48)
      }
    }
  }

  /// The reader called such stores corrupt, as the document did.
  @Test(
    "The base of an empty segment that was made ahead proves nothing",
    arguments: [nil, otherBoot])
  func baseOfSegmentMadeAhead(boot: [UInt8]?) throws {
    var image = HostileStoreTests.image(isClean: false, records: [Self.record(3, delta: 0)])
    let (header, bytes) = HostileStoreTests.segment(2, baseSequence: 100, records: [])
    image.files[FileName.segment(header.id)] = bytes
    image = try image.changingManifest { manifest in
      manifest.openSegments.append(.init(id: header.id, salt: header.salt, byteCount: 0))
      manifest.nextID = 3
    }
    let found = try verdict(image, boot: boot)
    #expect(found.status == 0 && found.content.count == 1 && found.writing == nil)
  }

  @Test("A sealed segment with the numbers 0 and 0 has no records, and no number is outside")
  func sealedNumbers() throws {
    for (lowest, highest, count, isSound) in [
      (0, 0, 0, true), (0, 0, 1, false), (1, 1, 1, true), (1, 2, 1, true), (2, 3, 1, false),
      (1, 0, 1, false),
    ] as [(UInt64, UInt64, Int, Bool)] {
      var image = HostileStoreTests.image(isClean: true)
      let (header, bytes) = HostileStoreTests.segment(
        1, records: [RecordHeader](repeating: Self.record(3, delta: 0), count: count))
      image.files[FileName.segment(header.id)] = bytes
      image = try image.changingManifest { manifest in
        manifest.openSegments = []
        manifest.lastSequence = 1
        manifest.sealedSegments = [
          .init(
            id: header.id, salt: header.salt, byteCount: bytes.count, lowestSequence: lowest,
            highestSequence: highest, compactedAt: 0)
        ]
      }
      let found = try verdict(image)
      #expect((found.status == 0) == isSound, "\(lowest) to \(highest)")
      // An open does not check them.
      #expect(found.content.count == count)
    }
  }

  // MARK: Files

  @Test(
    "What a power cut may leave of a new store is no store, and can become one",
    arguments: ["FOLLOW", "RESERVE", "MANIFEST.new", "MANIFEST.next.new"])
  func beforeManifest(name: String) throws {
    var image = Image()
    image.files = ["LOCK": [], name: [1, 2, 3]]
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    #expect(try IndependentReader.read(directory.store).status == 1)
    #expect(
      storeError { _ = try Store.verify(path: directory.store) } == .noStore(path: directory.store))
    let store = try Store(directory.store)
    try store.setValue("value", forKey: "key")
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
    #expect(try IndependentReader.read(directory.store).lines.count == 1)
  }

  @Test(
    "The listed checkpoint belongs to the store; another file with its id or a segment's does not")
  func names() throws {
    let fixture = try CheckpointFixture()
    #expect(try verdict(fixture.image).status == 0)
    let id = try fixture.image.manifest.checkpointID
    let segment = try #require(fixture.image.segmentNames.first.flatMap(FileName.identifier))
    let names = [
      FileName.segment(SegmentID(rawValue: id)), FileName.checkpoint(segment),
      FileName.checkpoint(0),
    ]
    for name in names {
      var image = fixture.image
      image.files[name] = [1]
      let found = try verdict(image)
      #expect(found.errors == [Corruption(file: name, offset: 0, cause: .unlistedFile)])
      let directory = try TemporaryDirectory()
      try image.write(to: directory.store)
      let store = try Store(directory.store, .small())
      #expect(try store.statistics().recovery.quarantinedFiles == [name])
      #expect(try store.contents() == fixture.contents)
      try store.close()
      #expect(try Image(of: directory.store).files[fixture.name] != nil)
    }
    // Without a checkpoint, the id 0 names no checkpoint.
    var image = HostileStoreTests.image(isClean: true)
    image.files[FileName.checkpoint(0)] = [1]
    #expect(try verdict(image).errors.map(\.cause) == [.unlistedFile])
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let store = try Store(directory.store)
    #expect(try store.statistics().recovery.quarantinedFiles == [FileName.checkpoint(0)])
  }

  @Test("Without LOCK, no reader opens the store, a writer creates LOCK, and a salvage warns")
  func missingLock() throws {
    var image = HostileStoreTests.image(isClean: true, records: [Self.record(3, delta: 0)])
    image.files["LOCK"] = nil
    let found = try verdict(image)
    #expect(found.status == 1 && found.message.hasSuffix("no LOCK in it\n"))
    #expect(found.writing == nil)
    for error in [found.refusal, found.reading] {
      guard case .notAStore(_, let reason)? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(reason.contains("LOCK"))
    }
    #expect(try Salvaged(image).report.kinds == [.notLocked])
  }

  // MARK: Records

  @Test("A cost or an idle limit above 2^63 − 1 counts as that; an absent one means none")
  func cost() throws {
    let image = HostileStoreTests.image(
      isClean: true,
      records: [
        Self.record(1, delta: 0) { header in
          header.flags = [.cost, .idleLimit]
          header.cost = .max
          header.idleLimit = .max
        },
        Self.record(2, delta: 1) { header in
          header.flags = .cost
          header.cost = UInt64(Int64.max)
        },
        Self.record(3, delta: 2) { header in
          header.flags = .cost
          header.cost = 0
        },
        Self.record(4, delta: 3),
      ])
    let found = try verdict(image)
    #expect(found.status == 0)
    let lines = found.lines.sorted { $0.sequence < $1.sequence }
    let highest = UInt64(Int64.max)
    #expect(lines.map(\.cost) == [highest, highest, 0, nil])
    #expect(lines.map(\.idleLimit) == [highest, nil, nil, nil])
  }

  @Test("The numbers of a batch are consecutive", arguments: [false, true])
  func batchNumbers(isClean: Bool) throws {
    for delta in [0, 1, 2] as [UInt32] {
      let image = HostileStoreTests.image(
        isClean: isClean,
        records: [Self.batch(0, of: 2, delta: 0), Self.batch(1, of: 2, delta: delta)])
      let found = try verdict(image)
      if delta == 1 {
        #expect(found.status == 0 && found.content.count == 2)
      } else if isClean {
        #expect(found.errors.first?.cause == .incompleteBatch && found.status == 3)
        #expect(found.reading?.corruption?.cause == .incompleteBatch)
      } else {
        // The remains of a batch at the end of the log count as nothing, or as corrupt if a later
        // number exists.
        #expect(found.content.isEmpty)
      }
    }
  }

  // MARK: The end of an unclean log

  /// Two open segments: the first has a put and remains of another, the second has nothing.
  private func torn(secondLength: Int) throws -> Image {
    var image = HostileStoreTests.image(
      isClean: false, records: [Self.record(3, delta: 0), Self.record(4, delta: 1)])
    let name = try #require(image.segmentNames.first)
    let last = try image.records(in: name)[1]
    image = image.flipping(name, at: last.offset)
    let (header, bytes) = HostileStoreTests.segment(2, baseSequence: 1, records: [])
    image.files[FileName.segment(header.id)] = bytes
    return try image.changingManifest { manifest in
      manifest.openSegments.append(
        .init(id: header.id, salt: header.salt, byteCount: secondLength))
      manifest.nextID = 3
    }
  }

  @Test("A length of 72 in an unclean store proves nothing", arguments: [nil, otherBoot])
  func lengthOfHeader(boot: [UInt8]?) throws {
    for length in [0, 72] {
      let found = try verdict(try torn(secondLength: length), boot: boot)
      #expect(found.status == 0 && found.content.count == 1, "length \(length)")
    }
    // If the second segment has a durable record, all of the first was durable.
    var image = try torn(secondLength: 0)
    let (header, bytes) = HostileStoreTests.segment(
      2, baseSequence: 1, records: [Self.record(5, delta: 2)])
    image.files[FileName.segment(header.id)] = bytes
    image = try image.changingManifest { $0.openSegments[1].byteCount = bytes.count }
    let found = try verdict(image, boot: boot)
    #expect(found.errors.first?.cause == .lostRecords && found.status == 3)
    // No store has lengths within the header.
    #expect(try verdict(try torn(secondLength: 71)).errors.map(\.file) == ["MANIFEST"])
  }

  @Test("A file shorter than a header counts as empty if its known length is 0")
  func shorterThanHeader() throws {
    for length in [0, 72] {
      let name = FileName.segment(SegmentID(rawValue: 2))
      let image = try torn(secondLength: length).changing(name) { $0.removeSubrange(40...) }
      let found = try verdict(image)
      #expect((found.status == 0) == (length == 0), "length \(length)")
      #expect((found.reading == nil) == (length == 0), "length \(length)")
    }
  }

  @Test("A roll before the known length, or a file shorter than that, is corrupt")
  func rollBeforeLength() throws {
    let records = [Self.record(3, delta: 0), Self.record(0, delta: 1, kind: .roll)]
    var image = HostileStoreTests.image(isClean: false, records: records)
    let name = try #require(image.segmentNames.first)
    let end = try #require(image.files[name]).count
    image = image.changing(name) { $0 += [UInt8](repeating: 0, count: 64) }
    for boot in [nil, otherBoot] {
      func found(_ length: Int) throws -> Verdict {
        try verdict(
          try image.changingManifest { $0.openSegments[0].byteCount = length }, boot: boot)
      }
      #expect(try found(end).status == 0)
      let rolled = try found(end + 8)
      #expect(rolled.errors == [Corruption(file: name, offset: end, cause: .badLength)])
      #expect(rolled.reading?.corruption?.cause == .badLength)
      let short = try found(end + 72)
      #expect(short.errors == [Corruption(file: name, offset: end + 64, cause: .fileTooShort)])
      #expect(short.reading?.corruption?.cause == .fileTooShort)
    }
  }

  @Test(
    "What a checkpoint covers was durable, even for a reader of the whole log",
    arguments: [nil, otherBoot])
  func endsOfCheckpoint(boot: [UInt8]?) throws {
    let killed = try KilledStore { store in
      for number in 0..<4 { try store.setValue("value", forKey: "key \(number)") }
      try store.checkpoint()
    }
    #expect(try verdict(killed.image, boot: boot).content.count == 4)
    let last = try #require(try killed.lastRecords.last)
    let image = killed.image.flipping(try killed.lastSegment, at: last.offset)
    let found = try verdict(image, boot: boot)
    #expect(found.status == 3)
    #expect(found.errors.map(\.cause) == [.lostRecords])
    // An open through the checkpoint does not read there.
    #expect(found.reading != nil || found.content.count == 3)
  }

  // MARK: Checkpoints

  @Test(
    "The independent reader reads golden stores, checkpoints included",
    arguments: GoldenStoreTests.names)
  func golden(name: String) throws {
    let image = try Image(of: GoldenStoreTests.path(of: name))
    #expect(try image.manifest.checkpointID != 0)
    #expect(try verdict(image).status == 0)
  }
}
