import CairnRepair
import CairnStore
import FuzzSupport
import Testing

/// Checkpoints whose checksums are right and which contradict the log. Found by an independent
/// writer: a check found nothing in them, and opens through them gave other answers.
@Suite("Forged checkpoints")
struct ForgedCheckpointTests {
  /// The removed key `a`, with its old put in a segment that the checkpoint's table does not have,
  /// and the key `aa`.
  private static let records: [[RecordHeader]] = [
    [record(.put, keyByteCount: 1, delta: 0)],
    [
      record(.tombstone, keyByteCount: 1, delta: 1),
      record(.put, keyByteCount: 2, delta: 2) { $0.valueByteCount = 40 },
    ],
  ]
  private static let checkpointID: UInt64 = 4
  /// A segment that was once part of the store.
  private static let gone = SegmentID(rawValue: 3)

  private static func record(
    _ kind: RecordKind, keyByteCount: Int, delta: UInt32,
    _ change: (inout RecordHeader) -> Void = { _ in }
  ) -> RecordHeader {
    var header = RecordHeader(kind: kind)
    header.keyByteCount = keyByteCount
    header.sequenceDelta = delta
    change(&header)
    // The checksum of the letters that `HostileStoreTests` writes.
    let value = [UInt8](repeating: 0x61, count: header.valueByteCount)
    header.valueChecksum = CRC32C.checksum(of: value.rawSpan)
    return header
  }

  private static func entry(_ keyByteCount: Int, _ location: Location) -> (IndexEntry, shard: Int) {
    let key = [UInt8](repeating: 0x61, count: keyByteCount)
    // The secret of the stores of `HostileStoreTests`.
    let hash = SipHash(secret: [UInt8](repeating: 1, count: 16)).hash(key.rawSpan)
    return (
      IndexEntry(hash: hash >> 24, location: location, tick: 1, flags: []),
      Int(hash & 0xFF)
    )
  }

  /// A store with this checkpoint: sound, unless it has an entry of the removed key or `change`
  /// changes it.
  ///
  /// - Parameter torn: what follows the records of a log that was not closed; `nil` if it was.
  private static func image(
    hasRemovedKey: Bool, torn: [UInt8]? = nil, _ change: (inout Checkpoint) -> Void = { _ in }
  ) throws -> Image {
    let (_, first) = HostileStoreTests.segment(1, records: records[0])
    let (second, bytes) = HostileStoreTests.segment(2, records: records[1])
    var header = Checkpoint(storeIdentifier: second.storeIdentifier, id: checkpointID)
    header.lastSequence = 3
    header.tick = 1
    var covered = Checkpoint.CoveredSegment(id: second.id, salt: second.salt, end: bytes.count)
    covered.granule = 1
    covered.liveByteCount = records[1][1].byteCount
    covered.putCount = 1
    covered.livePutCount = 1
    covered.tombstoneCount = 1
    covered.tombstoneByteCount = records[1][0].byteCount
    covered.highestTombstone = 2
    covered.lowestSequence = 2
    covered.highestSequence = 3
    var old = Checkpoint.CoveredSegment(id: gone, salt: 1, end: 72)
    old.granule = 2
    var entries = [
      entry(2, Location(granule: 1, offset: 72 + records[1][0].byteCount))
    ]
    if hasRemovedKey {
      entries.append(entry(1, Location(granule: 2, offset: 72)))
      old.end = 72 + records[0][0].byteCount
      old.putCount = 1
      old.livePutCount = 1
      old.liveByteCount = records[0][0].byteCount
      old.lowestSequence = 1
      old.highestSequence = 1
    }
    header.segments = [covered, old]
    for (_, shard) in entries { header.shards[shard].count += 1 }
    change(&header)
    var checkpoint = header.encodedHeader()
    for (entry, _) in entries.sorted(by: { ($0.1, $0.0.hash) < ($1.1, $1.0.hash) }) {
      checkpoint.append(littleEndian: entry.words.0)
      checkpoint.append(littleEndian: entry.words.1)
    }
    ChecksumRepair.checkpoint(&checkpoint, shape: true)

    var image = HostileStoreTests.image(isClean: torn == nil)
    image.files[FileName.segment(SegmentID(rawValue: 1))] = first
    image.files[FileName.segment(second.id)] = bytes + (torn ?? [])
    image.files[FileName.checkpoint(checkpointID)] = checkpoint
    let size = header.headerByteCount
    let checksum = checkpoint.rawSpan.load(UInt32.self, at: size - 4)
    return try image.changingManifest { manifest in
      manifest.nextID = checkpointID + 1
      manifest.lastSequence = 3
      manifest.checkpointID = checkpointID
      manifest.checkpointChecksum = checksum
      manifest.sealedSegments = [
        .init(
          id: SegmentID(rawValue: 1), salt: 9, byteCount: first.count, lowestSequence: 1,
          highestSequence: 1, compactedAt: 0)
      ]
      manifest.openSegments = [
        .init(id: second.id, salt: 9, byteCount: torn == nil ? bytes.count : 0)
      ]
    }
  }

