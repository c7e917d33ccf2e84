import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Lifetimes in caches")
struct CacheLifetimeTests {
  let scene = TieredScene()

  /// Lifetimes, and when an entry that is written at the start of the clock ends if 100 s are
  /// configured.
  static let ends: [(Lifetime, Timestamp?)] = [
    (.standard, ManualClock.start.advanced(by: .seconds(100))),
    (.unlimited, nil),
    (.seconds(7), ManualClock.start.advanced(by: .seconds(7))),
    (
      .until(ManualClock.start.advanced(by: .seconds(9))),
      ManualClock.start.advanced(by: .seconds(9))
    ),
  ]

  @Test("In memory", arguments: ends)
  func memory(lifetime: Lifetime, end: Timestamp?) async throws {
    var configuration = MemoryConfiguration()
    configuration.respondsToMemoryPressure = false
    configuration.lifetime = .seconds(100)
    configuration.clock = scene.clock
    let cache = MemoryCache<String, Int>(configuration: configuration)
    cache.setValue(1, forKey: "set", lifetime: lifetime)
    cache.setValues([(key: "of many", value: 1)], options: .lifetime(lifetime))
    _ = try await cache.value(forKey: "loaded", lifetime: lifetime) { 1 }
    _ = try await cache.value(forKey: "loaded entry") { Loaded(1, options: .lifetime(lifetime)) }
    for key in cache.keys() { #expect(try #require(cache.info(forKey: key)).expires == end) }
    #expect(cache.count() == 4)
  }

  @Test("On disk", arguments: ends)
  func disk(lifetime: Lifetime, end: Timestamp?) async throws {
    let cache: DiskCache<String, Int> = try scene.cache {
      $0.memory = nil
      $0.store.lifetime = .seconds(100)
    }
    try await cache.setValue(1, forKey: "set", lifetime: lifetime)
    _ = try await cache.compareAndSet(
      1, forKey: "compared", expecting: nil, options: .lifetime(lifetime))
    try await cache.setValues([(key: "of many", value: 1)], options: .lifetime(lifetime))
    try await cache.write { try $0.setValue(1, forKey: "in a batch", options: .lifetime(lifetime)) }
    _ = try await cache.value(forKey: "loaded", lifetime: lifetime) { 1 }
    for key in try cache.keys() {
      #expect(try #require(try cache.info(forKey: key)).expires == end)
    }
    #expect(try cache.count() == 5)
  }

  @Test("The configured lifetime may be any, and `.standard` then means none", arguments: ends)
  func configured(lifetime: Lifetime, end: Timestamp?) throws {
    let end = lifetime == .standard ? nil : end
    var configuration = MemoryConfiguration()
    configuration.respondsToMemoryPressure = false
    (configuration.lifetime, configuration.clock) = (lifetime, scene.clock)
    let memory = MemoryCache<String, Int>(configuration: configuration)
    memory.setValue(1, forKey: "a")
    #expect(try #require(memory.info(forKey: "a")).expires == end)
    let disk: DiskCache<String, Int> = try scene.cache { $0.lifetime = lifetime }
    try disk.setValue(1, forKey: "a")
    #expect(try #require(try disk.info(forKey: "a")).expires == end)
    #expect(try #require(try disk.tier.info(forKey: "a")).expires == end)
  }

  @Test(
    "A value has its end in both tiers, both when written and when read back from disk",
    arguments: ends)
  func bothTiers(lifetime: Lifetime, end: Timestamp?) async throws {
    let cache = try tiered()
    try await cache.setValue(1, forKey: "set", lifetime: lifetime)
    _ = try await cache.compareAndSet(
      1, forKey: "compared", expecting: nil, options: .lifetime(lifetime))
    try await cache.setValues([(key: "of many", value: 1)], options: .lifetime(lifetime))
    _ = try await cache.value(forKey: "loaded", lifetime: lifetime) { 1 }
    for isPromoted in [false, true] {
      if isPromoted { cache.tier.removeAll() }
      for key in try cache.keys() {
        #expect(try cache.value(forKey: key) == 1)
        #expect(try #require(try cache.tier.info(forKey: key)).expires == end)
        #expect(try #require(try cache.info(forKey: key)).expires == end)
      }
      #expect(cache.tier.count() == 4)
      #expect(try cache.audit() == [])
      scene.advance(by: .seconds(5))
    }
    if let end {
      scene.advance(
        by: .milliseconds(
          end.millisecondsSinceEpoch - scene.clock.now().millisecondsSinceEpoch))
      #expect(try cache.value(forKey: "set") == nil)
    } else {
      scene.advance(by: .seconds(1 << 30))
      #expect(try cache.value(forKey: "set") == 1)
    }
  }

  @Test("The first read of a value in memory takes its end from the disk")
  func endFromDisk() throws {
    let cache = try tiered()
    let version = try cache.setStored(1, forKey: "a", options: .lifetime(.seconds(10)))
    cache.take(
      TierStep(version: version, byteCount: 1), of: 1, forKey: try cache.tierKey("a"),
      .lifetime(.seconds(100)))
    #expect(try cache.value(forKey: "a") == 1)
    #expect(try cache.tier.info(forKey: "a")?.expires == cache.info(forKey: "a")?.expires)
    scene.advance(by: .seconds(10))
    #expect(cache.tier.count() == 0)
    #expect(try cache.value(forKey: "a") == nil)
  }

  @Test("If the end has passed, the entry is in neither tier")
  func pastEnd() throws {
    let cache = try tiered()
    try cache.setValue(1, forKey: "a")
    try cache.setValue(2, forKey: "a", lifetime: .until(ManualClock.start))
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try !cache.tier.contains("a"))
    let memory: MemoryCache<String, Int> = MemoryScene().cache()
    memory.setValue(1, forKey: "a")
    memory.setValue(2, forKey: "a", lifetime: .until(ManualClock.start))
    #expect(memory.value(forKey: "a") == nil)
  }

  private func tiered() throws -> DiskCache<String, Int> {
    try scene.cache { $0.store.lifetime = .seconds(100) }
  }
}
