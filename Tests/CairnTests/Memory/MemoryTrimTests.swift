import Cairn
import FuzzSupport
import Testing

@Suite("Trims of a cache in memory")
struct MemoryTrimTests {
  let scene = MemoryScene()

  /// Keys 0 to 9, costs 10 to 100 in another order, used in the order of the keys.
  func filled() -> MemoryCache<Int, Int> {
    let cache: MemoryCache<Int, Int> = scene.cache()
    for number in 0..<10 {
      cache.setValue(number, forKey: number, options: .cost((number * 7 % 10 + 1) * 10))
      scene.clock.advance(by: .seconds(1))
    }
    return cache
  }

  @Test("A trim to a number removes the least recently used entries")
  func count() {
    let cache = filled()
    #expect(cache.trim(.toCount(7)) == RemovalSummary(count: 3, cost: 10 + 80 + 50))
    #expect(cache.keys() == [9, 8, 7, 6, 5, 4, 3])
    #expect(cache.trim(.toCount(7)) == RemovalSummary())
    #expect(cache.statistics()["evictions.trim"] == 3)
  }

  @Test("To a cost: no more entries are removed than needed, in the order of use")
  func cost() {
    let cache = filled()
    #expect(cache.totalCost() == 550)
    #expect(cache.trim(.toBytes(460)) == RemovalSummary(count: 2, cost: 90))
    #expect(cache.trim(.toBytes(459)) == RemovalSummary(count: 1, cost: 50))
  }

  @Test("The largest first; among equals, the least recently used")
  func largestFirst() {
    let cache = filled()
    cache.trim(.toBytes(380, order: .largestFirst))
    // Costs: 0: 10, 1: 80, 2: 50, 3: 20, 4: 90, 5: 60, 6: 30, 7: 100, 8: 70, 9: 40.
    #expect(cache.keys() == [9, 8, 6, 5, 3, 2, 1, 0])
    #expect(cache.totalCost() == 360)
    cache.trim(.toCount(6, order: .largestFirst))
    #expect(cache.keys() == [9, 6, 5, 3, 2, 0])
    let equal: MemoryCache<Int, Int> = scene.cache()
    for number in 0..<6 { equal.setValue(number, forKey: number, options: .cost(5)) }
    _ = equal[0]
    equal.trim(.toCount(4, order: .largestFirst))
    #expect(equal.keys() == [0, 5, 4, 3])
    #expect(cache.audit() == [] && equal.audit() == [])
  }

  @Test("A trim to zero or less of anything leaves nothing", arguments: 0..<7)
  func zero(way: Int) {
    let cache = filled()
    cache.setValue(0, forKey: 100, options: .cost(0))
    switch way {
    case 0: cache.trim(.toCount(0))
    case 1: cache.trim(.toCount(-3))
    case 2: cache.trim(.toBytes(0))
    case 3: cache.trim(.toBytes(0, order: .largestFirst))
    case 4: cache.trim(.unused(for: .zero))
    case 5: cache.trim(.older(than: .seconds(-9)))
    default: cache.trim(.toCount(.min, order: .largestFirst))
    }
    #expect(cache.keys() == [])
    #expect(cache.totalCost() == 0)
    #expect(cache.audit() == [])
  }

  @Test("By age since the last use, and since the write")
  func age() {
    let cache = filled()
    _ = cache[0]
    // Key 0 was used now, key n was written 10 - n seconds ago.
    #expect(cache.trim(.unused(for: .seconds(8))) == RemovalSummary(count: 1, cost: 80))
    #expect(
      cache.trim(.older(than: .seconds(8))) == RemovalSummary(count: 1, cost: 10))
    #expect(cache.keys() == [9, 8, 7, 6, 5, 4, 3, 2])
    #expect(cache.trim(.unused(for: .seconds(Int64.max))) == RemovalSummary())
    for number in 0..<3000 { cache[number] = number }
    scene.clock.advance(by: .seconds(2))
    cache[77] = 0
    #expect(cache.trim(.unused(for: .seconds(1))).count == 2999)
    #expect(cache.keys() == [77])
  }

  @Test("Large trims, with each policy", arguments: EvictionPolicy.allCases)
  func large(policy: EvictionPolicy) {
    let cache: MemoryCache<Int, Int> = scene.cache { $0.policy = policy }
    for number in 0..<5000 { cache.setValue(number, forKey: number, options: .cost(1)) }
    // S3-FIFO spares entries that were used twice.
    for number in 0..<200 { _ = cache[number % 100] }
    #expect(cache.trim(.toCount(1000)).count == 4000)
    for number in 0..<100 { #expect(cache.contains(number)) }
    #expect(cache.trim(.toBytes(10, order: .largestFirst)).count == 990)
    #expect(cache.audit() == [])
  }

  @Test("Going to the background clears the cache if configured, and is reported in any case")
  func background() {
    for clears in [true, false] {
      let cache: MemoryCache<Int, Int> = scene.cache { $0.clearsInBackground = clears }
      let events = Record<CacheEvent<Int>>()
      cache[1] = 1
      cache.observe { event, _ in events.add(event) }
      cache.enterBackground()
      #expect(cache.count() == (clears ? 0 : 1))
      #expect(events.all == [.enteredBackground] + (clears ? [.removedAll(count: 1)] : []))
      #expect(cache.statistics()["evictions.background"] == (clears ? 1 : 0))
    }
  }

  @Test("A removal by a closure that adds entries ends, and visits each old entry once")
  func closureThatAdds() {
    let cache = MemoryCache<Int, Int>(
      configuration: MemoryConfiguration())
    for key in 0..<3000 { cache.setValue(key, forKey: key) }
    var visits: [Int: Int] = [:]
    let summary = cache.remove { key, _ in
      visits[key, default: 0] += 1
      cache.setValue(key, forKey: key + 1_000_000)
      return key % 3 == 0
    }
    #expect(summary.count == 1000 && cache.keys().count == 5000)
    #expect((0..<3000).allSatisfy { visits[$0] == 1 })
  }
}
