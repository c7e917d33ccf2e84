import CairnStore
import FuzzSupport
import Testing

/// At 256 KiB a second, a step of 256 KiB is due each second.
@Suite("Scrubbing by maintenance")
struct ScrubMaintenanceTests {
  let scene: ScrubScene
  static let rate = 256 << 10

  init() throws { scene = try ScrubScene() }

  func open(
    rate: Int = rate, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws -> Store {
    try scene.open {
      $0.scrubBytesPerSecond = rate
      change(&$0)
    }
  }

  /// Lets time pass, second by second.
  func pass(_ seconds: Int) {
    for _ in 0..<seconds {
      scene.clock.advance(by: .seconds(1))
      scene.queue.runAll(dueAfter: .seconds(1))
    }
  }

  func scrub(_ store: Store) throws -> ScrubStatistics { try store.statistics().scrub }

  var path: String { scene.directory("store/SCRUB") }

  @Test("Damage is found without a request, and reported once per cycle")
  func found() throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    pass(100)
    #expect(scene.events.all == [event])
    #expect(try scrub(store).lastCompleted != nil)
    #expect(try scrub(store).lastDamageCount == 1)
    // The next cycle begins a day after this one.
    pass(7200)
    #expect(scene.events.all == [event])
    scene.clock.advance(by: .seconds(86_400))
    scene.queue.runAll(dueAfter: .seconds(3600))
    pass(100)
    #expect(scene.events.all == [event, event])
  }

  @Test("Without the option, nothing is read")
  func off() throws {
    let store = try scene.open()
    try scene.fill(store)
    let read = scene.files.readByteCount
    pass(100)
    #expect(scene.files.readByteCount == read)
    #expect(try scrub(store).readByteCount == 0)
  }

  @Test("Scrubbing reads no more than the rate allows, whatever else requests passes")
  func pace() throws {
    let store = try open { $0.maintenanceInterval = .milliseconds(100) }
    try scene.fill(store, 0..<2000)
    let before = try scrub(store).readByteCount
    for tenth in 0..<100 {
      scene.clock.advance(by: .milliseconds(100))
      try store.setValue("x", forKey: "\(tenth)")
      scene.queue.runAll(dueAfter: .milliseconds(100))
    }
    let read = try scrub(store).readByteCount - before
    #expect(read <= 10 * Self.rate + (512 << 10), "\(read)")
    #expect(read >= 5 * Self.rate, "\(read)")
  }

  @Test("Scrubbing makes up for delays of up to a second")
  func catchesUp() throws {
    let store = try open(rate: 2 << 20)
    try scene.fill(store, 0..<4000)
    scene.clock.advance(by: .seconds(3600))
    scene.queue.runAll(dueAfter: .seconds(3600))
    for _ in 0..<100 { scene.queue.runAll(dueAfter: .milliseconds(1)) }
    let read = try scrub(store).readByteCount
    #expect(read > 1 << 20 && read < 3 << 20, "\(read)")
  }

  @Test("A step reads one window, and each run takes a few steps")
  func bounded() throws {
    let store = try open(rate: .max) { $0.segmentByteLimit = 8 << 20 }
    try scene.fill(store, 0..<2000)
    let read = scene.files.readByteCount
    scene.clock.advance(by: .seconds(1))
    scene.queue.runAll(dueAfter: .seconds(1))
    let step = scene.files.readByteCount - read
    #expect(step > 0 && step <= 1 << 20, "\(step)")
  }

  @Test("Progress survives a kill, and the next session continues from there")
  func restart() throws {
    let store = try open { $0.segmentByteLimit = 1 << 20 }
    try scene.fill(store, 0..<1500)
    pass(7)
    let first = try scrub(store)
    #expect(first.began != nil && first.lastCompleted == nil)
    let done = try #require(first.progress?.completedCount)
    #expect(done > 1 << 20)
    // The process dies, and another opens the store.
    let directory = scene.directory("killed")
    try Image(of: scene.directory.store).write(to: directory)
    let next = try Store(
      path: directory,
      configuration: .small(clock: scene.clock) {
        $0.segmentByteLimit = 1 << 20
        $0.scrubBytesPerSecond = Self.rate
      }, environment: scene.environment, readOnly: false)
    let resumed = try scrub(next)
    #expect(resumed.began == first.began)
    #expect(resumed.progress?.completedCount == done)
    pass(8)
    #expect(try scrub(next).lastCompleted != nil, "it does not begin anew")
    #expect(try scrub(next).readByteCount < 2 << 20)
    // This is also known after a restart.
    try next.close()
    let last = try Store(
      path: directory,
      configuration: .small(clock: scene.clock) { $0.scrubBytesPerSecond = Self.rate },
      environment: scene.environment, readOnly: false)
    #expect(try scrub(last).lastCompleted != nil)
    #expect(try scrub(last).progress == nil)
    pass(60)
    #expect(try scrub(last).readByteCount == 0, "no cycle begins for a day")
  }

