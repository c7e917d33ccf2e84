import CairnEssentials
import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport
import Testing

@Suite("Opening with a checkpoint")
struct CheckpointTests {
  @Test("A clean open reads no record")
  func cleanOpen() throws {
    let fixture = try CheckpointFixture()
    let report = try fixture.expectSound(fixture.image)
    #expect(report.source == .checkpoint)
    #expect(report.replayedRecordCount == 0)
    #expect(report.wasClean)
  }

  @Test("After a kill, only records after the checkpoint are replayed")
  func killedOpen() throws {
    let fixture = try CheckpointFixture { store in
      try store.setValue("later", forKey: "key5")
      try store.removeValue(forKey: "key7")
      try store.write { batch in
        try batch.setValue("a", forKey: "batch a")
        try batch.removeValue(forKey: "key8")
      }
      try store.setValue("back", forKey: "key0")
    }
    let report = try fixture.expectSound(fixture.image)
    #expect(report.source == .checkpoint)
    #expect(report.replayedRecordCount == 5)
    #expect(!report.wasClean)
  }

  @Test("Replay reads the heads of replaced records together")
  func replacedHeads() throws {
    let disk = SimulatedDisk()
    // One key in ten is too long for its head to be read together with the others.
    func key(_ number: Int) -> [UInt8] {
      Array(String(repeating: "k", count: number % 10 == 0 ? 700 : 5).utf8)
        + Array("\(number)".utf8)
    }
    func put(_ number: Int, _ byteCount: Int, in store: Store) throws {
      try store.setValue(
        [UInt8](repeating: UInt8(byteCount & 255), count: byteCount), forKey: key(number),
        durability: .process)
    }
    let clock = ManualClock()
    let process = SimulatedProcess.start(on: disk, seed: 1)
    do {
      let store = try process.open(.simulated(clock))
      for number in 0..<1000 { try put(number, 100, in: store) }
    }
    try process.close()
    let writer = SimulatedProcess.start(on: disk, seed: 2)
    let again = try writer.open(.simulated(clock))
    // Twice, so that a record also replaces one of the same part of the log.
    for byteCount in [20, 30] {
      for number in stride(from: 0, to: 1000, by: 4) { try put(number, byteCount, in: again) }
    }
    for number in stride(from: 0, to: 1000, by: 8) { try again.removeValue(forKey: key(number)) }
    writer.kill()
    let reader = SimulatedProcess.start(on: disk, seed: 3)
    defer { reader.kill() }
    var readCount = 0
    reader.fileSystem.intervene = { call in
      if call == .read { readCount += 1 }
      return nil
    }
    let found = try reader.open(.simulated(clock))
    reader.fileSystem.intervene = nil
    #expect(try found.statistics().recovery.replayedRecordCount == 625)
    // 50 of the 250 keys are long. The head of a long key takes two calls. The search for the end
    // of the log takes the other calls.
    #expect(readCount < 200, "\(readCount) reads")
    for number in 0..<1000 {
      let byteCount = number % 8 == 0 ? nil : number % 4 == 0 ? 30 : 100
      #expect(try found.value(forKey: key(number))?.count == byteCount)
    }
    #expect(try found.auditUsage() == [])
  }

  @Test("A session that writes nothing leaves every file unchanged, even if it reads")
  func readingSession() throws {
    let fixture = try CheckpointFixture()
    let directory = try TemporaryDirectory()
    try fixture.image.write(to: directory.store)
    let store = try Store(directory.store, .small())
    _ = try store.contents()
    _ = try store.value(forKey: "key1")
    try store.close()
    #expect(try Image(of: directory.store) == fixture.image)
  }