  private func errors(_ image: Image) throws -> [Corruption] {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    return try Store.verify(path: directory.store).errors
  }

  private func header(_ image: Image) throws -> Checkpoint {
    let name = FileName.checkpoint(Self.checkpointID)
    return try CheckpointFixture.header(of: try #require(image.files[name]), name)
  }

  /// The keys that an open finds, after which the store can be written to and checked.
  private func expectOnlyLiveKey(
    _ image: Image, boot: [UInt8]? = nil, hasRightCounts: Bool = true,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    let store = try Store(
      directory.store, .small(), fileSystem: FaultyFileSystem(bootIdentifier: boot),
      background: ManualBackgroundQueue())
    try #require(try store.count() == 1, sourceLocation: sourceLocation)
    #expect(try store.contents().keys.sorted() == ["aa"], sourceLocation: sourceLocation)
    #expect(try store.value(forKey: "a") == nil, sourceLocation: sourceLocation)
    try store.setValue("new", forKey: "new")
    // A new checkpoint gets its counts from the open.
    if hasRightCounts { try store.checkpoint() }
    try store.close()
    if !hasRightCounts { return }
    #expect(
      try Store.verify(path: directory.store).errors == [], sourceLocation: sourceLocation)
  }

  @Test("The sound one has no difference, and an open uses it")
  func sound() throws {
    let image = try Self.image(hasRemovedKey: false)
    #expect(try errors(image) == [])
    try expectOnlyLiveKey(image)
  }

  @Test("A check finds an entry of a removed key in a segment that is gone")
  func removedKey() throws {
    let image = try Self.image(hasRemovedKey: true)
    let header = try header(image)
    let (_, shard) = Self.entry(1, .none)
    #expect(
      try errors(image) == [
        Corruption(
          file: FileName.checkpoint(Self.checkpointID), offset: header.shards[shard].offset,
          cause: .differsFromLog)
      ])
  }

  /// A lookup of such an entry waited for its segment without end.
  @Test("An open does not believe entries in segments that, by their counts, have none")
  func deniedEntry() throws {
    let image = try Self.image(hasRemovedKey: true) { header in
      header.segments[0].putCount = 2
      header.segments[0].livePutCount = 2
      header.segments[1] = .init(id: Self.gone, salt: 1, end: header.segments[1].end)
      header.segments[1].granule = 2
    }
    try expectOnlyLiveKey(image, hasRightCounts: false)
    #expect(try !errors(image).isEmpty)
  }

  @Test(
    "A check finds an end inside a record, and an open reads the log instead", arguments: [8, 16])
  func endInsideRecord(distance: Int) throws {
    // The last record has 32 bytes after the place where its entry may still be.
    let image = try Self.image(hasRemovedKey: false) { header in
      header.segments[0].end -= distance
      header.segments[0].liveByteCount -= distance
    }
    let header = try header(image)
    #expect(
      try errors(image) == [
        Corruption(
          file: FileName.checkpoint(Self.checkpointID), offset: header.offset(ofSegment: 0),
          cause: .differsFromLog)
      ])
    try expectOnlyLiveKey(image)
  }

  /// A recovery sealed the segment at that end, which made the store corrupt.
  @Test("So does a recovery", arguments: [nil, otherBoot])
  func endInsideLastRecord(boot: [UInt8]?) throws {
    let image = try Self.image(hasRemovedKey: false, torn: [1, 2, 3, 4, 5, 6, 7, 8]) {
      $0.segments[0].end -= 16
      $0.segments[0].liveByteCount -= 16
    }
    try expectOnlyLiveKey(image, boot: boot)
  }

  /// A compaction would drop a tombstone for which no put is dead.
  @Test("A check finds wrong counts", arguments: 0..<6)
  func counts(field: Int) throws {
    let image = try Self.image(hasRemovedKey: false) { header in
      switch field {
      case 0: header.segments[0].putCount = 2
      case 1:
        header.segments[0].tombstoneCount = 0
        header.segments[0].highestTombstone = 0
      case 2: header.segments[0].tombstoneByteCount -= 8
      case 3: header.segments[0].highestTombstone = 1
      case 4: header.segments[0].lowestSequence = 1
      default: header.segments[0].highestSequence = 2
      }
    }
    let header = try header(image)
    #expect(
      try errors(image) == [
        Corruption(
          file: FileName.checkpoint(Self.checkpointID), offset: header.offset(ofSegment: 0),
          cause: .differsFromLog)
      ])
  }
}