  @Test("A session that was killed in the middle of a segment skips no part of it")
  func restartInSegment() throws {
    let store = try open { $0.segmentByteLimit = 1 << 20 }
    try scene.fill(store, 0..<480)
    let event = try scene.damageValue("key 300")
    pass(2)
    #expect(scene.events.all == [])
    try store.close()
    let next = try open { $0.segmentByteLimit = 1 << 20 }
    pass(10)
    #expect(scene.events.all == [event])
    #expect(try scrub(next).lastDamageCount == 1)
  }

  @Test(
    "Whatever the file says, the scrub finds the real damage and nothing else",
    arguments: HostileMark.allCases)
  func hostile(mark: HostileMark) throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 50")
    let identifier = try Image(of: scene.directory.store).manifest.storeIdentifier
    try store.close()
    try writeFile(path, mark.bytes(of: identifier, now: scene.clock.now()))
    let next = try open()
    #expect(try scrub(next).lastCompleted == nil)
    pass(20)
    // A cycle may have to begin first.
    scene.clock.advance(by: .seconds(2 * 86_400))
    scene.queue.runAll(dueAfter: .seconds(3600))
    pass(60)
    #expect(!scene.events.all.isEmpty)
    #expect(scene.events.all.allSatisfy { $0 == event })
    #expect(try scrub(next).lastCompleted != nil)
  }

  enum HostileMark: CaseIterable {
    case empty, short, garbage, flipped, otherStore, otherVersion, insideRecord, misaligned
    case farAhead, ofTheFuture, counts

    func bytes(of identifier: [UInt8], now: Timestamp) -> [UInt8] {
      var mark = ScrubMark()
      mark.began = now
      mark.lastID = 1000
      mark.id = 2
      mark.offset = 72
      switch self {
      case .empty: return []
      case .short: return Array(mark.encoded(storeIdentifier: identifier).dropLast())
      case .garbage: return (0..<96).map { UInt8($0) }
      case .flipped:
        mark.id = 1001
        var bytes = mark.encoded(storeIdentifier: identifier)
        bytes[50] ^= 1
        return bytes
      case .otherStore:
        mark.id = 1001
        return mark.encoded(storeIdentifier: [UInt8](repeating: 1, count: 16))
      case .otherVersion:
        mark.id = 1001
        var bytes = mark.encoded(storeIdentifier: identifier)
        bytes[12] = 2
        bytes.replaceSubrange(8..<12, with: checksum(bytes[12...]))
        return bytes
      case .insideRecord: mark.offset = 4096
      case .misaligned: mark.offset = 4097
      case .farAhead: (mark.id, mark.offset) = (999, 1 << 40)
      case .ofTheFuture:
        mark.id = 0
        mark.began = Timestamp(millisecondsSinceEpoch: .max)
        mark.completed = mark.began
      case .counts:
        mark.damageCount = 1 << 62
        mark.readByteCount = 1 << 62
      }
      return mark.encoded(storeIdentifier: identifier)
    }

    private func checksum(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      let value = Array(bytes).withSpan { CRC32C.checksum(of: $0) }
      return (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
    }
  }

  @Test("Endless compactions do not starve scrubbing")
  func notStarved() throws {
    let store = try open {
      $0.spaceBound = 1.1
      $0.deadByteFloor = 0
      $0.maintenanceInterval = .seconds(1)
    }
    try scene.fill(store)
    // No compaction moves what shares a segment with live records only.
    try scene.fill(store, 100..<400)
    let event = try scene.damageValue("key 250")
    for round in 0..<300 where scene.events.all.isEmpty {
      try scene.fill(store, 20..<60, byteCount: 1000 + round)
      scene.clock.advance(by: .seconds(1))
      // Only passes run, as when one follows another: the scrub's timer does not.
      try store.maintain()
    }
    #expect(scene.events.all == [event])
  }

  @Test("A failing chore does not starve scrubbing, and scrubbing starves no chore")
  func failingChores() throws {
    let store = try open { $0.maintenanceInterval = .seconds(1) }
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    try store.setValue("v", forKey: "short", lifetime: .seconds(5))
    // No checkpoint can be made.
    scene.files.setHook { $0.file.hasPrefix("ckpt-") ? 5 : nil }
    pass(60)
    #expect(scene.events.all == [event])
    #expect(try store.statistics().indexedKeyCount == 60, "what has expired is removed")
  }

  @Test("While a step reads, writers, readers and statistics continue")
  func noLock() throws {
    let store = try open()
    try scene.fill(store)
    let isInside = Collected<Int>()
    scene.files.setHook { event in
      if event.call == .read, event.file.hasPrefix("seg-"), isInside.all.isEmpty {
        isInside.add(1)
        // On the step's own thread, which would wait forever for a lock that the step holds.
        _ = try? store.setValue("v", forKey: "meanwhile")
        _ = try? store.value(forKey: "key 1")
        _ = try? store.statistics()
        _ = try? store.compact()
      }
      return nil
    }
    pass(3)
    scene.files.setHook(nil)
    #expect(isInside.all == [1])
    #expect(try store.value(forKey: "meanwhile") != nil)
  }

  @Test("A close in the middle of a step writes nothing afterwards")
  func closedMeanwhile() throws {
    let store = try open()
    try scene.fill(store)
    let after = Collected<DirectoryListing>()
    let path = scene.directory.store
    scene.files.setHook { event in
      if event.call == .read, event.file.hasPrefix("seg-"), after.all.isEmpty {
        try? store.close()
        if let listing = try? DirectoryListing(of: path) { after.add(listing) }
      }
      return nil
    }
    pass(3)
    scene.files.setHook(nil)
    #expect(try after.all == [DirectoryListing(of: path)])
  }

  @Test("A file that cannot be written only costs reading again", arguments: [13, 28])
  func unwritable(errorNumber: Int32) throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    scene.files.setHook { $0.file == "SCRUB" ? errorNumber : nil }
    pass(20)
    #expect(scene.events.all == [event])
    #expect(try scrub(store).lastCompleted != nil)
  }

  @Test("An error that is not the medium's is logged, and retried a minute later")
  func failure() throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    scene.files.setHook { $0.call == .read && $0.file.hasPrefix("seg-") ? 12 : nil }
    pass(30)
    #expect(scene.log.all.filter { $0.hasPrefix("scrubbing: ") }.count == 1)
    scene.files.setHook(nil)
    pass(100)
    #expect(scene.events.all == [event])
  }

  @Test("A clock that is set back or ahead does not stop scrubbing")
  func clock() throws {
    let store = try open()
    try scene.fill(store, 0..<600)
    let event = try scene.damageValue("key 599")
    pass(1)
    scene.clock.advance(by: .seconds(-10 * 86_400))
    pass(2)
    scene.clock.advance(by: .seconds(20 * 86_400))
    pass(30)
    #expect(scene.events.all.contains(event))
  }

  @Test("Without an interval, only maintain takes steps")
  func byHand() throws {
    let store = try open { $0.maintenanceInterval = nil }
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    pass(100)
    #expect(scene.events.all == [])
    for _ in 0..<20 {
      scene.clock.advance(by: .seconds(1))
      try store.maintain()
    }
    #expect(scene.events.all == [event])
  }

  @Test("An observer may use the store, and close it")
  func observer() throws {
    let held = Collected<Store>()
    let store = try open {
      $0.damageObserver = { event in
        for store in held.all {
          _ = try? store.setValue("healed", forKey: "key 3", durability: .durable)
          try? store.close()
        }
      }
    }
    held.add(store)
    try scene.fill(store)
    _ = try scene.damageValue("key 3")
    pass(5)
    #expect(storeError { _ = try store.count() } == .closed(path: scene.directory.store))
  }

  @Test("The file matches its documentation")
  func golden() throws {
    var mark = ScrubMark()
    mark.lastID = 0x0102
    mark.id = 0x03
    mark.offset = 0x0410
    mark.began = Timestamp(millisecondsSinceEpoch: 5)
    mark.damageCount = 6
    mark.readByteCount = 7
    mark.completed = Timestamp(millisecondsSinceEpoch: -1)
    mark.completedDamageCount = 8
    let bytes = mark.encoded(storeIdentifier: (0..<16).map { UInt8($0) })
    let words: [[UInt8]] = [
      [0x8B, 0x43, 0x52, 0x4E, 0x42, 0x0D, 0x0A, 0x1A], Array(bytes[8..<12]) + [1, 0, 0, 0],
      [0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15], [2, 1, 0, 0, 0, 0, 0, 0],
      [3, 0, 0, 0, 0, 0, 0, 0], [0x10, 4, 0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0],
      [6, 0, 0, 0, 0, 0, 0, 0], [7, 0, 0, 0, 0, 0, 0, 0], [UInt8](repeating: 0xFF, count: 8),
      [8, 0, 0, 0, 0, 0, 0, 0],
    ]
    #expect(bytes == words.flatMap { $0 })
    #expect(
      bytes.withSpan { ScrubMark(decoding: $0, storeIdentifier: (0..<16).map { UInt8($0) }) }
        == mark)
  }
}