  @Test("A close after few records makes no checkpoint; one after more replaces the last")
  func threshold() throws {
    let fixture = try CheckpointFixture()
    let directory = try TemporaryDirectory()
    try fixture.image.write(to: directory.store)
    for (count, isNew) in [(16, false), (1, true)] {
      let store = try Store(directory.store, .small())
      for number in 0..<count { try store.setValue("x", forKey: "more\(number)") }
      try store.close()
      let image = try Image(of: directory.store)
      #expect((image.files[fixture.name] == nil) == isNew)
      #expect(image.files.keys.count { $0.hasPrefix("ckpt-") } == 1)
      #expect(try Store.verify(path: directory.store).errors == [])
    }
  }

  @Test("A checkpoint is made in the background when enough was appended")
  func background() throws {
    let directory = try TemporaryDirectory()
    let queue = ManualBackgroundQueue()
    let store = try Store(
      directory.store, .small { $0.checkpointByteThreshold = 100 << 10 }, background: queue)
    for number in 0..<300 {
      try store.setValue(
        [UInt8](repeating: 1, count: 1000), forKey: "key\(number)", durability: .process)
      queue.runAll()
    }
    let contents = try store.contents()
    let image = try Image(of: directory.store)
    let name = FileName.checkpoint(try image.manifest.checkpointID)
    let header = try CheckpointFixture.header(of: try #require(image.files[name]), name)
    #expect(header.lastSequence > 150)
    let copy = try TemporaryDirectory()
    try image.write(to: copy.store)
    let again = try Store(copy.store, .small())
    #expect(try again.contents() == contents)
    #expect(try again.statistics().recovery.replayedRecordCount == 300 - Int(header.lastSequence))
    #expect(try again.statistics().recovery.quarantinedFiles == [])
    queue.discardAll()
  }

  @Test("A removal of all also removes the checkpoint")
  func removalOfAll() throws {
    let fixture = try CheckpointFixture()
    let directory = try TemporaryDirectory()
    try fixture.image.write(to: directory.store)
    let store = try Store(directory.store, .small(), background: ManualBackgroundQueue())
    try store.removeAll()
    try store.setValue("1", forKey: "one")
    try store.close()
    let image = try Image(of: directory.store)
    #expect(try image.manifest.checkpointID == 0)
    #expect(image.files[fixture.name] == nil)
    let again = try Store(directory.store, .small())
    #expect(try again.contents() == ["one": Array("1".utf8)])
  }

  @Test("Without room for a checkpoint, a store closes, and opens without one")
  func fullDisk() throws {
    let directory = try TemporaryDirectory()
    let fileSystem = FaultyFileSystem()
    let store = try Store(directory.store, .small(), fileSystem: fileSystem)
    for number in 0..<200 { try store.setValue("value", forKey: "key\(number)") }
    let contents = try store.contents()
    fileSystem.fillDisk()
    try store.close()
    let image = try Image(of: directory.store)
    #expect(try image.manifest.checkpointID == 0)
    #expect(image.files.keys.allSatisfy { !$0.hasPrefix("ckpt-") })
    let again = try Store(directory.store, .small())
    #expect(try again.contents() == contents)
    #expect(try again.statistics().recovery.source == .scan)
  }

  @Test("The log reports once that no checkpoint can be made, until one succeeds")
  func toldOnce() throws {
    let directory = try TemporaryDirectory()
    let messages = Messages()
    let queue = ManualBackgroundQueue()
    let fileSystem = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.checkpointByteThreshold = 100 << 10
        $0.log = DiagnosticLog { messages.add($0.text) }
      }, fileSystem: fileSystem, background: queue)
    let value = [UInt8](repeating: 1, count: 1000)
    for count in 1...2 {
      fileSystem.setHook { $0.call == .allocate && $0.file.hasPrefix("ckpt-") ? ENOSPC : nil }
      for number in 0..<500 {
        try store.setValue(value, forKey: "key\(number)", durability: .process)
        queue.runAll()
      }
      #expect(messages.all.count { $0.hasPrefix("no checkpoint is made: ") } == count)
      fileSystem.setHook(nil)
      try store.checkpoint()
    }
    try store.close()
  }

  @Test("The order of accesses and their times survive a close")
  func recency() throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let store = try Store(directory.store, .small(clock: clock))
    for number in 0..<50 {
      try store.setValue("v", forKey: "key\(number)", options: .idleLimit(.seconds(1000)))
    }
    clock.advance(by: .seconds(600))
    for number in stride(from: 48, through: 0, by: -2) {
      _ = try store.value(forKey: "key\(number)")
    }
    let order = try store.keysByRecency()
    try store.close()
    clock.advance(by: .seconds(390))
    let again = try Store(directory.store, .small(clock: clock))
    #expect(try again.keysByRecency() == order)
    #expect(try again.count() == 50)
    let accessed = try #require(try again.info(forKey: "key48")?.accessed)
    #expect(accessed.millisecondsSinceEpoch == ManualClock.start.millisecondsSinceEpoch + 600_000)
    // Entries that were only written have been idle for 990 s.
    clock.advance(by: .seconds(30))
    #expect(try again.count() == 25)
  }

  @Test("When ticks run out, they are renumbered in the same order")
  func tickCompression() throws {
    let fixture = try CheckpointFixture()
    let base: UInt64 = (1 << 43) + 12345
    var bytes = try #require(fixture.image.files[fixture.name])
    var header = try fixture.header
    // The ticks of all entries, all samples and the clock are raised.
    for number in header.shards.indices {
      let shard = header.shards[number]
      for offset in stride(from: shard.offset, to: shard.offset + shard.count * 16, by: 16) {
        let old = IndexEntry(decoding: bytes.rawSpan, at: offset)
        let entry = IndexEntry(
          hash: old.hash, location: old.location, tick: old.tick + base, flags: old.flags)
        bytes.withMutableSpan {
          $0.store(entry.words.0, at: offset)
          $0.store(entry.words.1, at: offset + 8)
        }
      }
      header.shards[number].checksum = CRC32C.checksum(
        of: bytes.rawSpan.extracting(shard.offset..<(shard.offset + shard.byteCount)))
    }
    header.tick += base
    for index in header.samples.indices { header.samples[index].tick += base }
    bytes.replaceSubrange(0..<header.headerByteCount, with: header.encodedHeader())
    func order(of image: Image) throws -> [[UInt8]] {
      let directory = try TemporaryDirectory()
      try image.write(to: directory.store)
      let store = try Store(directory.store, .small())
      #expect(try store.statistics().recovery.source == .checkpoint)
      defer { try? store.close() }
      return try store.keysByRecency()
    }
    let forged = try fixture.binding(bytes)
    #expect(try order(of: forged) == order(of: fixture.image))
    // The next checkpoint has small ticks again.
    let directory = try TemporaryDirectory()
    try forged.write(to: directory.store)
    let store = try Store(directory.store, .small())
    for number in 0..<20 { try store.setValue("x", forKey: "x\(number)") }
    try store.close()
    let image = try Image(of: directory.store)
    let name = FileName.checkpoint(try image.manifest.checkpointID)
    let next = try CheckpointFixture.header(of: try #require(image.files[name]), name)
    #expect(next.tick < 1000)
  }

  @Test("Segments keep their places from session to session, and free places are reused")
  func places() throws {
    let directory = try TemporaryDirectory()
    var numbers: Set<Int> = []
    for session in 0..<6 {
      let store = try Store(directory.store, .small())
      if session == 3 { try store.removeAll() }
      for number in 0..<120 {
        try store.setValue(
          [UInt8](repeating: UInt8(session), count: 1000), forKey: "\(session) \(number)",
          durability: .process)
      }
      try store.close()
      let image = try Image(of: directory.store)
      let name = FileName.checkpoint(try image.manifest.checkpointID)
      let header = try CheckpointFixture.header(of: try #require(image.files[name]), name)
      numbers.formUnion(header.segments.map(\.granule))
    }
    #expect(numbers.count < 12)
    let store = try Store(directory.store, .small())
    #expect(try store.count() == 360)
    #expect(try store.auditUsage() == [])
  }
}
