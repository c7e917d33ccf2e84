import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What a cache and its memory tier report and count")
struct TieredEventTests {
  let scene = TieredScene()

  @Test("Memory's events come first, even for the disk's evictions")
  func events() throws {
    let cache: DiskCache<String, Int> = try scene.cache(held: 1, count: 2)
    let told = Record<TierEvent<String>>()
    let observations = cache.observeTiers { told.add($0) }
    func expect(_ events: [TierEvent<String>], _ line: SourceLocation = #_sourceLocation) {
      #expect(told.all == events, sourceLocation: line)
      told.removeAll()
    }
    func memory(_ event: CacheEvent<String>) -> TierEvent<String> { TierEvent(event, in: .memory) }
    func disk(_ event: CacheEvent<String>) -> TierEvent<String> { TierEvent(event, in: .disk) }
    try cache.setValue(1, forKey: "a")
    expect([memory(.inserted(key: "a")), disk(.inserted(key: "a"))])
    try cache.setValue(2, forKey: "a")
    expect([
      memory(.removed(key: "a", cause: .replaced)), memory(.inserted(key: "a")),
      disk(.removed(key: "a", cause: .replaced)), disk(.inserted(key: "a")),
    ])
    try cache.setValue(1, forKey: "b")
    expect([
      memory(.inserted(key: "b")), memory(.removed(key: "a", cause: .evicted(.countLimit))),
      disk(.inserted(key: "b")),
    ])
    _ = try cache.value(forKey: "a")
    expect([
      memory(.inserted(key: "a")), memory(.removed(key: "b", cause: .evicted(.countLimit))),
    ])
    try cache.removeValue(forKey: "a")
    expect([
      memory(.removed(key: "a", cause: .removed)), disk(.removed(key: "a", cause: .removed)),
    ])
    cache.enterBackground()
    expect([memory(.enteredBackground), memory(.removedAll(count: 0))])
    try cache.removeAll()
    expect([memory(.removedAll(count: 0)), disk(.removedAll(count: 1))])
    for observation in observations { observation.cancel() }
    try cache.setValue(1, forKey: "a")
    expect([])
    #expect(cache.tier.held.observerCount == 0 && !cache.isObserved)
  }

  @Test("A disk eviction is reported for both tiers, with its cause")
  func evictions() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 2)
    let told = Record<TierEvent<Int>>()
    cache.observeTiers { event in
      if case .removed = event.event { told.add(event) }
    }
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    let event = CacheEvent.removed(key: 0, cause: .evicted(.countLimit))
    #expect(told.all == [TierEvent(event, in: .memory), TierEvent(event, in: .disk)])
  }

  @Test("A close reports once that memory is emptied, if it had contents")
  func closing() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    try cache.setValue(1, forKey: 1)
    let told = Record<TierEvent<Int>>()
    cache.observeTiers { told.add($0) }
    try cache.close()
    try cache.close()
    #expect(told.all == [TierEvent(.removedAll(count: 1), in: .memory)])
  }

  @Test("A stream of events ends with the cache")
  func stream() async throws {
    var cache: DiskCache<Int, Int>? = try scene.cache()
    let stream = try #require(cache?.events())
    try await cache?.setValue(1, forKey: 1)
    // Background jobs hold the store.
    try await cache?.close()
    scene.disk.background.discardAll()
    cache = nil
    var events: [CacheEvent<Int>] = []
    for await event in stream { events.append(event) }
    #expect(events == [.inserted(key: 1)])
  }

  @Test(
    "A close ends all streams, even those made later", .timeLimit(.minutes(30)))
  func streamsEndWithClose() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    let stream = cache.events()
    let told = Task {
      var events: [CacheEvent<Int>] = []
      for await event in stream { events.append(event) }
      return events
    }
    try await cache.setValue(1, forKey: 1)
    try await cache.close()
    // Held, so that the release of the cache does not end the streams.
    #expect(await told.value == [.inserted(key: 1)])
    for await event in cache.events() { Issue.record("\(event)") }
    #expect(!cache.isObserved)
    withExtendedLifetime(cache) {}
  }

  @Test("Memory's contents are released with the cache; reads were reported to the disk before")
  func cacheGone() throws {
    var cache: DiskCache<Int, Int>? = try scene.cache {
      // Every close records the order of use.
      $0.store.checkpointRecordThreshold = 0
    }
    weak let held = cache?.held
    try #require(held != nil)
    for key in 0..<3 { try cache?.setValue(key, forKey: key) }
    _ = try cache?.value(forKey: 0)
    scene.disk.background.discardAll()
    scene.background.discardAll()
    cache = nil
    #expect(held == nil)
    let again: DiskCache<Int, Int> = try scene.cache()
    #expect(try again.store.keysByRecency().last == again.bytes(of: 0))
    #expect(try again.value(forKey: 2) == 2)
  }

  @Test("The memory tier reports its own events, with values")
  func memory() throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let told = Record<Int?>()
    cache.tier.observe { event, value in told.add(value) }
    try cache.setValue(5, forKey: "a")
    cache.tier.removeAll()
    #expect(told.all == [5, nil])
  }

  @Test("Statistics count by tier, and are pairs of names and numbers for polling")
  func statistics() async throws {
    let cache: DiskCache<String, Int> = try scene.cache(held: 1)
    try await cache.setValue(1, forKey: "a")
    try await cache.setValue(2, forKey: "b")
    _ = try cache.values(forKeys: ["a", "b", "c"])
    _ = try await cache.value(forKey: "d") { 4 }
    _ = try? await cache.value(forKey: "e") { throw LoadFailure() }
    let statistics = try cache.statistics()
    let metrics = statistics.metrics
    #expect(Set(metrics.map(\.name)).count == metrics.count)
    let values = Dictionary(uniqueKeysWithValues: metrics.map { ($0.name, $0.value) })
    #expect(values["hits"] == 2 && values["misses"] == 3)
    #expect(values["memory.hits"] == 0)
    #expect(values["loads.started"] == 2 && values["loads.failed"] == 1)
    #expect(values["memory.count"] == 1 && values["count"] == 3)
    #expect(values["memory.evictions.count"] == 4)
    #expect(values["insertions"] == 3)
    #expect(try values["liveBytes"] == Double(cache.totalCost()))
    // The tier alone has the same metrics, without the prefix.
    let memory = cache.tier.statistics().metrics
    for metric in memory {
      #expect(values["memory." + metric.name] == metric.value, "\(metric.name)")
    }
    #expect(memory.count == metrics.count { $0.name.hasPrefix("memory.") })
    for metric in metrics {
      let isGauge = ["count", "cost", "Only", "Bytes", "Tags"].contains {
        metric.name.hasSuffix($0) && !metric.name.contains("evictions")
      }
      #expect(metric.isCounter == !isGauge, "\(metric.name)")
    }
    _ = try cache.value(forKey: "d")
    #expect(try cache.statistics().hitCount == 3)
    let empty: DiskCache<Int, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("b"))
    #expect(try empty.statistics().hitRatio == nil)
  }
}
