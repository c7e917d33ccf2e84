// Layout, little-endian; Docs/FileFormat/Checkpoint.md has the table.
//
//     0        8       10      12     16           80                                   size-4  size
//     ┌────────┬───────┬───────┬──────┬────────────┬─────────┬──────────┬────────┬───┬─────┬───────
//     │ magic  │ major │ minor │ size │ fixed part │ samples │ segments │ shards │ n │ CRC │ entries
//     └────────┴───────┴───────┴──────┴────────────┴─────────┴──────────┴────────┴───┴─────┴───────

extension Checkpoint {
  /// Bytes before the samples.
  package static let fixedByteCount = 80
  package static let floorSequenceOffset = 40
  package static let lastSequenceOffset = 48
  private static let sampleByteCount = 16
  package static let segmentByteCount = 112
  package static let shardByteCount = 20
  /// Far more than the largest store needs. Limits how much is read.
  package static let maximumHeaderByteCount = 64 << 20

  package static func headerByteCount(samples: Int, segments: Int) -> Int {
    fixedByteCount + samples * sampleByteCount + segments * segmentByteCount
      + shardCount * shardByteCount + 8
  }

  /// The offset of a segment in the table.
  package func offset(ofSegment number: Int) -> Int {
    Self.fixedByteCount + samples.count * Self.sampleByteCount + number * Self.segmentByteCount
  }

