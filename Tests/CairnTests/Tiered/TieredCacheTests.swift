import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Memory in front of the disk", .timeLimit(.minutes(30)))
struct TieredCacheTests {
  let scene = TieredScene()

  @Test("A written value is in both tiers, with the same version")
  func writeThrough() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    let version = try cache.setValue(
      "x", forKey: "a", options: EntryOptions(cost: 7, metadata: [1, 2]))
    #expect(try cache.tier.value(forKey: "a") == "x")
    #expect(try cache.storedValue(forKey: "a") == "x")
    #expect(try cache.tier.info(forKey: "a")?.version == version)
    #expect(try cache.info(forKey: "a")?.version == version)
    #expect(try cache.tier.info(forKey: "a")?.cost == 7)
    #expect(try cache.metadata(forKey: "a") == [1, 2])
    #expect(try cache.count() == 1 && cache.tier.count() == 1)
    #expect(cache.path == scene.disk.path && cache.name == "cache")
    #expect("\(cache)" == "DiskCache cache at \(cache.path)")
  }

  @Test("A hit in memory does not go to the disk, and a miss in both counts in both")
  func hits() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.value(forKey: "b") == nil)
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.value(forKey: "a") == 1)
    let statistics = try cache.statistics()
    #expect(statistics["memory.hits"] == 2 && statistics["memory.misses"] == 2)
    #expect(statistics.hitCount == 3 && statistics.missCount == 1 && statistics.hitRatio == 0.75)
    // `contains`, `info` and `peek` count nothing.
    _ = try cache.contains("a")
    _ = try cache.info(forKey: "b")
    _ = try cache.tier.value(forKey: "a")
    #expect(try cache.statistics()["memory.hits"] == 2)
  }

  @Test("Costs below 0 count as 0 in both tiers; the highest one is kept")
  func extremeCosts() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("x", forKey: "negative", options: .cost(-1))
    try cache.setValue("x", forKey: "greatest", options: .cost(.max))
    try cache.setValue("x", forKey: "too", options: .cost(.max))
    #expect(cache.tier.totalCost() == .max)
    cache.tier.removeAll()
    for (key, cost) in [("negative", 0), ("greatest", Int.max), ("too", .max)] {
      #expect(try cache.value(forKey: key) == "x")
      #expect(try cache.tier.info(forKey: key)?.cost == cost)
      #expect(try cache.info(forKey: key)?.cost == cost)
    }
    #expect(cache.tier.totalCost() == .max)
    #expect(try cache.trim(.toBytes(-1)).count == 3)
  }

  @Test("YYCache and TMCache: a promotion lost the cost; PINCache: and the lifetime")
  func promotion() throws {
    let cache: DiskCache<String, String> = try scene.cache(cost: 100)
    let version = try cache.setValue(
      "abc", forKey: "a",
      options: EntryOptions(cost: 9, lifetime: .seconds(60), idleLimit: .seconds(20)))
    try cache.setValue("four", forKey: "b")
    let written = try #require(try cache.tier.info(forKey: "a"))
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "a") == "abc")
    #expect(try cache.value(forKey: "b") == "four")
    let promoted = try #require(try cache.tier.info(forKey: "a"))
    #expect(promoted.cost == 9 && promoted.version == version)
    #expect(promoted.expires == written.expires && promoted.idleLimit == .seconds(20))
    // A value without its own cost again costs what memory computes.
    #expect(try cache.tier.info(forKey: "b")?.cost == 4)
    #expect(cache.tier.totalCost() == 13)
    #expect(try cache.audit() == [])
  }

  @Test("A costing closure applies to values that are set and to those from disk")
  func costing() throws {
    let cache: DiskCache<String, Int> = try scene.cache(
      costing: { $0.utf8.count + $1 })
    try cache.setValue(10, forKey: "ab")
    #expect(cache.tier.totalCost() == 12)
    cache.tier.removeAll()
    _ = try cache.value(forKey: "ab")
    #expect(cache.tier.totalCost() == 12)
  }

  @Test(
    "Values without any cost cost their bytes on disk, however they reach memory"
  )
  func costByDefault() async throws {
    struct Page: Codable, Equatable, Sendable { var text: String }
    let cache: DiskCache<String, Page> = try scene.cache()
    func cost(of page: Page) -> Int { page.text.utf8.count + #"{"text":""}"#.utf8.count }
    let (small, large) = (Page(text: "short"), Page(text: String(repeating: "long", count: 99)))
    try await cache.setValue(small, forKey: "a")
    #expect(cache.tier.totalCost() == cost(of: small))
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "a") == small)
    #expect(cache.tier.totalCost() == cost(of: small))
    cache.tier.removeAll()
    #expect(try cache.entry(forKey: "a")?.value == small)
    #expect(cache.tier.totalCost() == cost(of: small))
    let version = try cache.info(forKey: "a")?.version
    _ = try await cache.compareAndSet(large, forKey: "a", expecting: version)
    #expect(cache.tier.totalCost() == cost(of: large))
    try await cache.update(forKey: "a") { _ in small }
    #expect(cache.tier.totalCost() == cost(of: small))
    try await cache.setValues([
      (key: "a", value: small), (key: "b", value: small), (key: "a", value: large),
    ])
    #expect(cache.tier.totalCost() == cost(of: small) + cost(of: large))
    _ = try await cache.value(forKey: "c") { large }
    #expect(cache.tier.totalCost() == cost(of: small) + 2 * cost(of: large))
    // A given cost counts, even if it is zero.
    try await cache.setValue(large, forKey: "a", options: .cost(0))
    #expect(cache.tier.totalCost() == cost(of: small) + cost(of: large))
    cache.tier.removeAll()
    _ = try cache.value(forKey: "a")
    #expect(cache.tier.totalCost() == 0)
    // So a limit holds even if no cost is given.
    cache.tier.costLimit = 2000
    for number in 0..<40 { try await cache.setValue(large, forKey: "\(number)") }
    #expect(cache.tier.totalCost() <= 2000 && cache.tier.totalCost() > 1000)
    #expect(try cache.count() == 43)
  }

  @Test("PINCache: the lifetime counted in one tier only; here in both, from the same clock")
  func lifetimes() throws {
    let cache: DiskCache<String, Int> = try scene.cache { $0.store.lifetime = .seconds(10) }
    try cache.setValue(1, forKey: "configured")
    try cache.setValue(2, forKey: "own", lifetime: .seconds(20))
    try cache.setValue(3, forKey: "over", lifetime: .seconds(0))
    #expect(try cache.value(forKey: "over") == nil)
    scene.advance(by: .seconds(9))
    #expect(try cache.value(forKey: "configured") == 1)
    #expect(try cache.tier.contains("configured"))
    scene.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "configured") == nil)
    #expect(try !cache.contains("configured") && cache.count() == 1)
    // A value read from disk does not live longer either.
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "own") == 2)
    scene.advance(by: .seconds(10))
    #expect(try cache.value(forKey: "own") == nil)
    #expect(try cache.trim(.expired).count == 3)
    #expect(cache.tier.statistics().count == 0)
  }

  @Test("A key that is read from memory is not idle on disk")
  func idleLimits() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", options: .idleLimit(.seconds(100)))
    try cache.setValue(2, forKey: "b", options: .idleLimit(.seconds(100)))
    // Background jobs never run.
    for _ in 0..<10 {
      scene.clock.advance(by: .seconds(60))
      #expect(try cache.value(forKey: "a") == 1)
    }
    #expect(try cache.statistics().hitCount == cache.statistics()["memory.hits"])
    #expect(try cache.containsStored("a") && !cache.containsStored("b"))
    #expect(try cache.value(forKey: "b") == nil)
    #expect(try cache.trim(.expired).count == 1)
    #expect(try cache.value(forKey: "a") == 1)
  }

  @Test("What memory drops stays on disk, and what leaves the disk leaves memory")
  func evictions() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 2, count: 4)
    for number in 0..<6 { try cache.setValue(number, forKey: number) }
    #expect(cache.tier.keys() == [5, 4])
    #expect(try cache.count() == 4)
    #expect(try cache.value(forKey: 2) == 2)
    #expect(cache.tier.keys() == [2, 5])
    #expect(try cache.trim(.toCount(2)).count == 2)
    #expect(try Set(cache.keys()) == [2, 5])
    #expect(try cache.trim(.toCount(0)).count == 2)
    #expect(cache.tier.count() == 0)
    #expect(try cache.value(forKey: 5) == nil)
  }

  @Test("A trim of memory alone leaves the disk unchanged")
  func memoryTrims() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<10 { try cache.setValue(number, forKey: number, options: .cost(number)) }
    #expect(cache.tier.trim(.toCount(8)).count == 2)
    #expect(cache.tier.trim(.toBytes(20, order: .largestFirst)).count == 3)
    scene.clock.advance(by: .seconds(5))
    _ = try cache.value(forKey: 5)
    #expect(cache.tier.trim(.unused(for: .seconds(2))).count == 4)
    #expect(cache.tier.keys() == [5])
    cache.tier.countLimit = 0
    #expect(cache.tier.count() == 0 && cache.tier.countLimit == 0)
    cache.tier.countLimit = nil
    cache.tier.costLimit = 3
    #expect(try cache.values(forKeys: 0..<10) == Array(0..<10))
    // A value that costs too much is read from disk each time.
    #expect(Set(cache.tier.keys()).isSubset(of: [0, 1, 2, 3]))
    #expect(cache.tier.totalCost() <= 3)
    cache.enterBackground()
    #expect(cache.tier.count() == 0)
    #expect(try cache.count() == 10)
  }

  @Test("A shortage of memory empties the memory and not the disk")
  func pressure() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<10 { try cache.setValue(number, forKey: number) }
    scene.press(.high)
    #expect(cache.tier.count() == 5)
    scene.press(.critical)
    #expect(cache.tier.count() == 0)
    #expect(try cache.count() == 10)
    #expect(cache.tier.statistics()["evictions.pressure"] == 10)
    let deaf: DiskCache<Int, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("b")
    ) {
      $0.memory?.respondsToMemoryPressure = false
    }
    try deaf.setValue(1, forKey: 1)
    scene.press(.critical)
    #expect(deaf.tier.count() == 1)
  }

  @Test("Removals go through both tiers and report what existed")
  func removals() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<8 { try cache.setValue(number, forKey: number) }
    #expect(try cache.removeValue(forKey: 0))
    #expect(try !cache.removeValue(forKey: 0))
    #expect(try cache.takeValue(forKey: 1) == 1)
    #expect(try cache.takeValue(forKey: 1) == nil)
    #expect(try cache.removeValues(forKeys: [1, 2, 3, 99]) == 2)
    let version = try #require(try cache.info(forKey: 4)?.version)
    #expect(try !cache.compareAndRemove(forKey: 4, expecting: version - 1))
    #expect(try cache.compareAndRemove(forKey: 4, expecting: version))
    #expect(try cache.remove { key, _ in key == 5 }.count == 1)
    cache[6] = nil
    for key in 0..<7 {
      #expect(try cache.value(forKey: key) == nil && !cache.contains(key), "\(key)")
    }
    #expect(cache.tier.keys() == [7])
    var progress: [WorkProgress] = []
    try cache.removeAll { progress.append($0) }
    #expect(!progress.isEmpty)
    #expect(try cache.value(forKey: 7) == nil && cache.tier.count() == 0)
  }

  @Test("A compare-and-set uses the version on disk, and its value is in both tiers")
  func compareAndSet() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    guard case .stored(let first) = try cache.compareAndSet(1, forKey: "a", expecting: nil) else {
      Issue.record("absent")
      return
    }
    #expect(try cache.tier.value(forKey: "a") == 1)
    #expect(try cache.entry(forKey: "a")?.info.version == first)
    #expect(
      try cache.compareAndSet(2, forKey: "a", expecting: first + 1) == .mismatch(current: first))
    #expect(try cache.value(forKey: "a") == 1)
    guard case .stored(let second) = try cache.compareAndSet(3, forKey: "a", expecting: first)
    else {
      Issue.record("as expected")
      return
    }
    #expect(second > first)
    #expect(try cache.tier.value(forKey: "a") == 3 && cache.storedValue(forKey: "a") == 3)
    #expect(try cache.compareAndSet(4, forKey: "b", expecting: 1) == .mismatch(current: nil))
    #expect(try cache.value(forKey: "b") == nil)
  }

  @Test("A batch is in both tiers; if a key occurs twice, its later value is")
  func batches() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(0, forKey: "b")
    try cache.setValues(
      [(key: "a", value: 1), (key: "b", value: 2), (key: "a", value: 3)],
      options: .lifetime(.seconds(5)))
    #expect(try cache.tier.value(forKey: "a") == 3 && cache.tier.value(forKey: "b") == 2)
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == [3, 2, nil])
    #expect(try cache.audit() == [])
    cache.tier.removeAll()
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == [3, 2, nil])
    scene.advance(by: .seconds(5))
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == [nil, nil, nil])
  }

  @Test("A lifetime is set in both tiers")
  func setLifetimes() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", lifetime: .seconds(10))
    try cache.setValue(2, forKey: "b", lifetime: .seconds(10))
    #expect(try cache.setLifetime(.seconds(90), forKey: "a"))
    #expect(try !cache.setLifetime(.seconds(30), forKey: "c"))
    #expect(try cache.setLifetime(.seconds(30), forKey: "a"))
    #expect(try cache.audit() == [])
    scene.advance(by: .seconds(9))
    #expect(try cache.setLifetime(.seconds(2), forKey: "b"))
    scene.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "b") == 2 && cache.tier.contains("b"))
    #expect(try cache.value(forKey: "a") == 1)
    scene.advance(by: .seconds(19))
    #expect(try cache.tier.contains("a"))
    #expect(try cache.value(forKey: "a") == 1 && cache.value(forKey: "b") == nil)
    scene.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "a") == nil)
  }

  @Test("An entry has what both tiers know, and bytes are read from disk")
  func entries() throws {
    let cache: DiskCache<String, [UInt8]> = try scene.cache(keys: .standard, values: .bytes)
    try cache.setValue([1, 2, 3], forKey: "a", options: EntryOptions(cost: 5, metadata: [9]))
    scene.clock.advance(by: .seconds(30))
    _ = try cache.value(forKey: "a")
    let entry = try #require(try cache.entry(forKey: "a"))
    #expect(entry.value == [1, 2, 3] && entry.metadata == [9] && entry.key == "a")
    #expect(entry.info.cost == 5 && entry.info.valueByteCount == 3)
    // The disk does not know this access yet.
    #expect(entry.info.accessed == scene.clock.now())
    #expect(try cache.info(forKey: "a")?.accessed == scene.clock.now())
    #expect(try cache.entry(forKey: "b") == nil && cache.info(forKey: "b") == nil)
    #expect(try cache.metadata(forKey: "b") == nil)
    let count = try cache.withValue(forKey: "a") { $0.byteCount }
    #expect(count == 3)
    #expect(try cache.withValue(forKey: "b") { $0.byteCount } == nil)
    var keys: [String] = []
    try cache.forEachKey {
      keys.append($0)
      return .stop
    }
    var values: [[UInt8]] = []
    try cache.forEachEntry {
      values.append($0.value)
      return .next
    }
    #expect(keys == ["a"] && values == [[1, 2, 3]])
    let path = scene.disk("exported")
    #expect(try cache.exportValue(forKey: "a", to: path))
    #expect(try Data(contentsOf: URL(filePath: path)) == Data([1, 2, 3]))
  }

  @Test("Subscripts read and write; failures are counted and logged")
  func subscripts() throws {
    let lines = Record<String>()
    let cache: DiskCache<String, Int> = try scene.cache {
      $0.store.log = DiagnosticLog { lines.add($0.text) }
    }
    cache["a"] = 1
    #expect(cache["a"] == 1)
    try cache.setValue(2, forKey: "a", options: .cost(9))
    #expect(cache["a"] == 2)
    #expect(try cache.tier.info(forKey: "a")?.cost == 9)
    cache["a"] = nil
    #expect(cache["a"] == nil)
    try cache.close()
    #expect(cache["a"] == nil)
    cache["a"] = 5
    #expect(lines.all.count { $0.contains("by subscript") } == 2)
  }

  @Test("Writes and removals on the disk tier alone are not hidden by memory")
  func diskAlone() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    try cache.setStored(2, forKey: "a")
    #expect(try cache.value(forKey: "a") == 2)
    try cache.removeValue(forKey: "a")
    #expect(try cache.value(forKey: "a") == nil)
    for number in 0..<4 { try cache.setValue(number, forKey: "\(number)") }
    try cache.trim(.toCount(2))
    #expect(cache.tier.count() == 2)
    try cache.removeAll()
    #expect(cache.tier.count() == 0)
  }

  @Test("A cache survives a reopen, and after a close every call throws")
  func reopening() throws {
    do {
      let cache: DiskCache<String, Int> = try scene.cache()
      try cache.setValue(1, forKey: "a", options: .cost(3))
      try cache.close()
      try cache.close()
      #expect(throws: StoreError.closed(path: scene.disk.path)) {
        try cache.value(forKey: "a")
      }
      #expect(throws: StoreError.self) { try cache.setValue(1, forKey: "a") }
      #expect(throws: StoreError.self) { try cache.count() }
      #expect(cache.tier.count() == 0)
    }
    let cache: DiskCache<String, Int> = try scene.cache()
    #expect(cache.tier.count() == 0)
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.tier.info(forKey: "a")?.cost == 3)
    #expect(throws: StoreError.locked(path: scene.disk.path, inThisProcess: true)) {
      let _: DiskCache<String, Int> = try scene.cache()
    }
  }

  @Test("The asynchronous forms do the same as the others")
  func performing() async throws {
    let cache: DiskCache<Int, Int> = try await DiskCache.open(
      .path(scene.disk.path),
      configuration: DiskCacheConfiguration(
        memory: .init()),
      keyCoder: .standard, valueCoder: .standard)
    try await cache.setValue(1, forKey: 1)
    try await cache.removeAll { progress in #expect((progress.totalCount ?? 0) > 0) }
    #expect(try cache.value(forKey: 1) == nil)
    for number in 0..<20 { try await cache.setValue(number, forKey: number) }
    #expect(try await cache.trim(.toCount(15)).count == 5)
    #expect(cache.tier.count() == 15)
    #expect(try cache.entry(forKey: 19)?.value == 19 && cache.info(forKey: 0) == nil)
    try await cache.maintain()
    try await useForms(of: cache, backup: scene.disk("backup"))
    #expect(cache.tier.count() == 0)
    let backup: DiskCache<Int, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("backup"))
    #expect(try backup.count() == 10)
  }
}
