import Cairn
import FuzzSupport
import Testing

@Suite("Limits of a cache in memory hold when a call returns")
struct MemoryLimitTests {
  let scene = MemoryScene()

  @Test("At the limit of the number of entries, the least recently used entry is evicted")
  func count() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 3)
    for number in 1...3 { cache[number] = number }
    _ = cache[1]
    #expect(cache.contains(2))
    cache[4] = 4
    #expect(cache.keys() == [4, 1, 3])
    cache[3] = 30
    cache[5] = 5
    #expect(cache.keys() == [5, 3, 4])
    #expect(cache.audit() == [])
  }

  @Test("The limit of the cost holds even if a value becomes more expensive in place")
  func cost() {
    let cache: MemoryCache<String, Int> = scene.cache(cost: 10)
    cache.setValue(1, forKey: "a", options: .cost(4))
    cache.setValue(2, forKey: "b", options: .cost(4))
    cache.setValue(3, forKey: "c", options: .cost(2))
    #expect(cache.totalCost() == 10 && cache.count() == 3)
    cache.setValue(2, forKey: "b", options: .cost(5))
    #expect(cache.keys() == ["b", "c"])
    #expect(cache.totalCost() == 7)
    cache.setValue(4, forKey: "d", options: .cost(10))
    #expect(cache.keys() == ["d"])
    #expect(cache.statistics()["evictions.cost"] == 3)
  }

  @Test("A value that alone costs too much is not kept, and removes the older one and nothing else")
  func tooDear() {
    let cache: MemoryCache<String, Int> = scene.cache(cost: 10)
    cache.setValue(1, forKey: "a", options: .cost(4))
    cache.setValue(2, forKey: "b", options: .cost(4))
    let events = Record<CacheEvent<String>>()
    cache.observe { event, _ in events.add(event) }
    cache.setValue(3, forKey: "a", options: .cost(11))
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.value(forKey: "b") == 2)
    #expect(cache.totalCost() == 4)
    #expect(
      events.all == [
        .removed(key: "a", cause: .replaced), .inserted(key: "a"),
        .removed(key: "a", cause: .evicted(.costLimit)),
      ])
  }

  @Test(
    "Limits of zero keep nothing, or only what costs nothing", arguments: EvictionPolicy.allCases)
  func zero(policy: EvictionPolicy) {
    let none: MemoryCache<Int, Int> = scene.cache(count: 0) { $0.policy = policy }
    none[1] = 1
    #expect(none.count() == 0)
    let negative: MemoryCache<Int, Int> = scene.cache(count: -5) { $0.policy = policy }
    negative[1] = 1
    #expect(negative.count() == 0)
    let free: MemoryCache<Int, Int> = scene.cache(cost: 0) { $0.policy = policy }
    free.setValue(1, forKey: 1, options: .cost(0))
    free.setValue(2, forKey: 2, options: .cost(1))
    #expect(free.keys() == [1])
    #expect(free.audit() == [])
  }

  @Test("Lowered limits hold at once, and any number is possible again after raising them")
  func changed() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    #expect(cache.countLimit == nil && cache.costLimit == nil)
    for number in 0..<500 { cache.setValue(number, forKey: number, options: .cost(2)) }
    cache.countLimit = 200
    #expect(cache.count() == 200 && cache.value(forKey: 300) == 300)
    cache.costLimit = 100
    #expect(cache.count() == 50 && cache.totalCost() == 100)
    #expect(cache.countLimit == 200 && cache.costLimit == 100)
    cache.countLimit = nil
    cache.costLimit = nil
    for number in 0..<500 { cache.setValue(number, forKey: number, options: .cost(2)) }
    #expect(cache.count() == 500)
    cache.countLimit = -1
    #expect(cache.count() == 0 && cache.countLimit == 0)
  }

  @Test("Expired entries are removed before live ones")
  func expiredFirst() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 2)
    cache.setValue(1, forKey: 1)
    cache.setValue(2, forKey: 2, lifetime: .seconds(1))
    scene.clock.advance(by: .seconds(2))
    cache.setValue(3, forKey: 3)
    #expect(cache.keys() == [3, 1])
    #expect(cache.statistics()["evictions.count"] == 0)
  }

  @Test("SIEVE spares entries used since its hand passed, and evicts the rest from the oldest on")
  func sieve() {
    let cache: MemoryCache<String, Int> = scene.cache(count: 3) { $0.policy = .sieve }
    for key in ["a", "b", "c"] { cache[key] = 0 }
    _ = cache["a"]
    cache["d"] = 0  // The hand passes a, evicts b, and continues from c.
    #expect(Set(cache.keys()) == ["a", "c", "d"])
    cache["e"] = 0  // Evicts c.
    #expect(Set(cache.keys()) == ["a", "d", "e"])
    _ = cache["d"]
    _ = cache["e"]
    cache["f"] = 0  // Passes d and e, starts over at a, which was not used again.
    #expect(Set(cache.keys()) == ["d", "e", "f"])
    #expect(cache.audit() == [])
  }

  @Test("With SIEVE, many reads of all entries do not keep a new one out")
  func sieveTakesNew() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 1) { $0.policy = .sieve }
    for number in 0..<100 {
      cache[number] = number
      #expect(cache[number] == number)
    }
    #expect(cache.count() == 1)
  }

  /// Reads a key, and sets it if it is missing.
  ///
  /// - Returns: whether it was there.
  private func use(_ key: Int, in cache: MemoryCache<Int, Int>) -> Bool {
    if cache.value(forKey: key) != nil { return true }
    cache[key] = key
    return false
  }

  @Test(
    "With SIEVE, a new set of keys has hits after as many misses as there are entries",
    arguments: [60, 200, 1000, 4000])
  func sieveLockstep(capacity: Int) {
    let cache: MemoryCache<Int, Int> = scene.cache(count: capacity) { $0.policy = .sieve }
    // All entries that the cache then holds were used twice, and are never used again.
    for key in 0..<20_000 {
      for _ in 0..<2 { _ = use(key, in: cache) }
    }
    let keys = -50..<0
    let missCount = (0..<capacity / 50 + 3).reduce(0) { sum, _ in
      sum + keys.count { !use($0, in: cache) }
    }
    #expect(missCount <= capacity + 1 + keys.count)
    #expect(keys.allSatisfy { use($0, in: cache) })
    #expect(cache.audit() == [])
  }

  @Test("With SIEVE, an occasional key that is used twice does not delay those hits for long")
  func sieveLockstepWithSurvivors() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 1000) { $0.policy = .sieve }
    for key in 0..<20_700 {
      for _ in 0..<2 { _ = use(key, in: cache) }
    }
    let keys = -400..<0
    var requestCount = 0
    for _ in 0..<4 {
      for key in keys {
        requestCount += 1
        _ = use(key, in: cache)
        if requestCount % 300 == 0 { _ = use(key, in: cache) }
      }
    }
    #expect(keys.allSatisfy { use($0, in: cache) })
  }
}
