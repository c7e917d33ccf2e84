import CairnStore
import FuzzSupport
import Testing

/// A small store that was closed with a checkpoint, as the image of its directory.
struct CheckpointFixture {
  let image: Image
  let contents: [String: [UInt8]]
  let usage: StoreStatistics
  let ends: [String: Timestamp]
  /// The name of the checkpoint's file.
  let name: String

  /// - Parameters:
  ///   - keys: how many keys are written, at least 60; ten of them are removed.
  ///   - later: the writes of a second session that was killed.
  init(keys: Int = 60, _ later: ((Store) throws -> Void)? = nil) throws {
    let directory = try TemporaryDirectory()
    let store = try Store(directory.store, .small())
    for number in 0..<keys {
      try store.setValue(
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 20), forKey: "key\(number)",
        lifetime: number % 7 == 0 ? .seconds(1 << 30) : .standard)
    }
    for number in 0..<10 { try store.removeValue(forKey: "key\(number * 3)") }
    try store.setValue("again", forKey: "key50")
    for number in [7, 14, 28] {
      try store.setLifetime(.seconds(1 << 31), forKey: "key\(number)")
    }
    try store.setLifetime(.seconds(1 << 32), forKey: "key28")
    try store.close()
    let queue = ManualBackgroundQueue()
    let again = try Store(directory.store, .small(), background: queue)
    try later?(again)
    contents = try again.contents()
    ends = try again.ends()
    usage = try again.statistics()
    image = try Image(of: directory.store)
    queue.discardAll()
    name = FileName.checkpoint(try image.manifest.checkpointID)
    try #require(image.files[name] != nil)
  }

  /// The header of the checkpoint.
  var header: Checkpoint {
    get throws {
      let bytes = try #require(image.files[name])
      return try Self.header(of: bytes, name)
    }
  }

  static func header(of bytes: [UInt8], _ name: String) throws -> Checkpoint {
    let span = bytes.rawSpan
    let byteCount = try Checkpoint.headerByteCount(
      decoding: span, fileByteCount: span.byteCount, file: name)
    return try Checkpoint(
      decoding: span.extracting(0..<byteCount), fileByteCount: span.byteCount, checksum: nil,
      file: name)
  }

  /// The image with other bytes in the checkpoint, and a matching manifest.
  func binding(_ bytes: [UInt8]) throws -> Image {
    var image = image
    image.files[name] = bytes
    let size = Int(bytes.rawSpan.load(UInt32.self, at: 12))
    guard size >= 4, size <= bytes.count else { return image }
    var sealed = bytes
    let checksum = CRC32C.checksum(of: bytes.rawSpan.extracting(0..<(size - 4)))
    sealed.withMutableSpan { $0.store(checksum, at: size - 4) }
    image.files[name] = sealed
    return try image.changingManifest { $0.checkpointChecksum = checksum }
  }

  /// The image with another record's location in the entry of a key, and with right checksums.
  func naming(_ location: Location, forKey key: String) throws -> Image {
    var bytes = try #require(image.files[name])
    var header = try header
    let secret = try image.manifest.hashSecret
    let hash = SipHash(secret: secret).hash(Array(key.utf8).rawSpan)
    // The lowest byte is the shard, and entries store the upper 40 bits.
    let number = Int(hash & 0xFF)
    let shard = header.shards[number]
    let offset = try #require(
      (0..<shard.count).map { shard.offset + $0 * Checkpoint.entryByteCount }.first { offset in
        IndexEntry(decoding: bytes.rawSpan, at: offset).hash == hash >> 24
      })
    let known = IndexEntry(decoding: bytes.rawSpan, at: offset)
    let entry = IndexEntry(
      hash: known.hash, location: location, tick: known.tick, flags: known.flags)
    bytes.withMutableSpan {
      $0.store(entry.words.0, at: offset)
      $0.store(entry.words.1, at: offset + 8)
    }
    header.shards[number].checksum = CRC32C.checksum(
      of: bytes.rawSpan.extracting(shard.offset..<(shard.offset + shard.byteCount)))
    bytes.replaceSubrange(0..<header.headerByteCount, with: header.encodedHeader())
    return try binding(bytes)
  }

  /// Opens an image and compares the result with the expected contents.
  @discardableResult
  func expectSound(
    _ image: Image, _ place: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RecoveryReport {
    let directory = try TemporaryDirectory()
    try image.write(to: directory.store)
    return try expectSound(at: directory.store, place, sourceLocation: sourceLocation)
  }

  @discardableResult
  func expectSound(
    at path: String, _ place: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RecoveryReport {
    let store = try Store(path, .small())
    #expect(try store.contents() == contents, "\(place)", sourceLocation: sourceLocation)
    #expect(try store.ends() == ends, "\(place)", sourceLocation: sourceLocation)
    #expect(try store.count() == contents.count, "\(place)", sourceLocation: sourceLocation)
    let statistics = try store.statistics()
    #expect(
      statistics.liveByteCount == usage.liveByteCount, "\(place)", sourceLocation: sourceLocation)
    #expect(
      statistics.deadByteCount == usage.deadByteCount, "\(place)", sourceLocation: sourceLocation)
    #expect(try store.auditUsage() == [], "\(place)", sourceLocation: sourceLocation)
    let report = statistics.recovery
    try store.setValue("new", forKey: "new", durability: .process)
    try store.close()
    let again = try Store(path, .small())
    #expect(
      try again.contents() == contents.merging(["new": Array("new".utf8)]) { $1 }, "\(place)",
      sourceLocation: sourceLocation)
    try again.close()
    return report
  }
}
