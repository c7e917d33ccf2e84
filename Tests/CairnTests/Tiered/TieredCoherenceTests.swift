import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// What concurrent calls may do to each other, one order at a time.
@Suite("No read finds a value older than one found before", .timeLimit(.minutes(30)))
struct TieredCoherenceTests {
  let scene = TieredScene()

  @Test("TMCache: a read that was overtaken by a write left the old value in memory")
  func overtakenRead() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    let old = try cache.fetchedValue(forKey: "a")
    for dropsNewer in [false, true] {
      try cache.setValue(2, forKey: "a")
      if dropsNewer { cache.tier.removeAll() }
      old.promote(in: cache)
      #expect(try cache.value(forKey: "a") == 2)
      #expect(try cache.audit() == [])
    }
  }

  @Test(
    "A value that reaches memory after its removal is found by no call",
    arguments: 0..<6, [false, true])
  func overtakenByRemoval(way: Int, isWritten: Bool) throws {
    let cache: DiskCache<String, Int> = try scene.cache(count: 2)
    let version = try cache.setValue(1, forKey: "a")
    let old = try cache.fetchedValue(forKey: "a")
    cache.tier.removeAll()
    switch way {
    case 0: try cache.removeValue(forKey: "a")
    case 1: try cache.removeAll()
    case 2: _ = try cache.takeValue(forKey: "a")
    case 3: try cache.trim(.toCount(0))
    case 4: for next in ["b", "c", "d"] { try cache.setValue(2, forKey: next) }
    default: try cache.remove { _, _ in true }
    }
    func arrive() throws {
      if isWritten {
        cache.take(
          TierStep(version: version, byteCount: 1), of: 1, forKey: try cache.tierKey("a"),
          .standard)
      } else {
        old.promote(in: cache)
      }
    }
    try arrive()
    #expect(try cache.value(forKey: "a") == nil)
    try arrive()
    #expect(try cache.peekValue(forKey: "a") == nil && !cache.contains("a"))
    try arrive()
    #expect(try cache.entry(forKey: "a") == nil && cache.info(forKey: "a") == nil)
    try arrive()
    #expect(try !cache.tier.contains("a") && cache.tier.info(forKey: "a") == nil)
    try cache.setValue(3, forKey: "a")
    try arrive()
    #expect(try cache.value(forKey: "a") == 3)
    #expect(try cache.audit() == [])
  }

  @Test("Of two writes, the last to reach the disk stays, however late the other reaches memory")
  func writes() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    func publish(_ value: Int, _ version: UInt64) throws {
      cache.take(
        TierStep(version: version, byteCount: 1), of: value, forKey: try cache.tierKey("a"),
        .standard)
    }
    for dropsNewer in [false, true] {
      let version = try cache.setStored(1, forKey: "a")
      try cache.setValue(2, forKey: "a")
      if dropsNewer { cache.tier.removeAll() }
      try publish(1, version)
      #expect(try cache.value(forKey: "a") == 2)
      #expect(try cache.audit() == [])
    }
    // The other way round, the newer one is inserted.
    let oldVersion = try cache.setStored(3, forKey: "a")
    let newVersion = try cache.setStored(4, forKey: "a")
    try publish(3, oldVersion)
    try publish(4, newVersion)
    #expect(try cache.tier.value(forKey: "a") == 4)
  }

  @Test("A value that reaches memory after a close is not found")
  func afterClose() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    let old = try cache.fetchedValue(forKey: "a")
    try cache.close()
    old.promote(in: cache)
    #expect(throws: StoreError.self) { try cache.value(forKey: "a") }
    old.promote(in: cache)
    #expect(throws: StoreError.self) { try cache.peekValue(forKey: "a") }
  }

  /// A cache whose values count how often they are decoded.
  private func counted(_ count: Record<Int>) throws -> DiskCache<String, Int> {
    let coder = ValueCoder<Int>.custom(
      encode: { [UInt8($0)] },
      decode: {
        count.add(1)
        return Int([UInt8](copying: $0)[0])
      })
    return try scene.cache(keys: .string, values: coder)
  }

  @Test("A record that a compaction moves stays a hit in memory; the place is noted once")
  func moved() throws {
    let decoded = Record<Int>()
    let cache = try counted(decoded)
    for number in 0..<100 { try cache.setValue(number, forKey: "\(number)") }
    for number in stride(from: 0, to: 100, by: 2) { try cache.removeValue(forKey: "\(number)") }
    func place() throws -> TierPlace? {
      cache.tier.held.peekValue(forKey: try cache.tierKey("7"))?.place
    }
    #expect(try cache.value(forKey: "7") == 7)
    let first = try #require(try place())
    #expect(first.record != .unknown)
    try cache.compact()
    #expect(try cache.value(forKey: "7") == 7)
    let second = try #require(try place())
    #expect(second.record != .unknown && second != first)
    #expect(try cache.value(forKey: "7") == 7)
    #expect(try place() == second)
    #expect(decoded.all.isEmpty)
    #expect(try cache.statistics()["memory.hits"] == 3)
    #expect(try cache.statistics().hitCount == 3 && cache.statistics().missCount == 0)
  }

  @Test("What identifies a value in memory: its record, else its version within a history")
  func places() {
    func place(_ record: UInt64, _ version: UInt64, isIdle: Bool = false) -> TierPlace {
      TierPlace(RecordPlace(rawValue: record), version: version, isIdle: isIdle, hasTags: false)
    }
    #expect(place(9, 1) == place(9, 2) && place(9, 1) != place(8, 1))
    #expect(place(0, 1) != place(0, 2) && place(0, 9) != place(9, 9))
    #expect(place(0, 1).isVersion(1) && !place(0, 1).isVersion(2) && !place(1, 1).isVersion(1))
    #expect(place(9, 1).isPlain && !place(0, 1).isPlain && !place(9, 1, isIdle: true).isPlain)
    #expect(place(9, 1, isIdle: true).record == RecordPlace(rawValue: 9))
    #expect(place(0, 1).record == .unknown)
    #expect(TierPlace(history: 1, version: 2) == TierPlace(history: 1, version: 2))
    #expect(TierPlace(history: 1, version: 2) != TierPlace(history: 2, version: 2))
    #expect(TierPlace(history: 1, version: 2) != TierPlace(history: 1, version: 3))
    #expect(TierPlace(history: 1 << 16, version: 1) == nil)
    #expect(TierPlace(history: 1, version: 1 << 44) == nil)
  }

  @Test("A read that found a value in memory does not take a newer one's version for its own")
  func replacedMeanwhile() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    // With a lifetime, neither value has a known place before its first read.
    try cache.setValue(1, forKey: "a", lifetime: .seconds(60))
    let key = try cache.tierKey("a")
    let found = try #require(cache.tier.held.peekValue(forKey: key))
    try cache.setValue(2, forKey: "a", lifetime: .seconds(60))
    #expect(try !cache.settle(key, found.place, isAccess: false))
    // The newer value stays, and a read that found it before its place was noted may use it.
    let newer = try #require(cache.tier.held.peekValue(forKey: key))
    #expect(newer.value == 2 && newer.place.record == .unknown)
    #expect(try cache.settle(key, newer.place, isAccess: false))
    #expect(try cache.settle(key, newer.place, isAccess: false))
    #expect(cache.tier.held.peekValue(forKey: key)?.place.record != .unknown)
  }

  @Test("Shown numbers of hits never fall")
  func shownHits() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    let old = try cache.fetchedValue(forKey: "a")
    #expect(try cache.value(forKey: "a") == 1)
    try cache.removeValue(forKey: "a")
    old.promote(in: cache)
    // A read has found the value, and has yet to ask the index.
    _ = cache.tier.held.value(forKey: old.key)
    #expect(cache.tier.statistics().hitCount == 2)
    cache.tier.held.takeBackHit(isMiss: true)
    #expect(cache.tier.statistics().hitCount == 2)
    try cache.setValue(2, forKey: "a")
    #expect(try cache.value(forKey: "a") == 2)
    #expect(cache.tier.statistics().hitCount == 2 && cache.tier.statistics().missCount == 1)
  }

  @Test("A value in memory that is no longer on disk counts as a miss, and leaves memory")
  func staleCounts() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    let old = try cache.fetchedValue(forKey: "a")
    try cache.removeValue(forKey: "a")
    old.promote(in: cache)
    #expect(cache.tier.statistics().count == 1)
    #expect(try cache.value(forKey: "a") == nil)
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 1 && statistics.missCount == 1)
    #expect(statistics["memory.hits"] == 0 && statistics["memory.count"] == 0)
  }

  @Test(
    "A value in memory ends no later than on disk, and is fetched again if it ends earlier"
  )
  func ends() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    // As far as another thread may have got with the extension.
    #expect(try cache.store.setLifetime(.seconds(30), forKey: "a"))
    scene.advance(by: .seconds(10))
    #expect(try !cache.tier.contains("a"))
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.tier.contains("a"))
    #expect(try cache.audit() == [])
  }

  @Test("TMCache: an observer that used the cache deadlocked; here it runs under no lock")
  func observers() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 2, count: 3)
    let depth = Record<Int>()
    cache.observe { [weak cache] event in
      guard let cache, depth.all.count < 200 else { return }
      depth.add(1)
      _ = try? cache.value(forKey: 1)
      _ = try? cache.statistics()
      switch event {
      case .inserted(let key): if key < 10 { _ = try? cache.setValue(key, forKey: key + 10) }
      case .removed(let key, _): if key < 10 { _ = try? cache.removeValue(forKey: key + 10) }
      default: break
      }
      _ = try? cache.trim(.toCount(3))
    }
    for key in 0..<6 { try cache.setValue(key, forKey: key) }
    try cache.removeAll()
    #expect(depth.all.count > 20)
    #expect(try cache.audit() == [])
  }

  @Test("An observer of a removal does not find the removed value in memory")
  func toldLater() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let found = Record<Int?>()
    cache.observe { [weak cache] event in
      if case .removed(let key, _) = event { found.add(try? cache?.tier.value(forKey: key)) }
    }
    try cache.setValue(1, forKey: "a")
    try cache.setValue(2, forKey: "a")
    try cache.removeValue(forKey: "a")
    #expect(found.all == [2, nil])
  }

  // MARK: Writes that fail

  private func simulated(
    _ body: (DiskCache<String, [UInt8]>, SimulatedFileSystem) throws -> Void
  ) throws {
    let disk = SimulatedDisk()
    disk.makeDirectory("/data")
    let files = SimulatedFileSystem(disk: disk, seed: 1)
    let cache: DiskCache<String, [UInt8]> = try scene.cache(
      keys: .string, values: .bytes, files: files, path: "/data/cache")
    try body(cache, files)
    files.intervene = nil
    scene.disk.background.discardAll()
  }

  @Test("A write that finds no room has not happened: the old value stays in both tiers")
  func noSpace() throws {
    try simulated { cache, files in
      try cache.setValue([1], forKey: "a")
      files.disk.capacity = files.disk.allocatedByteCount
      #expect {
        try cache.setValue([UInt8](repeating: 2, count: 1 << 20), forKey: "a")
      } throws: { error in
        if case StoreError.noSpace = error { true } else { false }
      }
      #expect(try cache.tier.value(forKey: "a") == [1])
      #expect(try cache.storedValue(forKey: "a") == [1])
      #expect(try cache.value(forKey: "a") == [1])
      files.disk.capacity = nil
      try cache.setValue([3], forKey: "a")
      #expect(try cache.value(forKey: "a") == [3])
    }
  }

  @Test(
    "After a write of unknown durability, memory shows what the disk shows")
  func durabilityUnknown() throws {
    try simulated { cache, files in
      try cache.setValue([1], forKey: "a")
      files.intervene = { $0 == .synchronizeData ? .fail(EIO) : nil }
      #expect {
        try cache.setValue([2], forKey: "a", durability: .durable)
      } throws: { error in
        if case StoreError.durabilityUnknown = error { true } else { false }
      }
      let stored = try cache.storedValue(forKey: "a")
      let held = try cache.tier.value(forKey: "a")
      #expect(held == nil || held == stored)
      #expect(try cache.value(forKey: "a") == stored)
    }
  }

  @Test("A value that cannot be encoded leaves the old one in both tiers")
  func unencodable() throws {
    let coder = ValueCoder<Int>.custom(
      encode: { value in
        if value < 0 { throw CodingFailure("below zero") }
        return [UInt8(value)]
      }, decode: { Int([UInt8](copying: $0)[0]) })
    let cache: DiskCache<String, Int> = try scene.cache(keys: .string, values: coder)
    try cache.setValue(1, forKey: "a")
    #expect(throws: StoreError.unencodable(reason: "the value: below zero")) {
      try cache.setValue(-1, forKey: "a")
    }
    #expect(throws: StoreError.self) { try cache.setValues([(key: "a", value: -1)]) }
    #expect(try cache.tier.value(forKey: "a") == 1 && cache.storedValue(forKey: "a") == 1)
    #expect(throws: StoreError.self) { try cache.setValue(1, forKey: "") }
  }
}
