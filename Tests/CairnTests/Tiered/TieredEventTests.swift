import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What is told of both tiers, and counted")
struct TieredEventTests {
  let scene = TieredScene()

  @Test("Events of both tiers come in one stream, with the tier")
  func events() throws {
    let cache: TieredCache<String, Int> = try scene.cache(held: 1, count: 2)
    let told = Record<TierEvent<String>>()
    let observation = cache.observe { told.add($0) }
    func expect(_ events: [TierEvent<String>], _ line: SourceLocation = #_sourceLocation) {
      #expect(told.all == events, sourceLocation: line)
      told.removeAll()
    }
    func memory(_ event: CacheEvent<String>) -> TierEvent<String> { TierEvent(event, in: .memory) }
    func disk(_ event: CacheEvent<String>) -> TierEvent<String> { TierEvent(event, in: .disk) }
    try cache.setValue(1, forKey: "a")
    expect([disk(.inserted(key: "a")), memory(.inserted(key: "a"))])
    try cache.setValue(2, forKey: "a")
    expect([
      memory(.removed(key: "a", cause: .replaced)), disk(.removed(key: "a", cause: .replaced)),
      disk(.inserted(key: "a")), memory(.inserted(key: "a")),
    ])
    try cache.setValue(1, forKey: "b")
    expect([
      disk(.inserted(key: "b")), memory(.inserted(key: "b")),
      memory(.removed(key: "a", cause: .evicted(.countLimit))),
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
    observation.cancel()
    try cache.setValue(1, forKey: "a")
    expect([])
    #expect(cache.held.observerCount == 0 && cache.disk.observerCount == 0)
  }

  @Test("What the disk evicts is told of both tiers, with its cause")
  func evictions() throws {
    let cache: TieredCache<Int, Int> = try scene.cache(count: 2)
    let told = Record<TierEvent<Int>>()
    cache.observe { event in
      if case .removed = event.event { told.add(event) }
    }
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    let event = CacheEvent.removed(key: 0, cause: .evicted(.countLimit))
    #expect(told.all == [TierEvent(event, in: .memory), TierEvent(event, in: .disk)])
  }

  @Test("A close tells that memory is emptied, once, and where there was something")
  func closing() throws {
    let cache: TieredCache<Int, Int> = try scene.cache()
    try cache.setValue(1, forKey: 1)
    let told = Record<TierEvent<Int>>()
    cache.observe { told.add($0) }
    try cache.close()
    try cache.close()
    #expect(told.all == [TierEvent(.removedAll(count: 1), in: .memory)])
  }

  @Test("A stream of events ends with the cache")
  func stream() async throws {
    var cache: TieredCache<Int, Int>? = try scene.cache()
    let stream = try #require(cache?.events())
    try cache?.setValue(1, forKey: 1)
    // Background jobs hold the store.
    try cache?.close()
    scene.disk.background.discardAll()
    cache = nil
    var tiers: [CacheTier] = []
    for await event in stream { if case .inserted = event.event { tiers.append(event.tier) } }
    #expect(tiers == [.disk, .memory])
  }

  @Test(
    "A close ends the streams of both tiers, and of those that are made later",
    .timeLimit(.minutes(10)))
  func streamsEndWithClose() async throws {
    let cache: TieredCache<Int, Int> = try scene.cache()
    let (stream, ofDisk) = (cache.events(), cache.disk.events())
    let told = Task {
      var events: [TierEvent<Int>] = []
      for await event in stream { events.append(event) }
      return events
    }
    let toldByDisk = Task {
      var events: [CacheEvent<Int>] = []
      for await event in ofDisk { events.append(event) }
      return events
    }
    try cache.setValue(1, forKey: 1)
    try cache.close()
    // Held, so that it is not the end of the cache that ends them.
    let events = await told.value
    #expect(events.contains(TierEvent(.inserted(key: 1), in: .disk)))
    #expect(events.contains(TierEvent(.inserted(key: 1), in: .memory)))
    #expect(await toldByDisk.value == [.inserted(key: 1)])
    for await event in cache.events() { Issue.record("\(event)") }
    for await event in cache.disk.events() { Issue.record("\(event)") }
    #expect(cache.disk.observerCount == 0)
    withExtendedLifetime(cache) {}
  }

  @Test("With the front goes what memory holds, and streams end, though its tier on disk is kept")
  func frontGone() async throws {
    var cache: TieredCache<Int, Int>? = try scene.cache()
    let disk = try #require(cache?.disk)
    let held = try #require(cache?.held)
    let stream = try #require(cache?.events())
    for key in 0..<3 { try cache?.setValue(key, forKey: key) }
    _ = try cache?.value(forKey: 0)
    cache = nil
    #expect(held.heldCount == 0)
    try #require(held.observerCount == 0 && disk.observerCount == 0)
    var last: TierEvent<Int>?
    for await event in stream { last = event }
    #expect(last == TierEvent(.removedAll(count: 3), in: .memory))
    // What was read is told before, and the disk has everything.
    #expect(try disk.store.keysByRecency().last == disk.bytes(of: 0))
    #expect(try disk.value(forKey: 2) == 2)
  }

  @Test("The memory tier tells of itself, with values")
  func memory() throws {
    let cache: TieredCache<String, Int> = try scene.cache()
    let told = Record<Int?>()
    cache.memory.observe { event, value in told.add(value) }
    try cache.setValue(5, forKey: "a")
    cache.memory.removeAll()
    #expect(told.all == [5, nil])
  }

  @Test("Statistics count by tier, and are pairs of names and numbers for who polls")
  func statistics() async throws {
    let cache: TieredCache<String, Int> = try scene.cache(held: 1)
    try cache.setValue(1, forKey: "a")
    try cache.setValue(2, forKey: "b")
    _ = try cache.values(forKeys: ["a", "b", "c"])
    _ = try await cache.value(forKey: "d") { 4 }
    _ = try? await cache.value(forKey: "e") { throw LoadFailure() }
    let statistics = try cache.statistics()
    let metrics = statistics.metrics
    #expect(Set(metrics.map(\.name)).count == metrics.count)
    let values = Dictionary(uniqueKeysWithValues: metrics.map { ($0.name, $0.value) })
    #expect(values["hits"] == 2 && values["misses"] == 3)
    #expect(values["disk.hits"] == 2 && values["memory.hits"] == 0)
    #expect(values["loads.started"] == 2 && values["loads.failed"] == 1)
    #expect(values["memory.count"] == 1 && values["disk.count"] == 3)
    #expect(values["memory.evictions.count"] == 4)
    #expect(values["disk.insertions"] == 3)
    #expect(try values["disk.liveBytes"] == UInt64(cache.totalCost()))
    // Each part by itself has the same, without its prefix.
    for (prefix, part) in [
      ("memory.", statistics.memory.metrics), ("disk.", statistics.disk.metrics),
      ("loads.", statistics.loads.metrics),
    ] {
      for (name, value) in part { #expect(values[prefix + name] == value, "\(prefix)\(name)") }
      #expect(part.count == metrics.count { $0.name.hasPrefix(prefix) })
    }
    let empty: TieredCache<Int, Int> = try scene.cache(
      keys: .standard, values: .standard, path: scene.disk("b"))
    #expect(try empty.statistics().hitRatio == nil)
  }
}
