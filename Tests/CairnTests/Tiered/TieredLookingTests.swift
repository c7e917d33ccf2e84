import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Reads of a cache on disk that are not accesses, and reads that return more")
struct TieredLookingTests {
  let scene = TieredScene()

  @Test("A peek is neither a hit nor a miss, and keeps nothing in memory")
  func peeks() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a")
    cache.tier.removeAll()
    #expect(try cache.peekValue(forKey: "a") == 1 && cache.peekValue(forKey: "b") == nil)
    #expect(try !cache.tier.contains("a"))
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 0 && statistics.missCount == 0)
    #expect(statistics["memory.misses"] == 0)
  }

  @Test("The host's report that memory is short shrinks the tier, and no other")
  func pressure() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for number in 0..<10 { try cache.setValue(number, forKey: number) }
    let events = Record<CacheEvent<Int>>()
    cache.tier.observe { event, _ in
      if case .memoryPressure = event { events.add(event) }
    }
    cache.respond(to: .high)
    #expect(cache.tier.count() == 5)
    cache.respond(to: .critical)
    #expect(try cache.tier.count() == 0 && cache.count() == 10)
    #expect(events.all == [.memoryPressure(.high), .memoryPressure(.critical)])
    let disk: DiskCache<Int, Int> = try scene.disk.cache(at: scene.disk("disk"))
    try disk.setValue(1, forKey: 1)
    disk.respond(to: .critical)
    #expect(try disk.value(forKey: 1) == 1)
  }
}
