import FuzzSupport
import Testing

@testable import Cairn

/// No call holds the lock of a cache while it works through all entries.
@Suite("Work under the lock of a cache in memory")
struct MemoryPauseTests {
  let scene = MemoryScene()

  @Test(
    "If all entries were used, an eviction passes over a limited number of them",
    arguments: [EvictionPolicy.sieve, .s3FIFO])
  func usedEntries(policy: EvictionPolicy) {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 2000) { $0.policy = policy }
    for key in 0..<2000 { cache[key] = key }
    for _ in 0..<3 { for key in 0..<2000 { _ = cache[key] } }
    func useCount() -> UInt64 {
      cache.lock.withLock { state in
        (0..<state.table.nodes.count).reduce(0) { sum, slot in
          let node = state.table.nodes[slot]
          return sum + (policy == .sieve ? (node.isVisited ? 1 : 0) : node.frequency)
        }
      }
    }
    var before = useCount()
    #expect(before >= 2000)
    for key in 2000..<2100 {
      cache[key] = key
      let after = useCount()
      // An entry that is passed over loses at most its three uses, and so does the evicted one.
      #expect(before - after <= (256 + 1) * 3)
      before = after
    }
    #expect(cache.count() == 2000 && cache.audit() == [])
  }

  @Test("A write puts back a limited number of entries whose idle time has begun again")
  func idleEntries() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 3000) { $0.idleLimit = .seconds(10) }
    for key in 0..<3000 { cache[key] = key }
    scene.clock.advance(by: .seconds(6))
    // All but the last entry are used again, so their deadlines in the heap are too early.
    for key in 0..<2999 { _ = cache[key] }
    scene.clock.advance(by: .seconds(6))
    func dueCount() -> Int {
      let now = scene.clock.now().millisecondsSinceEpoch
      return cache.lock.withLock { state in
        var count = 0
        state.table.deadlines.forEachDue(at: now) { _ in count += 1 }
        return count
      }
    }
    #expect(dueCount() == 3000)
    cache[3000] = 0
    // The evicted entry is gone too.
    #expect(dueCount() >= 3000 - 2 * DeadlineHeap.mostPutBack - 1)
    #expect(cache.statistics().count == 3000)
    // Calls that need all expired entries to be gone put back the rest, in steps.
    let count = cache.count()
    #expect(dueCount() == 0 && !cache.contains(2999))
    #expect(count == cache.statistics().count && count >= 2999)
    #expect(cache.audit() == [])
  }

  @Test("The table grows by steps of limited size, with all its parts")
  func growth() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 20_000) { $0.policy = .s3FIFO }
    var before = Int(cache.statistics()["overheadBytes"])
    for key in 0..<40_000 {
      cache.setValue(key, forKey: key, lifetime: .seconds(1000))
      let after = Int(cache.statistics()["overheadBytes"])
      #expect(after - before < 600 << 10, "\(key)")
      before = after
    }
    #expect(cache.audit() == [])
  }

  @Test(
    "A value that needs the room of many others evicts them in groups, and stays",
    arguments: EvictionPolicy.allCases)
  func dear(policy: EvictionPolicy) {
    let cache: MemoryCache<Int, Int> = scene.cache(cost: 3000) { $0.policy = policy }
    for key in 0..<3000 { cache.setValue(key, forKey: key, options: .cost(1)) }
    let held = Record<Int>()
    cache.observe { [weak cache] event, _ in
      if case .removed = event { held.add(cache?.statistics().count ?? 0) }
    }
    cache.setValue(0, forKey: -1, options: .cost(2990))
    #expect(cache.contains(-1) && cache.totalCost() == 3000 && cache.count() == 11)
    #expect(held.all.count == 2990)
    #expect(held.all.first == 3001 - 256)
    #expect(cache.audit() == [])
  }
}
