/// A checkpoint file with a valid header.
package struct CheckpointFile: Sendable {
  package let name: String
  package let header: Checkpoint
  /// The contents of a small file, which then need not stay open until all shards are loaded.
  private let bytes: [UInt8]?
  private let file: File?

  private static let smallByteCount = 64 << 10

  /// Opens the checkpoint that a manifest lists, or any other checkpoint file.
  ///
  /// - Parameter checksum: the checksum in the manifest, or `nil` to accept any.
  /// - Throws: `corrupt` if the file is invalid, `unsafeFile`, `system`.
  package init(
    in directory: Directory, id: UInt64, storeIdentifier: [UInt8], checksum: UInt32?
  ) throws(StoreError) {
    let name = FileName.checkpoint(id)
    func corrupt(_ offset: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(Corruption(file: name, offset: offset, cause: cause))
    }
    guard let file = try directory.openFile(name, mode: .readOnly) else {
      throw corrupt(0, .missingFile)
    }
    let fileByteCount = try file.status().byteCount
    guard fileByteCount <= FormatVersion.highestOffset else { throw corrupt(0, .badLength) }
    var bytes = [UInt8](repeating: 0, count: Checkpoint.fixedByteCount)
    guard try file.read(into: &bytes, at: 0) == bytes.count else {
      throw corrupt(fileByteCount, .fileTooShort)
    }
    let byteCount = try Checkpoint.headerByteCount(
      decoding: bytes.rawSpan, fileByteCount: fileByteCount, file: name)
    bytes = [UInt8](repeating: 0, count: byteCount)
    guard try file.read(into: &bytes, at: 0) == byteCount else {
      throw corrupt(fileByteCount, .fileTooShort)
    }
    header = try Checkpoint(
      decoding: bytes.rawSpan, fileByteCount: fileByteCount, checksum: checksum, file: name)
    guard header.storeIdentifier == storeIdentifier, header.id == id else {
      throw corrupt(16, .badHeader)
    }
    self.name = name
    var all = [UInt8](repeating: 0, count: min(fileByteCount, Self.smallByteCount))
    let isSmall = fileByteCount <= Self.smallByteCount
    let isRead = isSmall ? try file.read(into: &all, at: 0) == fileByteCount : false
    self.bytes = isRead ? all : nil
    self.file = isRead ? nil : file
  }

  /// The bytes from an offset; fewer at the end of the file.
  private func read(_ byteCount: Int, at offset: Int) throws(StoreError) -> [UInt8] {
    if let bytes { return Array(bytes[min(offset, bytes.count)...].prefix(byteCount)) }
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let count = try file?.read(into: &bytes, at: offset) ?? 0
    bytes.removeLast(byteCount - count)
    return bytes
  }

  /// The entries of a shard, checked against the header.
  ///
  /// - Throws: `corrupt` if the bytes differ from what was written; `system`.
  package func entries(
    ofShard number: Int, in places: SegmentPlaces
  ) throws(StoreError) -> [IndexEntry] {
    let shard = header.shards[number]
    func corrupt(_ entry: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(
        Corruption(
          file: name, offset: shard.offset + entry * Checkpoint.entryByteCount, cause: cause))
    }
    let read = try read(shard.byteCount, at: shard.offset)
    guard read.count == shard.byteCount else {
      throw corrupt(0, .fileTooShort)
    }
    let bytes = read.rawSpan
    guard CRC32C.checksum(of: bytes) == shard.checksum else { throw corrupt(0, .badChecksum) }
    var entries: [IndexEntry] = []
    entries.reserveCapacity(shard.count)
    var lastHash: UInt64 = 0
    var expirableCount = 0
    for number in 0..<shard.count {
      let entry = IndexEntry(decoding: bytes, at: number * Checkpoint.entryByteCount)
      // A valid checksum does not prove that the fields make sense.
      guard !entry.isEmpty, entry.hash >= lastHash, entry.tick <= header.tick,
        entry.flags.isSubset(of: .canExpire), places.contains(entry.location)
      else { throw corrupt(number, .badHeader) }
      lastHash = entry.hash
      if entry.flags.contains(.canExpire) { expirableCount += 1 }
      entries.append(entry)
    }
    guard expirableCount == shard.expirableCount, IndexShard.canHold(entries) else {
      throw corrupt(0, .badHeader)
    }
    return entries
  }
}

extension CheckpointFile {
  /// The least recently used entries when the checkpoint was made, in that order. The tick of every
  /// other entry is at least as high as that of the last one.
  ///
  /// - Throws: `corrupt` if the bytes differ from what was written; `system`.
  package func oldest(in places: SegmentPlaces) throws(StoreError) -> [RemovalCandidate] {
    if header.oldestCount == 0 { return [] }
    let start = header.oldestOffset
    func corrupt(_ offset: Int, _ cause: Corruption.Cause) -> StoreError {
      .corrupt(Corruption(file: name, offset: start + offset, cause: cause))
    }
    let read = try read(header.oldestSectionByteCount, at: start)
    guard read.count == header.oldestSectionByteCount else { throw corrupt(0, .fileTooShort) }
    let bytes = read.rawSpan
    let end = bytes.byteCount - 4
    guard CRC32C.checksum(of: bytes.extracting(0..<end)) == bytes.load(UInt32.self, at: end)
    else { throw corrupt(0, .badChecksum) }
    var candidates: [RemovalCandidate] = []
    candidates.reserveCapacity(header.oldestCount)
    for offset in stride(from: 0, to: end, by: Checkpoint.oldestByteCount) {
      let entry = IndexEntry(decoding: bytes, at: offset)
      let shard = bytes.load(UInt64.self, at: offset + 16)
      guard shard < UInt64(HashIndex.shardCount), places.contains(entry.location),
        entry.tick <= header.tick, entry.tick >= candidates.last?.entry.tick ?? 0
      else { throw corrupt(offset, .badHeader) }
      candidates.append(RemovalCandidate(entry, inShard: Int(shard), rank: entry.tick))
    }
    return candidates
  }
}

/// Maps locations to the segments in a checkpoint's table.
package struct SegmentPlaces: Sendable {
  private let segments: [Checkpoint.CoveredSegment]
  /// The number of the segment that occupies each granule, or -1 for none.
  private let numbers: [Int32]

  package init(_ segments: [Checkpoint.CoveredSegment]) {
    self.segments = segments
    let end = segments.reduce(0) { max($0, $1.granules.upperBound) }
    var numbers = [Int32](repeating: -1, count: end)
    for (number, segment) in segments.enumerated() {
      for granule in segment.granules { numbers[granule] = Int32(number) }
    }
    self.numbers = numbers
  }

  /// The number of the segment that holds the record at this location.
  @inline(__always)
  package func number(of location: Location) -> Int? {
    let granule = location.granule
    guard granule < numbers.count, numbers[granule] >= 0 else { return nil }
    let number = Int(numbers[granule])
    let offset = location.offset(fromGranule: segments[number].granule)
    guard offset >= SegmentHeader.byteCount,
      offset <= segments[number].end - RecordHeader.fixedByteCount
    else { return nil }
    return number
  }

  @inline(__always)
  func contains(_ location: Location) -> Bool { number(of: location) != nil }
}
