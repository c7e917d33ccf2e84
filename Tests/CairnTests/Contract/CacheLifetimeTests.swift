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
    var configuration = MemoryCacheConfiguration.unlimited
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

  @Test("The defaults of entries can be changed while the cache is open")
  func changedDefaults() throws {
    func check<Cache: Caching<String, Int>>(
      _ cache: Cache, _ set: (_ lifetime: Duration?, _ idleLimit: Duration?) -> Void
    ) throws {
      func times(_ key: String) throws -> [Duration?] {
        let info = try #require(try cache.info(forKey: key))
        let life = info.expires.map {
          Duration.milliseconds($0.millisecondsSinceEpoch - info.written.millisecondsSinceEpoch)
        }
        return [life, info.idleLimit]
      }
      try cache.setValue(1, forKey: "before", options: .standard)
      set(.seconds(10), .seconds(5))
      try cache.setValue(1, forKey: "set", options: .standard)
      try cache.setValues([(key: "of many", value: 1)])
      _ = try cache.compareAndSet(1, forKey: "compared", expecting: nil, options: .standard)
      try cache.update(forKey: "updated", options: .standard) { _ in 1 }
      try cache.setValue(
        1, forKey: "own", options: EntryOptions(lifetime: .unlimited, idleLimit: .seconds(50)))
      try cache.update(forKey: "before", options: .standard) { $0 }
      set(nil, nil)
      try cache.setValue(1, forKey: "without", options: .standard)
      for key in ["set", "of many", "compared", "updated"] {
        #expect(try times(key) == [.seconds(10), .seconds(5)])
      }
      #expect(try times("own") == [nil, .seconds(50)])
      #expect(try times("without") == [nil, nil])
      scene.clock.advance(by: .seconds(6))
      #expect(try cache.value(forKey: "set") == nil && cache.value(forKey: "own") == 1)
      #expect(try cache.value(forKey: "without") == 1)
    }
    let memory: MemoryCache<String, Int> = MemoryScene().cache {
      $0.clock = scene.clock
      $0.lifetime = .seconds(100)
    }
    #expect(memory.lifetime == .seconds(100) && memory.idleLimit == nil)
    try check(memory) { (memory.lifetime, memory.idleLimit) = ($0, $1) }
    #expect(memory.lifetime == nil && memory.audit() == [])
    let disk: DiskCache<String, Int> = try scene.disk.cache(at: scene.disk("disk")) {
      $0.lifetime = .seconds(100)
    }
    #expect(disk.lifetime == .seconds(100) && disk.idleLimit == nil)
    try check(disk) { (disk.lifetime, disk.idleLimit) = ($0, $1) }
    let both = try tiered()
    try check(both) { (both.lifetime, both.idleLimit) = ($0, $1) }
    #expect(try both.lifetime == nil && both.tier.contains("without") && both.audit() == [])
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

  @Test("If the defaults change during a write, memory has no other end than the disk")
  func changedMeanwhile() throws {
    let change = Lock<(@Sendable () -> Void)?>(nil)
    let coder = ValueCoder<Int>.custom(
      encode: { value in
        change.withLock { $0.take() }?()
        return [UInt8(value)]
      }, decode: { Int([UInt8](copying: $0)[0]) })
    let cache: DiskCache<String, Int> = try scene.cache(keys: .string, values: coder)
    for step in 0..<2 {
      // The disk's part of a write is made after its bytes, and memory's part after that.
      change.withLock {
        $0 = { [unowned cache] in
          if step == 0 { cache.lifetime = .seconds(10) } else { cache.idleLimit = .seconds(5) }
        }
      }
      try cache.setValue(1, forKey: "\(step)")
      #expect(try cache.audit() == [])
    }
    try cache.setValue(2, forKey: "2")
    #expect(try cache.tier.contains("2") && cache.audit() == [])
    #expect(try cache.value(forKey: "1") == 1)
    scene.advance(by: .seconds(5))
    #expect(try cache.value(forKey: "1") == nil && cache.value(forKey: "0") == 1)
    scene.advance(by: .seconds(5))
    #expect(try cache.value(forKey: "0") == nil)
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
