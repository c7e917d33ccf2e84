import CairnEssentials
import CairnLibC
import FuzzSupport
import Testing

@testable import CairnStore

/// Segments of 72 KiB: 60 values of 2,000 bytes are in the first, the second and an active third.
final class ScrubScene {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let queue = ManualBackgroundQueue()
  let files = FaultyFileSystem()
  let events = Collected<Damage>()
  let log = Messages()

  init() throws { directory = try TemporaryDirectory() }

  var environment: Environment {
    Environment(
      fileSystem: files, background: queue, pause: { [clock] in clock.advance(by: $0) })
  }

  func open(
    readOnly: Bool = false, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws -> Store {
    try Store(
      path: directory.store,
      configuration: .small(clock: clock) {
        $0.damageObserver = { [events] in events.add($0) }
        $0.log = DiagnosticLog { [log] in log.add($0.text) }
        change(&$0)
      }, environment: environment, readOnly: readOnly)
  }

  func fill(_ store: Store, _ numbers: Range<Int> = 0..<60, byteCount: Int = 2000) throws {
    for number in numbers {
      try store.setValue(
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: byteCount),
        forKey: "key \(number)")
    }
    queue.runAll(dueAfter: .zero)
  }

  /// Where the newest record of a key is.
  func place(of key: String) throws -> (file: String, record: Image.PlacedRecord) {
    let image = try Image(of: directory.store)
    for name in image.segmentNames.reversed() {
      let records = try image.records(in: name)
      if let record = records.last(where: { $0.key == Array(key.utf8) }) { return (name, record) }
    }
    throw SupportError(call: "no \(key)", number: 0)
  }

  /// Changes a byte of a record on the disk, at an offset in the record.
  @discardableResult
  func damage(_ key: String, at offset: Int) throws -> Corruption {
    let (file, record) = try place(of: key)
    let path = "\(directory.store)/\(file)"
    let byte = try readFile(path)[record.offset + offset] ^ 1
    try overwriteFile(path, [byte], at: record.offset + offset)
    return Corruption(file: file, offset: record.offset, cause: .badRecordHeader)
  }

  /// Damages a value.
  func damageValue(_ key: String) throws -> Damage {
    let (file, record) = try place(of: key)
    try damage(key, at: record.header.headByteCount + 100)
    let place = Corruption(
      file: file, offset: record.offset + record.header.headByteCount, cause: .badValue)
    return Damage(place: place, keys: [Array(key.utf8)], keyCount: 1)
  }
}

@Suite("A manual scrub")
struct ScrubTests {
  let scene: ScrubScene

  init() throws { scene = try ScrubScene() }

  @Test("A sound store is read once, completely")
  func sound() throws {
    let store = try scene.open()
    try scene.fill(store)
    let read = scene.files.readByteCount
    let report = try store.scrub()
    #expect(report.damage == [] && report.isComplete)
    // Each segment but the last ends with a roll.
    #expect(report.recordCount == 60 + (try store.statistics().segmentCount) - 1)
    #expect(report.byteCount > 60 * 2000 && report.byteCount < 2 * 60 * 2048)
    #expect(scene.files.readByteCount - read == report.byteCount)
    #expect(try store.statistics().scrub.lastCompleted == scene.clock.now())
  }

  @Test(
    "A damaged value is reported by event with its key, in a sealed and in the active segment",
    arguments: [0, 1, 59], [true, false])
  func value(number: Int, isMapped: Bool) throws {
    let store = try scene.open { if !isMapped { $0.mapsFiles = false } }
    try scene.fill(store)
    let event = try scene.damageValue("key \(number)")
    let report = try store.scrub()
    #expect(report.damage == [event])
    #expect(scene.events.all == [event])
    #expect(scene.log.all.contains { $0.hasPrefix("damage: \(event.place)") })
    #expect(!scene.log.all.contains { $0.contains("key \(number)") }, "the log has no keys")
    #expect(try store.statistics().scrub.lastDamageCount == 1)
    // The value is not removed.
    #expect(storeError { _ = try store.value(forKey: "key \(number)") }?.corruption == event.place)
    try scene.fill(store, number..<(number + 1))
    #expect(try store.scrub().damage == [], "a write heals it")
  }

  @Test("A value that was overwritten or removed does not matter")
  func dead() throws {
    let store = try scene.open { $0.spaceBound = 1000 }
    try scene.fill(store)
    _ = try scene.damageValue("key 3")
    _ = try scene.damageValue("key 4")
    try scene.fill(store, 3..<4)
    try store.removeValue(forKey: "key 4")
    #expect(try store.scrub().damage == [])
  }

