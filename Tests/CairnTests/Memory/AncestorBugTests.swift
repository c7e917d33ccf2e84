import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

/// Mistakes of this cache's ancestors, each with a test that this cache does not make it.
@Suite("Mistakes of the ancestors that the cache in memory does not make", .timeLimit(.minutes(30)))
struct AncestorBugTests {
  let scene = MemoryScene()

  @Test("NSCache on Linux: with a limit of three it kept the first three and dropped each new one")
  func newOnesAreKept() {
    let foundation = NSCache<NSString, NSNumber>()
    foundation.countLimit = 3
    let cache: MemoryCache<String, Int> = scene.cache(count: 3)
    for number in 1...6 {
      foundation.setObject(NSNumber(value: number), forKey: "\(number)" as NSString)
      cache.setValue(number, forKey: "\(number)")
    }
    #expect(cache.keys() == ["6", "5", "4"])
    // If Foundation fixes this, the test fails, and the table of the benchmark changes.
    #expect(foundation.object(forKey: "1") != nil && foundation.object(forKey: "6") == nil)
  }

  @Test("XRCache: an update kept the old value")
  func update() {
    let cache: MemoryCache<String, Int> = scene.cache(count: 2, cost: 10)
    for number in 0..<10 {
      cache.setValue(number, forKey: "a", options: .cost(number))
      #expect(cache.value(forKey: "a") == number)
      #expect(cache.totalCost() == number)
    }
    #expect(cache.count() == 1)
  }

  @Test("XRCache: nodes were compared by value, so the wrong one of two equal nodes was removed")
  func equalValues() {
    let cache: MemoryCache<Int, String> = scene.cache(count: 4)
    for key in 0..<4 { cache[key] = "same" }
    _ = cache[2]
    _ = cache[0]
    cache[9] = "same"
    #expect(cache.keys() == [9, 0, 2, 3])
    cache[2] = nil
    #expect(cache.keys() == [9, 0, 3])
    #expect(cache.audit() == [])
  }

