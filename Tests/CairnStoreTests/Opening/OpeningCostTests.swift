import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@Suite("What opening reads")
struct OpeningCostTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Bytes of the segments and the checkpoint of a store.
  private func byteCounts(_ image: Image) -> (log: Int, checkpoint: Int) {
    let log = image.segmentNames.reduce(0) { $0 + (image.files[$1]?.count ?? 0) }
    let checkpoint = image.files.filter { $0.key.hasPrefix("ckpt-") }
    return (log, checkpoint.values.reduce(0) { $0 + $1.count })
  }

  private func configuration() -> StoreConfiguration {
    .small { $0.segmentByteLimit = 1 << 20 }
  }

  @Test("Replaced records are read once, however many are replayed")
  func replay() throws {
    let keyCount = 12_000
    let replayedCount = 60_000
    do {
      let store = try Store(directory.store, configuration())
      for number in 0..<keyCount { try store.setValue("first", forKey: "key \(number)") }
      try store.close()
    }
    let base = byteCounts(try Image(of: directory.store))
    let queue = ManualBackgroundQueue()
    let writer = try Store(directory.store, configuration(), background: queue)
    for number in 0..<replayedCount {
      try writer.setValue("again \(number)", forKey: "key \(number * 7919 % keyCount)")
    }
    let killed = try TemporaryDirectory()
    let image = try Image(of: directory.store)
    try image.write(to: killed.store)
    queue.discardAll()
    let fileSystem = FaultyFileSystem()
    let store = try Store(killed.store, configuration(), fileSystem: fileSystem)
    #expect(try store.statistics().recovery.replayedRecordCount == replayedCount)
    // The open searches for the end of the log, then replays the log. It reads the replaced records
    // and the checkpoint.
    let tail = byteCounts(image).log - base.log
    let limit = 2 * tail + base.log + base.checkpoint + (1 << 20)
    #expect(fileSystem.readByteCount < limit, "of \(limit)")
    #expect(try store.count() == keyCount)
    for number in stride(from: replayedCount - keyCount, to: replayedCount, by: 997) {
      #expect(try store.text("key \(number * 7919 % keyCount)") == "again \(number)")
    }
    #expect(try store.auditUsage() == [])
  }

  @Test("All damaged shards of a checkpoint are rebuilt in one pass over the log")
  func damagedShards() throws {
    var expected: [String: [UInt8]] = [:]
    do {
      let store = try Store(directory.store, configuration())
      for number in 0..<2000 {
        expected["key \(number)"] = [UInt8](repeating: UInt8(number & 255), count: 100)
        try store.setValue(expected["key \(number)"] ?? [], forKey: "key \(number)")
      }
      try store.close()
    }
    var image = try Image(of: directory.store)
    let name = FileName.checkpoint(try image.manifest.checkpointID)
    let header = try CheckpointFixture.header(of: try #require(image.files[name]), name)
    for (number, shard) in header.shards.enumerated() where shard.count > 0 && number % 3 != 0 {
      image = image.flipping(name, at: shard.offset + number % shard.byteCount)
    }
    let damaged = try TemporaryDirectory()
    try image.write(to: damaged.store)
    let fileSystem = FaultyFileSystem()
    let store = try Store(damaged.store, configuration(), fileSystem: fileSystem)
    // A snapshot that shows the state of the checkpoint needs the shards too.
    let snapshot = try store.snapshot()
    try store.checkpoint()
    #expect(try store.contents() == expected)
    #expect(try snapshot.count() == expected.count)
    let (log, checkpoint) = byteCounts(image)
    let limit = log + 5 * checkpoint + (1 << 18)
    #expect(fileSystem.readByteCount < limit, "of \(limit)")
    #expect(try store.auditUsage() == [])
    #expect(try store.statistics().recovery.source == .checkpoint)
  }

  @Test("Values that contain fake headers do not delay a recovery")
  func hostileValue() throws {
    // Every 8 bytes claimed to begin a record with the longest key and metadata, and a checksum
    // over 128 KiB was computed at each place: a million times here. The budget is in bytes, but a
    // test can measure only time.
    let scene = try StoreScene()
    let store = try scene.open { $0.segmentByteLimit = 64 << 20 }
    try store.setValue("1", forKey: "a")
    let killed = try scene.killed()
    let word: [UInt8] = [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 1, 8]
    try killed.edit { bytes in
      bytes.removeLast(bytes.count - 4096)
      var words = word
      while words.count < 8 << 20 { words += words }
      bytes += words
    }
    // Processor time, because a busy machine makes everything slow.
    func seconds() throws -> Double {
      // Read without the names of members: which module these seem to come from depends on what is
      // compiled together.
      let time = UnsafeMutablePointer<timespec>.allocate(capacity: 1)
      defer { unsafe time.deallocate() }
      try check("clock_gettime", unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, time))
      let words = unsafe UnsafeRawPointer(time).assumingMemoryBound(to: Int.self)
      return unsafe Double(words[0]) + Double(words[1]) * 1e-9
    }
    // An emulator makes checksums slow.
    let bytes = [UInt8](repeating: 7, count: 128 << 10)
    let before = try seconds()
    for _ in 0..<1000 { _ = CRC32C.checksum(of: bytes.rawSpan) }
    let thousand = try seconds() - before
    let start = try seconds()
    #expect(try killed.open(readOnly: true).count() == 1)
    #expect(try seconds() - start < 5 + 100 * thousand)
  }
}