  /// The bytes of the header; the last four are the checksum.
  package func encodedHeader() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerByteCount)
    bytes.append(contentsOf: Self.magic)
    bytes.append(littleEndian: FormatVersion.major)
    bytes.append(littleEndian: FormatVersion.minor)
    bytes.append(littleEndian: UInt32(headerByteCount))
    bytes.append(contentsOf: storeIdentifier)
    bytes.append(littleEndian: id)
    bytes.append(littleEndian: floorSequence)
    bytes.append(littleEndian: lastSequence)
    bytes.append(littleEndian: tick)
    bytes.append(littleEndian: UInt64(entryCount))
    bytes.append(littleEndian: UInt32(samples.count))
    bytes.append(littleEndian: UInt32(segments.count))
    for sample in samples {
      bytes.append(littleEndian: sample.tick)
      bytes.append(littleEndian: sample.time.millisecondsSinceEpoch)
    }
    for segment in segments {
      bytes.append(littleEndian: segment.id.rawValue)
      bytes.append(littleEndian: segment.salt)
      bytes.append(littleEndian: UInt64(segment.end))
      bytes.append(littleEndian: UInt32(segment.granule))
      bytes.append(littleEndian: UInt32(segment.granuleCount))
      bytes.append(littleEndian: UInt64(segment.liveByteCount))
      bytes.append(littleEndian: UInt64(segment.putCount))
      bytes.append(littleEndian: UInt64(segment.livePutCount))
      bytes.append(littleEndian: UInt64(segment.tombstoneCount))
      bytes.append(littleEndian: UInt64(segment.tombstoneByteCount))
      bytes.append(littleEndian: segment.highestTombstone)
      bytes.append(littleEndian: segment.lowestSequence)
      bytes.append(littleEndian: segment.highestSequence)
      bytes.append(littleEndian: segment.earliestExpiry)
      bytes.append(littleEndian: segment.shortestIdleLimit)
    }
    for shard in shards {
      bytes.append(littleEndian: UInt64(shard.offset))
      bytes.append(littleEndian: UInt32(shard.count))
      bytes.append(littleEndian: UInt32(shard.expirableCount))
      bytes.append(littleEndian: shard.checksum)
    }
    bytes.append(littleEndian: UInt32(oldestCount))
    bytes.append(littleEndian: CRC32C.checksum(of: bytes.rawSpan))
    return bytes
  }

  /// The size of the header, from the first bytes of the file. Other versions have the size in the
  /// same place, and the checksum at the end.
  ///
  /// - Throws: `corrupt` if the bytes cannot begin a checkpoint in a file of that size.
  package static func headerByteCount(
    decoding bytes: RawSpan, fileByteCount: Int, file: String
  ) throws(StoreError) -> Int {
    func corrupt(_ offset: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(Corruption(file: file, offset: offset, cause: cause))
    }
    guard bytes.byteCount >= fixedByteCount else { throw corrupt(0, .fileTooShort) }
    guard bytes.extracting(0..<8).copied() == magic else {
      throw corrupt(0, .badMagic)
    }
    let byteCount = Int(bytes.load(UInt32.self, at: 12))
    guard (fixedByteCount...maximumHeaderByteCount).contains(byteCount), byteCount <= fileByteCount
    else { throw corrupt(12, .badLength) }
    guard bytes.load(UInt16.self, at: 8) == FormatVersion.major else { return byteCount }
    let samples = Int(bytes.load(UInt32.self, at: 72))
    let segments = Int(bytes.load(UInt32.self, at: 76))
    guard byteCount == headerByteCount(samples: samples, segments: segments)
    else { throw corrupt(12, .badLength) }
    return byteCount
  }

  /// Reads the header from all of its bytes.
  ///
  /// - Parameter checksum: the required checksum, from the manifest, or `nil` to accept any that
  ///   matches the bytes.
  /// - Throws: `corrupt` with the offset of the damage, or `unsupportedVersion`.
  package init(
    decoding bytes: RawSpan, fileByteCount: Int, checksum: UInt32?, file: String
  ) throws(StoreError) {
    func corrupt(_ offset: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(Corruption(file: file, offset: offset, cause: cause))
    }
    let byteCount = try Self.headerByteCount(
      decoding: bytes, fileByteCount: fileByteCount, file: file)
    guard bytes.byteCount == byteCount else { throw corrupt(12, .badLength) }
    let stored = bytes.load(UInt32.self, at: byteCount - 4)
    let isIntact = CRC32C.checksum(of: bytes.extracting(0..<(byteCount - 4))) == stored
    // The manifest identifies the file by its checksum, because an older file, or one from a copy
    // of the store, can have the same name.
    let isBound = checksum == nil || checksum == stored
    guard isIntact, isBound else { throw corrupt(byteCount - 4, .badChecksum) }
    let major = bytes.load(UInt16.self, at: 8)
    guard major == FormatVersion.major else {
      throw .unsupportedVersion(file: file, major: Int(major))
    }
    self.init(
      storeIdentifier: bytes.extracting(16..<32).copied(), id: bytes.load(UInt64.self, at: 32))
    floorSequence = bytes.load(UInt64.self, at: Self.floorSequenceOffset)
    lastSequence = bytes.load(UInt64.self, at: Self.lastSequenceOffset)
    tick = bytes.load(UInt64.self, at: 56)
    let entryCount = bytes.load(UInt64.self, at: 64)
    let sampleCount = Int(bytes.load(UInt32.self, at: 72))
    let segmentCount = Int(bytes.load(UInt32.self, at: 76))
    var offset = Self.fixedByteCount
    func next<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type) -> Value {
      defer { offset += MemoryLayout<Value>.size }
      return bytes.load(type, at: offset)
    }
    func nextCount() -> Int { Int(clamping: next(UInt64.self)) }
    samples.reserveCapacity(sampleCount)
    for _ in 0..<sampleCount {
      samples.append(
        Sample(
          tick: next(UInt64.self), time: Timestamp(millisecondsSinceEpoch: next(Int64.self))))
    }
    let segmentsOffset = offset
    segments.reserveCapacity(segmentCount)
    for _ in 0..<segmentCount {
      var segment = CoveredSegment(
        id: SegmentID(rawValue: next(UInt64.self)), salt: next(UInt64.self), end: nextCount())
      segment.granule = Int(next(UInt32.self))
      segment.granuleCount = Int(next(UInt32.self))
      segment.liveByteCount = nextCount()
      segment.putCount = nextCount()
      segment.livePutCount = nextCount()
      segment.tombstoneCount = nextCount()
      segment.tombstoneByteCount = nextCount()
      segment.highestTombstone = next(UInt64.self)
      segment.lowestSequence = next(UInt64.self)
      segment.highestSequence = next(UInt64.self)
      segment.earliestExpiry = next(Int64.self)
      segment.shortestIdleLimit = next(UInt64.self)
      segments.append(segment)
    }
    let shardsOffset = offset
    for index in shards.indices {
      shards[index].offset = nextCount()
      shards[index].count = Int(next(UInt32.self))
      shards[index].expirableCount = Int(next(UInt32.self))
      shards[index].checksum = next(UInt32.self)
    }
    oldestCount = Int(next(UInt32.self))
    // A valid checksum does not prove that the fields make sense.
    guard hasValidSequencesAndTicks else { throw corrupt(Self.floorSequenceOffset, .badHeader) }
    guard hasValidSegments else { throw corrupt(segmentsOffset, .badHeader) }
    guard hasValidShards(fileByteCount: fileByteCount), UInt64(self.entryCount) == entryCount,
      segments.reduce(0, { $0 + $1.livePutCount }) == self.entryCount
    else { throw corrupt(shardsOffset, .badHeader) }
  }

  private var hasValidSequencesAndTicks: Bool {
    guard floorSequence <= FormatVersion.highestSequence,
      lastSequence <= FormatVersion.highestSequence, id < FormatVersion.highestSequence,
      tick < Self.tickLimit
    else { return false }
    var last: UInt64 = 0
    for sample in samples {
      if sample.tick < last || sample.tick > tick { return false }
      last = sample.tick
    }
    return true
  }

  private var hasValidSegments: Bool {
    var ids: Set<SegmentID> = []
    for segment in segments {
      let size = segment.end - SegmentHeader.byteCount
      // Each count is checked alone first, so that their sum cannot overflow.
      guard ids.insert(segment.id).inserted,
        (SegmentHeader.byteCount...FormatVersion.highestOffset).contains(segment.end),
        segment.end % 8 == 0, segment.liveByteCount <= size,
        segment.putCount <= size / RecordHeader.fixedByteCount,
        segment.tombstoneCount <= size / RecordHeader.fixedByteCount,
        segment.putCount + segment.tombstoneCount <= size / RecordHeader.fixedByteCount,
        segment.livePutCount <= segment.putCount,
        segment.tombstoneByteCount <= size - segment.liveByteCount,
        segment.highestTombstone <= segment.highestSequence,
        (segment.tombstoneCount == 0) == (segment.highestTombstone == 0),
        segment.lowestSequence <= segment.highestSequence, segment.highestSequence <= lastSequence,
        segment.granule >= 1, segment.granuleCount >= 1,
        segment.granules.upperBound <= Location.granuleCount,
        segment.end <= segment.capacity
      else { return false }
    }
    let runs = segments.map(\.granules).sorted { $0.lowerBound < $1.lowerBound }
    return zip(runs, runs.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }
  }

  /// Whether the parts follow each other without gaps to the end of the file.
  private func hasValidShards(fileByteCount: Int) -> Bool {
    var end = headerByteCount
    for shard in shards {
      guard shard.offset == end, shard.expirableCount <= shard.count,
        shard.count <= Self.shardEntryLimit,
        shard.count <= (fileByteCount - end) / Self.entryByteCount,
        shard.byteCount <= fileByteCount - end
      else { return false }
      end += shard.byteCount
    }
    return oldestCount <= min(entryCount, Self.oldestLimit)
      && oldestSectionByteCount == fileByteCount - end
  }
}
