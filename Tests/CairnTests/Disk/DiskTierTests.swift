import Cairn
import CairnStore
import FuzzSupport
import Testing

@Suite("What a cache on disk gives a cache before it")
struct DiskTierTests {
  let scene = DiskScene()

  @Test("A fetch has the value and all that a promotion needs, from one read")
  func fetch() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    let version = try cache.setValue(
      "v", forKey: "a", cost: 9, lifetime: .seconds(5), idleLimit: .seconds(3))
    let found = try #require(try cache.fetchedValue(forKey: "a", counts: true))
    #expect(found.value == "v")
    #expect(found.version == version)
    #expect(found.cost == 9)
    #expect(found.byteCount == 1)
    #expect(found.expires == ManualClock.start.advanced(by: .seconds(5)))
    #expect(found.idleLimit == .seconds(3))
    try cache.setValue("w", forKey: "b")
    #expect(try cache.fetchedValue(forKey: "b", counts: true)?.cost == nil)
    #expect(try cache.fetchedValue(forKey: "c", counts: true)?.value == nil)
    #expect(try cache.statistics().hitCount == 2)
    // A miss the front counts: the value may be with it.
    #expect(try cache.statistics().missCount == 0)
  }

  @Test("A touch makes keys the most recently used ones, in order, and reads and writes nothing")
  func touch() throws {
    let cache: DiskCache<Int, Int> = try scene.cache {
      $0.store.idleLimit = .seconds(100)
      $0.store.maintenanceInterval = nil
    }
    for number in 0..<6 { try cache.setValue(number, forKey: number) }
    let before = try cache.storeStatistics()
    scene.clock.advance(by: .seconds(60))
    #expect(try cache.touch([2, 0, 99, 4]) == 3)
    #expect(try cache.storeStatistics().lastVersion == before.lastVersion)
    #expect(try cache.statistics().hitCount == 0)
    // As accesses they count for the idle limit too.
    scene.clock.advance(by: .seconds(60))
    #expect(try cache.count() == 3)
    try cache.removeExpired()
    try cache.trim(toCount: 2)
    #expect(try cache.keys().sorted() == [0, 4])
    try cache.trim(toCount: 1)
    #expect(try cache.keys() == [4])
  }

  @Test("Events have the versions, in a batch too")
  func versions() throws {
    struct Told: Equatable {
      var event: CacheEvent<Int>
      var version: UInt64
    }
    let cache: DiskCache<Int, Int> = try scene.cache()
    let told = Record<Told>()
    let observation = cache.observeVersions { told.add(Told(event: $0, version: $1)) }
    let first = try cache.setValue(1, forKey: 1)
    try cache.setValues([(key: 1, value: 2), (key: 2, value: 3), (key: 1, value: 4)])
    #expect(try cache.value(forKey: 1) == 4)
    let last = try #require(try cache.info(forKey: 1)?.version)
    let other = try #require(try cache.info(forKey: 2)?.version)
    try cache.removeValue(forKey: 1)
    try cache.removeAll()
    #expect(
      told.all == [
        Told(event: .inserted(key: 1), version: first),
        Told(event: .inserted(key: 2), version: other),
        Told(event: .removed(key: 1, cause: .replaced), version: first),
        Told(event: .inserted(key: 1), version: last),
        Told(event: .removed(key: 1, cause: .removed), version: last),
        Told(event: .removedAll(count: 1), version: last + 1),
      ])
    observation.cancel()
  }
}
