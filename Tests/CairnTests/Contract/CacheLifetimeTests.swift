import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Lifetimes in caches")
struct CacheLifetimeTests {
  let scene = TieredScene()

  /// Lifetimes with the ends that they lead to for what is written at the start of the clock, where the
  /// configuration says 100 s.
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
    var configuration = MemoryCacheConfiguration.unlimited
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

  @Test("In both tiers, when it is written and when it comes back from disk", arguments: ends)
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
        #expect(try #require(try cache.storedInfo(forKey: key)).expires == end)
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

  @Test("An end that has come leaves nothing in either tier")
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