  @Test("A damaged value of several steps costs only its key")
  func large() throws {
    let store = try scene.open()
    try scene.fill(store)
    try scene.fill(store, 100..<101, byteCount: 1_000_000)
    try scene.fill(store, 101..<103)
    #expect(try store.scrub().damage == [])
    let (file, record) = try scene.place(of: "key 100")
    try overwriteFile(
      "\(scene.directory.store)/\(file)", [1, 2, 3], at: record.valueRange.upperBound - 10)
    let report = try store.scrub()
    #expect(report.damage.map(\.keys) == [[Array("key 100".utf8)]])
    #expect(report.recordCount == (try store.scrub().recordCount))
  }

  @Test("A damaged head is reported with its key if that is sound", arguments: [0, 1, 9, 13])
  func head(offset: Int) throws {
    let store = try scene.open()
    try scene.fill(store)
    let place = try scene.damage("key 8", at: offset)
    let event = Damage(place: place, keys: [Array("key 8".utf8)], keyCount: 1)
    #expect(try store.scrub().damage == [event])
    #expect(scene.events.all == [event])
  }

  @Test("If the key is damaged, the number of keys is reported", arguments: [20, 22, 24])
  func headWithKey(offset: Int) throws {
    let store = try scene.open()
    try scene.fill(store)
    let place = try scene.damage("key 8", at: offset)
    #expect(
      try store.scrub().damage == [Damage(place: place, keys: [], keyCount: 1)])
  }

  @Test("Where a file is cut off, a scrub skips the rest at once")
  func cutOff() throws {
    let store = try scene.open { $0.mapsFiles = false }
    try scene.fill(store)
    let (file, record) = try scene.place(of: "key 3")
    let isCut = unsafe truncate("\(scene.directory.store)/\(file)", off_t(record.offset)) == 0
    try #require(isCut)
    let readCount = Lock(0)
    scene.files.setHook { event in
      if event.call == .read { readCount.withLock { $0 += 1 } }
      return nil
    }
    let damage = try store.scrub().damage
    scene.files.setHook(nil)
    #expect(damage.map(\.place.offset) == [record.offset])
    #expect(damage[0].keyCount ?? 0 > 10)
    #expect(readCount.withLock { $0 } < 300)
  }

  @Test("Bytes that the disk cannot read are reported with their keys")
  func unreadable() throws {
    let disk = SimulatedDisk()
    let process = SimulatedProcess.start(on: disk, seed: 1, mistake: nil)
    defer { process.kill() }
    let store = try process.open(
      .small(clock: scene.clock) {
        $0.damageObserver = { [events = scene.events] in events.add($0) }
      })
    try store.setValue([UInt8](repeating: 1, count: 2000), forKey: "before")
    try store.setValue([UInt8](repeating: 2, count: 20_000), forKey: "value")
    try store.setValue([UInt8](repeating: 3, count: 2000), forKey: "after")
    try store.sync()
    let file = try #require(
      store.statistics().segments.first.map { FileName.segment(SegmentID(rawValue: $0.id)) })
    disk.setUnreadable(8192..<12288, of: "\(SimulatedProcess.path)/\(file)")
    let report = try store.scrub()
    #expect(report.damage.map(\.keys) == [[Array("value".utf8)]])
    #expect(report.damage.map(\.place.cause) == [.unreadable])
    #expect(report.recordCount == 3)
  }

  @Test("A segment whose file was removed is reported with its keys", arguments: [true, false])
  func missingFile(isMapped: Bool) throws {
    let store = try scene.open { if !isMapped { $0.mapsFiles = false } }
    try scene.fill(store)
    let (file, _) = try scene.place(of: "key 3")
    let keys = try Image(of: scene.directory.store).records(in: file)
      .filter { $0.header.kind == .put }.map(\.key)
    try check("unlink", unsafe unlink("\(scene.directory.store)/\(file)"))
    let damage = try store.scrub().damage
    #expect(damage.map(\.place) == [Corruption(file: file, offset: 0, cause: .missingFile)])
    #expect(damage.map(\.keyCount) == [keys.count])
    // Without a mapping, the keys are unknown.
    #expect(damage.map { Set($0.keys) } == [isMapped ? Set(keys) : []])
  }

  @Test("If the directory of a store was removed, no file counts as missing")
  func vanished() throws {
    let store = try scene.open()
    try scene.fill(store)
    try FileManager.default.removeItem(atPath: scene.directory.store)
    #expect(storeError { try store.scrub() } == .vanished(path: scene.directory.store))
    #expect(scene.events.all == [])
  }

  // MARK: Pace, end

  @Test("A scrub reads as many bytes a second as configured, in small steps")
  func pace() throws {
    let store = try scene.open()
    try scene.fill(store, 0..<600)
    let began = scene.clock.now()
    var last = 0
    let report = try store.scrub(bytesPerSecond: 100_000) { progress in
      #expect(
        progress.completedCount >= last && progress.completedCount <= progress.totalCount ?? 0)
      last = progress.completedCount
      return .next
    }
    let passed = scene.clock.now().millisecondsSinceEpoch - began.millisecondsSinceEpoch
    let expected = Int64(report.byteCount) * 1000 / 100_000
    #expect(abs(passed - expected) < 1000, "\(passed) ms for \(report.byteCount) bytes")
    #expect(report.isComplete)
  }

  @Test("A scrub stops when the caller says so, even during a pause")
  func stopped() throws {
    let store = try scene.open()
    try scene.fill(store, 0..<600)
    let first = try store.scrub { _ in .stop }
    #expect(!first.isComplete && first.byteCount > 0 && first.byteCount <= 256 << 10)
    let began = scene.clock.now()
    // At a byte a second, the first pause lasts hours.
    var count = 0
    let second = try store.scrub(bytesPerSecond: 1) { _ in
      count += 1
      return count < 5 ? .next : .stop
    }
    #expect(!second.isComplete)
    #expect(scene.clock.now() < began.advanced(by: .seconds(2)))
    #expect(try store.statistics().scrub.lastCompleted == nil)
  }

  @Test("A scrub ends when the store is closed, even during a pause")
  func closed() throws {
    let store = try scene.open()
    try scene.fill(store)
    let error = storeError {
      try store.scrub(bytesPerSecond: 1) { _ in
        try? store.close()
        return .next
      }
    }
    #expect(error == .closed(path: scene.directory.store))
  }

  @Test("Cancelling the task ends a scrub")
  func cancelled() async throws {
    let store = try scene.open()
    try scene.fill(store, 0..<200)
    let report = try await withThrowingTaskGroup(of: CheckReport.self) { group in
      group.cancelAll()
      group.addTask { try await store.scrub(bytesPerSecond: 1000) }
      return try await group.next()
    }
    #expect(report?.isComplete == false)
    #expect(try await store.scrub().isComplete)
  }

  @Test("A store that is open for reading is scrubbed, and nothing is written")
  func readOnly() throws {
    let store = try scene.open()
    try scene.fill(store)
    try store.close()
    let event = try scene.damageValue("key 7")
    let before = try DirectoryListing(of: scene.directory.store)
    let reader = try scene.open(readOnly: true) { $0.scrubBytesPerSecond = 1 << 20 }
    scene.queue.runAll()
    #expect(scene.queue.delays == [])
    #expect(try reader.scrub().damage == [event])
    #expect(scene.events.all == [event])
    try reader.close()
    #expect(try DirectoryListing(of: scene.directory.store) == before)
  }

  @Test("A concurrent compaction and removal of all hide nothing from a scrub")
  func compactedMeanwhile() throws {
    let store = try scene.open { $0.spaceBound = 1000 }
    try scene.fill(store, 0..<200)
    try scene.fill(store, 0..<100)
    let event = try scene.damageValue("key 150")
    var count = 0
    let report = try store.scrub { _ in
      count += 1
      if count == 2 { _ = try? store.compact() }
      return .next
    }
    #expect(report.isComplete)
    #expect(report.damage == [event], "its segment stays where it is")
    try scene.fill(store, 150..<151)
    let emptied = try store.scrub { _ in
      try? store.removeAll()
      return .next
    }
    #expect(emptied.isComplete && emptied.damage == [])
  }

  @Test("A rate below 1 is refused")
  func rates() throws {
    let store = try scene.open()
    for rate in [0, -1, Int.min] {
      #expect(
        storeError { try store.scrub(bytesPerSecond: rate) }
          == .invalidConfiguration(
            option: "bytesPerSecond", reason: "\(rate); it must be 1 or more"))
    }
    #expect(
      storeError { _ = try scene.open { $0.scrubBytesPerSecond = 0 } }
        == .invalidConfiguration(option: "scrubBytesPerSecond", reason: "0; it must be 1 or more"))
    #expect(try store.scrub(bytesPerSecond: .max).isComplete)
  }
}