  @Test("XRCache: reading many keys always returned nothing")
  func many() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for key in 0..<5 { cache[key] = key * key }
    #expect(cache.values(forKeys: 0..<6) == [0, 1, 4, 9, 16, nil])
  }

  @Test("XRCache: removing all left rows behind")
  func removeAll() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for key in 0..<100 { cache.setValue(key, forKey: key, lifetime: .seconds(5)) }
    cache.removeAll()
    #expect(cache.keys() == [] && cache.entries().isEmpty)
    #expect((0..<100).allSatisfy { !cache.contains($0) })
    scene.clock.advance(by: .seconds(10))
    #expect(cache.trim(.expired) == RemovalSummary())
    #expect(cache.audit() == [])
  }

  @Test("XRCache: trims bypassed the lock, and unlocked what another thread held")
  func trimsUnderTheLock() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    onThreads(4) { thread in
      for round in 0..<300 {
        for key in 0..<20 { cache.setValue(round, forKey: thread * 20 + key, options: .cost(3)) }
        switch (round + thread) % 4 {
        case 0: cache.trim(.toCount(30))
        case 1: cache.trim(.toBytes(60, order: .largestFirst))
        case 2: cache.trim(.unused(for: .seconds(1)))
        default: cache.trim(.expired)
        }
      }
    }
    #expect(cache.audit() == [])
    #expect(cache.totalCost() == cache.count() * 3)
  }

  @Test(
    "YYCache: limits and costs of 2 GiB and more were cut to 32 bits, or ignored",
    arguments: [1 << 31, 1 << 32, 1 << 40, .max])
  func largeLimits(limit: Int) {
    let cache: MemoryCache<Int, Int> = scene.cache(cost: limit)
    cache.setValue(1, forKey: 1, options: .cost(limit / 2))
    cache.setValue(2, forKey: 2, options: .cost(limit / 2))
    #expect(cache.count() == 2 && cache.totalCost() == limit / 2 * 2)
    cache.setValue(3, forKey: 3, options: .cost(limit / 2))
    #expect(cache.keys() == [3, 2])
    if limit < .max {
      cache.setValue(4, forKey: 4, options: .cost(limit + 1))
      #expect(!cache.contains(4) && cache.count() == 2)
    }
    #expect(cache.trim(.toBytes(limit / 2)) == RemovalSummary(count: 1, cost: limit / 2))
    cache.countLimit = limit
    #expect(cache.countLimit == (limit == .max ? nil : limit))
  }

  @Test("TMCache: the count of bytes drifted; here the sum of the greatest costs is exact")
  func costs() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for key in 0..<5 { cache.setValue(key, forKey: key, options: .cost(.max)) }
    cache.setValue(5, forKey: 5, options: .cost(7))
    #expect(cache.totalCost() == .max)
    #expect(cache.trim(.toCount(6)) == RemovalSummary())
    for key in 0..<5 { cache.removeValue(forKey: key) }
    #expect(cache.totalCost() == 7)
    cache.setValue(5, forKey: 5, options: .cost(3))
    cache.removeValue(forKey: 5)
    #expect(cache.totalCost() == 0)
  }

  @Test(
    "YYCache, XRCache, TMCache: expired entries were returned until a timer fired",
    arguments: [true, false])
  func age(isIdle: Bool) {
    let cache: MemoryCache<String, Int> = scene.cache {
      if isIdle { $0.idleLimit = .seconds(5) } else { $0.lifetime = .seconds(5) }
      $0.maintenanceInterval = nil
    }
    cache["a"] = 1
    scene.clock.advance(by: .milliseconds(4999))
    #expect(cache.contains("a"))
    scene.clock.advance(by: .milliseconds(1))
    #expect(cache["a"] == nil)
    #expect(scene.background.delays.isEmpty)
  }

  @Test("PINCache: a value with its own lifetime was spared by a trim by age")
  func trimByAge() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache.setValue(1, forKey: "a", lifetime: .seconds(1000))
    scene.clock.advance(by: .seconds(10))
    #expect(cache.trim(.unused(for: .seconds(5))).count == 1)
  }

  @Test("PINCache: a trim by date promised the access and used the creation")
  func trimBasis() {
    let cache: MemoryCache<String, Int> = scene.cache()
    cache["old, used"] = 1
    scene.clock.advance(by: .seconds(10))
    cache["new"] = 2
    _ = cache["old, used"]
    scene.clock.advance(by: .seconds(4))
    #expect(cache.trim(.unused(for: .seconds(5))) == RemovalSummary())
    #expect(cache.trim(.older(than: .seconds(5))).count == 1)
    #expect(cache.keys() == ["new"])
  }

  @Test("PINCache: there was a limit of 50 MB that nobody had requested")
  func noSilentLimit() {
    let cache = MemoryCache<Int, Int>(configuration: .init())
    for key in 0..<1000 { cache.setValue(key, forKey: key, options: .cost(1 << 40)) }
    #expect(cache.count() == 1000)
    #expect(cache.countLimit == nil && cache.costLimit == nil)
  }

  @Test("TMCache: a call from inside a callback deadlocked")
  func callbacks() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 3)
    let calls = Atomic(0)
    cache.observe { [weak cache] event, _ in
      guard let cache else { return }
      // Another thread, which waits for the lock if this one holds it.
      if calls.add(1, ordering: .relaxed).newValue < 20 {
        onThreads(1) { _ in
          _ = cache.value(forKey: 1)
          cache.setValue(0, forKey: 77)
        }
      }
    }
    for key in 0..<10 { cache[key] = key }
    cache.trim(.toCount(1))
    cache.removeAll()
    #expect(calls.load(ordering: .relaxed) > 20)
    #expect(cache.audit() == [])
  }

  @Test("YYMemoryCache: above the count limit, one insertion evicted only one entry")
  func hardCount() {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for key in 0..<100 { cache[key] = key }
    cache.countLimit = 10
    #expect(cache.statistics().count == 10)
    cache[1000] = 1
    #expect(cache.statistics().count == 10)
  }
}
