import CairnEssentials
import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("A cache in memory")
struct MemoryCacheTests {
  let scene = MemoryScene()

  @Test("A value is found until it is removed, and a newer value replaces it")
  func values() {
    let cache: MemoryCache<String, Int> = scene.cache()
    #expect(cache.value(forKey: "a") == nil)
    cache.setValue(1, forKey: "a")
    cache.setValue(2, forKey: "a")
    cache.setValue(3, forKey: "b")
    #expect(cache.value(forKey: "a") == 2)
    #expect(cache.contains("a") && !cache.contains("c"))
    #expect(cache.count() == 2)
    #expect(cache.removeValue(forKey: "a"))
    #expect(!cache.removeValue(forKey: "a"))
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.takeValue(forKey: "b") == 3)
    #expect(cache.takeValue(forKey: "b") == nil)
    #expect(cache.count() == 0)
    #expect(cache.audit() == [])
  }

  @Test("Subscripts read, write and remove")
  func subscripts() {
    let cache: MemoryCache<Int, String> = scene.cache()
    cache[1] = "one"
    cache.setValue("two", forKey: 2, options: .cost(7))
    #expect(cache[1] == "one")
    #expect(cache[2] == "two")
    #expect(cache.totalCost() == 3 + 7)
    cache[1] = nil
    cache[2] = nil
    #expect(cache[1] == nil)
    #expect(cache.count() == 0)
  }

  @Test("Many keys in one call")
  func many() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValues([("a", 1), ("b", 2), ("a", 3)].map { (key: $0.0, value: $0.1) })
    #expect(cache.values(forKeys: ["b", "x", "a", "b"]) == [2, nil, 3, 2])
    #expect(cache.removeValues(forKeys: ["a", "x", "a", "b"]) == 2)
    #expect(cache.count() == 0)
  }

  @Test("An entry has everything known about it, and inspecting it is not an access")
  func entry() throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let start = scene.clock.now()
    cache.setValue(
      5, forKey: "k",
      options: EntryOptions(cost: 9, lifetime: .seconds(100), idleLimit: .milliseconds(10_500)))
    scene.clock.advance(by: .seconds(3))
    let info = try #require(cache.info(forKey: "k"))
    #expect(info.cost == 9 && info.version == 1)
    #expect(info.written == start && info.accessed == start)
    #expect(info.expires == start.advanced(by: .seconds(100)))
    #expect(info.idleLimit == .milliseconds(10_500))
    let entry = try #require(cache.entry(forKey: "k"))
    #expect(entry.key == "k" && entry.value == 5)
    #expect(entry.info.accessed == start)
    cache.setValue(6, forKey: "other")
    #expect(cache.info(forKey: "other")?.version == 2)
    #expect(cache.info(forKey: "other")?.expires == nil)
    #expect(cache.info(forKey: "other")?.idleLimit == nil)
    #expect(cache.info(forKey: "none") == nil && cache.entry(forKey: "none") == nil)
  }

  @Test("Keys and entries come in the order of use, without expired ones")
  func enumeration() {
    let cache: MemoryCache<String, Int> = scene.cache()
    for (number, key) in ["a", "b", "c", "d"].enumerated() { cache.setValue(number, forKey: key) }
    cache.setValue(9, forKey: "e", lifetime: .seconds(1))
    _ = cache.value(forKey: "b")
    scene.clock.advance(by: .seconds(1))
    #expect(cache.keys() == ["b", "d", "c", "a"])
    var seen: [Int] = []
    let leftOutCount = cache.forEachEntry { entry in
      seen.append(entry.value)
      return entry.key == "c" ? .stop : .next
    }
    #expect(leftOutCount == 0)
    #expect(seen == [1, 3, 2])
  }

  @Test("Everything is removed at once, whatever the contents")
  func removeAll() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    cache.removeAll()
    for number in 0..<1000 { cache.setValue(number, forKey: number, options: .cost(2)) }
    cache.removeAll()
    #expect(cache.count() == 0 && cache.totalCost() == 0)
    #expect(cache.value(forKey: 5) == nil)
    #expect(cache.statistics()["removals"] == 1000)
    cache.setValue(1, forKey: 5)
    #expect(cache.value(forKey: 5) == 1)
    #expect(cache.audit() == [])
  }

  @Test("The chosen entries are removed, and those written meanwhile stay")
  func removeWhere() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for number in 0..<200 { cache.setValue(number, forKey: number, options: .cost(3)) }
    let summary = cache.remove { key, info in
      // The closure runs outside the lock.
      if key == 8 { cache.setValue(0, forKey: 8) }
      return info.cost == 3 && key.isMultiple(of: 2)
    }
    #expect(summary == RemovalSummary(count: 99, cost: 297))
    #expect(cache.count() == 101)
    #expect(cache.value(forKey: 8) == 0)
    struct Refusal: Error {}
    #expect(throws: Refusal.self) {
      try cache.remove { _, _ throws(Refusal) in throw Refusal() }
    }
    #expect(cache.count() == 101)
  }

  @Test("Costs are given, come from the closure, or are the bytes of values that have bytes")
  func costs() {
    let bytes: MemoryCache<String, [UInt8]> = scene.cache()
    bytes.setValue([1, 2, 3], forKey: "a")
    #expect(bytes.totalCost() == 3)
    bytes.setValue([1, 2, 3], forKey: "a", options: .cost(50))
    #expect(bytes.totalCost() == 50)
    let strings: MemoryCache<Int, String> = scene.cache()
    strings[1] = "äb"
    #expect(strings.totalCost() == 3)
    let data: MemoryCache<Int, Data> = scene.cache()
    data[1] = Data([1, 2])
    #expect(data.totalCost() == 2)
    // Only the type of the values counts, not the contents.
    let optionals: MemoryCache<Int, [UInt8]?> = scene.cache()
    optionals.setValue([1, 2], forKey: 1)
    let any: MemoryCache<Int, any Sendable> = scene.cache()
    any[1] = "text"
    #expect(optionals.totalCost() == 0 && any.totalCost() == 0)
    let numbers: MemoryCache<String, Int> = scene.cache()
    numbers["a"] = 7
    #expect(numbers.totalCost() == 0)
    let closure: MemoryCache<String, Int> = scene.cache(
      costing: { key, value in key.utf8.count * value })
    closure["ab"] = 7
    #expect(closure.totalCost() == 14)
    closure.setValue(7, forKey: "ab", options: .cost(0))
    #expect(closure.totalCost() == 0)
  }

  @Test("Costs and cost limits below 0 count as 0", arguments: [-1, Int.min])
  func negativeCosts(cost: Int) async throws {
    let cache: MemoryCache<String, Int> = scene.cache(
      cost: cost, costing: { _, _ in cost })
    #expect(cache.costLimit == 0)
    cache["a"] = 1
    cache.setValue(2, forKey: "b", options: .cost(cost))
    cache.setValue(3, forKey: "c", options: .cost(cost))
    _ = try await cache.value(forKey: "d") { 4 }
    cache.setValue(5, forKey: "e", options: .cost(1))
    #expect(cache.count() == 4 && cache.totalCost() == 0)
    #expect(cache.info(forKey: "b")?.cost == 0)
    cache.costLimit = 10
    cache.costLimit = cost
    #expect(cache.costLimit == 0 && cache.count() == 4)
    #expect(cache.trim(.toBytes(cost)) == RemovalSummary(count: 4))
  }

  @Test("Statistics count what happened")
  func statistics() {
    let cache: MemoryCache<String, Int> = scene.cache(count: 2)
    #expect(cache.statistics().hitRatio == nil)
    cache["a"] = 1
    cache["a"] = 2
    cache["b"] = 3
    cache["c"] = 4
    _ = cache["a"]
    _ = cache["b"]
    _ = cache["c"]
    _ = cache["c"]
    cache.removeValue(forKey: "c")
    cache.setValue(1, forKey: "d", lifetime: .seconds(0))
    cache.trim(.toCount(0))
    let statistics = cache.statistics()
    #expect(statistics.hitCount == 3 && statistics.missCount == 1)
    #expect(statistics.hitRatio == 0.75)
    #expect(statistics["insertions"] == 5 && statistics["replacements"] == 1)
    #expect(statistics["removals"] == 1 && statistics["expirations"] == 1)
    #expect(statistics["evictions.count"] == 1 && statistics["evictions.trim"] == 1)
    #expect(statistics.evictionCount == 2)
    #expect(statistics.count == 0 && statistics.cost == 0)
    #expect(statistics["overheadBytes"] > 0)
  }

  @Test("In async code, no call needs await, and none that cannot fail needs try")
  func asyncCode() async {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a")
    #expect(cache.update(forKey: "a") { ($0 ?? 0) + 2 }?.value == 3)
    #expect(cache.setLifetime(.seconds(1), forKey: "a"))
    cache.observe { event in _ = event }
    cache.observe { event, value in _ = (event, value) }
    #expect(cache.remove { key, _ in key == "b" }.count == 0)
    #expect(cache.takeValue(forKey: "a") == 3)
    #expect(cache.compareAndSet(4, forKey: "a", expecting: 1) == .mismatch(current: nil))
    #expect(!cache.compareAndRemove(forKey: "a", expecting: 1))
  }

  @Test("A peek is neither a hit nor a miss")
  func peeks() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a")
    _ = (cache.peekValue(forKey: "a"), cache.peekValue(forKey: "b"))
    #expect(cache.statistics().hitCount == 0 && cache.statistics().missCount == 0)
    // A value that is not kept still replaces the old one.
    cache.setValue(2, forKey: "a", lifetime: .seconds(0))
    #expect(cache.takeValue(forKey: "a") == nil)
    #expect(cache.audit() == [])
  }

  @Test("Code that is generic over caches needs no try for one that cannot fail")
  func generic() {
    func fill<Cache: ContractCache<String, Int>>(_ cache: Cache) -> Int
    where Cache.Failure == Never {
      cache.setValue(1, forKey: "a", options: .standard)
      cache.setValue(
        2, forKey: "b", options: EntryOptions(cost: 3, lifetime: .standard, idleLimit: nil))
      cache.setValues([(key: "c", value: 3)])
      cache.removeValues(forKeys: ["a"])
      cache.trim(.toBytes(100))
      cache.trim(.toCount(10))
      cache.trim(.unused(for: .seconds(1)))
      return cache.count()
    }
    let cache: MemoryCache<String, Int> = scene.cache()
    #expect(fill(cache) == 2)
  }

  @Test("A compare-and-set or -remove happens only with the expected version")
  func compareAndSet() throws {
    let cache: MemoryCache<String, Int> = scene.cache { $0.idleLimit = .seconds(50) }
    guard case .stored(let first) = cache.compareAndSet(1, forKey: "a", expecting: nil) else {
      Issue.record("absent")
      return
    }
    #expect(cache.info(forKey: "a")?.version == first)
    #expect(
      cache.compareAndSet(2, forKey: "a", expecting: nil) == .mismatch(current: first)
        && cache.compareAndSet(2, forKey: "a", expecting: first + 1) == .mismatch(current: first))
    #expect(cache.value(forKey: "a") == 1)
    guard
      case .stored(let second) = cache.compareAndSet(
        3, forKey: "a", expecting: first,
        options: EntryOptions(cost: 7, lifetime: .seconds(9), idleLimit: .seconds(4)))
    else {
      Issue.record("as expected")
      return
    }
    let info = try #require(cache.info(forKey: "a"))
    #expect(second > first && info.version == second && info.cost == 7)
    #expect(info.expires == scene.clock.now().advanced(by: .seconds(9)))
    #expect(info.idleLimit == .seconds(4))
    // Like `setValue`, not like `update`: options that are not given are as configured.
    _ = cache.compareAndSet(4, forKey: "a", expecting: second)
    #expect(cache.info(forKey: "a")?.expires == nil)
    #expect(cache.info(forKey: "a")?.idleLimit == .seconds(50) && cache.value(forKey: "a") == 4)
    #expect(!cache.compareAndRemove(forKey: "a", expecting: second))
    let third = try #require(cache.info(forKey: "a")?.version)
    #expect(cache.compareAndRemove(forKey: "a", expecting: third) && !cache.contains("a"))
    #expect(!cache.compareAndRemove(forKey: "a", expecting: third))
    #expect(cache.compareAndSet(5, forKey: "a", expecting: third) == .mismatch(current: nil))
    // An expired value counts as absent.
    cache.setValue(6, forKey: "b", lifetime: .seconds(1))
    let expired = try #require(cache.info(forKey: "b")?.version)
    scene.clock.advance(by: .seconds(2))
    #expect(!cache.compareAndRemove(forKey: "b", expecting: expired))
    #expect(cache.compareAndSet(7, forKey: "b", expecting: expired) == .mismatch(current: nil))
    #expect(cache.audit() == [])
  }

  @Test("If many compare and set at once, one succeeds with each version")
  func compareAndSetByMany() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    onThreads(4) { _ in
      for _ in 0..<500 {
        while true {
          let entry = cache.entry(forKey: 0)
          let result = cache.compareAndSet(
            (entry?.value ?? 0) + 1, forKey: 0, expecting: entry?.info.version)
          if case .stored = result { break }
        }
      }
    }
    #expect(cache.value(forKey: 0) == 2000)
  }

  @Test("A value with a version never replaces a newer one")
  func versions() throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    func keep(_ value: Int, _ version: UInt64, expires: Timestamp? = nil) {
      let times = cache.clock.times(expires: expires, idleLimit: .seconds(3))
      cache.keep(value, forKey: "a", version: version, times, cost: 4)
    }
    let expires = scene.clock.now().advanced(by: .seconds(9))
    keep(1, 77, expires: expires)
    let info = try #require(cache.info(forKey: "a"))
    #expect(info.cost == 4 && info.expires == expires && info.idleLimit == .seconds(3))
    #expect(info.version == 77)
    keep(2, 76)
    keep(3, 77)
    #expect(cache.value(forKey: "a") == 1)
    keep(4, 78)
    #expect(cache.value(forKey: "a") == 4)
    // A node has 61 bits for the version. A higher one drops what it replaces.
    let highest = UInt64.max >> 3
    keep(5, highest)
    #expect(cache.info(forKey: "a")?.version == highest)
    keep(6, highest + 1)
    #expect(!cache.contains("a"))
    // A value that had expired where it was fetched is not inserted.
    keep(7, 1, expires: scene.clock.now())
    #expect(!cache.contains("a"))
  }
}
