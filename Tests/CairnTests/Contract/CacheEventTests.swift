import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Events of caches")
struct CacheEventTests {
  let scene = TieredScene()

  /// A cache, or a tier of one, whose events are checked.
  enum Kind: CaseIterable { case memory, disk, memoryTier, diskTier }

  /// A cache of one kind, with the calls that the tests make.
  struct Subject: Sendable {
    var set: @Sendable (String, Lifetime, Duration?) throws -> Void
    var setMany: @Sendable (String, Lifetime) throws -> Void
    var setAbsent: @Sendable (String, Lifetime) throws -> Void
    var update: @Sendable (String, Lifetime) throws -> Void
    var load: @Sendable (String, Lifetime) async throws -> Void
    var take: @Sendable (String) throws -> Int?
    var removeExpired: @Sendable () throws -> Void
    var removeAll: @Sendable () throws -> Void
    let events = Record<CacheEvent<String>>()

    /// The reports while `body` runs, and while expired entries are removed afterwards.
    func told(_ body: (Subject) async throws -> Void) async throws -> [CacheEvent<String>] {
      events.removeAll()
      try await body(self)
      try removeExpired()
      return events.all
    }
  }

  private func subject(_ kind: Kind) throws -> Subject {
    switch kind {
    case .memory:
      let cache: MemoryCache<String, Int> = MemoryScene().cache { $0.clock = scene.clock }
      let subject = Subject(
        set: { cache.setValue(1, forKey: $0, options: EntryOptions(lifetime: $1, idleLimit: $2)) },
        setMany: { cache.setValues([(key: $0, value: 1)], options: .lifetime($1)) },
        setAbsent: {
          _ = cache.compareAndSet(1, forKey: $0, expecting: nil, options: .lifetime($1))
        },
        update: { cache.update(forKey: $0, options: .lifetime($1)) { _ in 2 } },
        load: { _ = try await cache.value(forKey: $0, lifetime: $1) { 3 } },
        take: { cache.takeValue(forKey: $0) },
        removeExpired: { cache.trim(.expired) }, removeAll: { cache.removeAll() })
      cache.observe { [events = subject.events] event, _ in events.add(event) }
      return subject
    case .disk:
      let cache: DiskCache<String, Int> = try scene.disk.cache()
      let subject = Subject(
        set: {
          try cache.setValue(1, forKey: $0, options: EntryOptions(lifetime: $1, idleLimit: $2))
        },
        setMany: { try cache.setValues([(key: $0, value: 1)], options: .lifetime($1)) },
        setAbsent: {
          _ = try cache.compareAndSet(1, forKey: $0, expecting: nil, options: .lifetime($1))
        },
        update: { try cache.update(forKey: $0, options: .lifetime($1)) { _ in 2 } },
        load: { _ = try await cache.value(forKey: $0, lifetime: $1) { 3 } },
        take: { try cache.takeValue(forKey: $0) },
        removeExpired: { try cache.trim(.expired) }, removeAll: { try cache.removeAll() })
      cache.observe { [events = subject.events] in events.add($0) }
      return subject
    case .memoryTier, .diskTier:
      let cache: DiskCache<String, Int> = try scene.cache()
      let tier: TierEvent<String>.Tier = kind == .memoryTier ? .memory : .disk
      let subject = Subject(
        set: {
          try cache.setValue(1, forKey: $0, options: EntryOptions(lifetime: $1, idleLimit: $2))
        },
        setMany: { try cache.setValues([(key: $0, value: 1)], options: .lifetime($1)) },
        setAbsent: {
          _ = try cache.compareAndSet(1, forKey: $0, expecting: nil, options: .lifetime($1))
        },
        update: { try cache.update(forKey: $0, options: .lifetime($1)) { _ in 2 } },
        load: { _ = try await cache.value(forKey: $0, lifetime: $1) { 3 } },
        take: { try cache.takeValue(forKey: $0) },
        removeExpired: { try cache.trim(.expired) }, removeAll: { try cache.removeAll() })
      cache.observeTiers { [events = subject.events] event in
        if event.tier == tier { events.add(event.event) }
      }
      return subject
    }
  }

  @Test(
    "Every cache and tier reports the same for the same calls: the insertion and then the removal",
    arguments: Kind.allCases)
  func sameEvents(kind: Kind) async throws {
    let cache = try subject(kind)
    func inserted(_ key: String) -> CacheEvent<String> { .inserted(key: key) }
    func removed(_ key: String, _ cause: RemovalCause) -> CacheEvent<String> {
      .removed(key: key, cause: cause)
    }
    let past = Lifetime.until(scene.clock.now().advanced(by: .seconds(-1)))
    let short = Lifetime.seconds(10)
    let passing = [inserted("b"), removed("b", .expired)]

    #expect(try await cache.told { try $0.set("a", .standard, nil) } == [inserted("a")])
    #expect(
      try await cache.told { try $0.set("a", .standard, nil) } == [
        removed("a", .replaced), inserted("a"),
      ])
    // Values that no read finds are still inserted and removed, and so are the values they replace.
    #expect(
      try await cache.told { try $0.set("a", .after(.zero), nil) } == [
        removed("a", .replaced), inserted("a"), removed("a", .expired),
      ])
    #expect(try await cache.told { try $0.set("b", .after(.zero), nil) } == passing)
    #expect(try await cache.told { try $0.set("b", .after(.seconds(-5)), nil) } == passing)
    #expect(try await cache.told { try $0.set("b", past, nil) } == passing)
    #expect(try await cache.told { try $0.set("b", .standard, .zero) } == passing)
    #expect(try await cache.told { try $0.setMany("b", past) } == passing)
    #expect(try await cache.told { try $0.setAbsent("b", past) } == passing)
    #expect(try await cache.told { try $0.update("b", past) } == passing)
    #expect(try await cache.told { try await $0.load("b", past) } == passing)

    #expect(try await cache.told { try $0.set("a", short, nil) } == [inserted("a")])
    scene.clock.advance(by: .seconds(10))
    #expect(
      try await cache.told { try $0.set("a", short, nil) } == [
        removed("a", .expired), inserted("a"),
      ])
    #expect(try await cache.told { _ = try $0.take("a") } == [removed("a", .removed)])
    #expect(try await cache.told { try await $0.load("c", .standard) } == [inserted("c")])
    #expect(try await cache.told { try $0.removeAll() } == [.removedAll(count: 1)])
  }

  @Test(
    "A value that does not fit in memory is inserted and removed there, alone and as a tier",
    arguments: [0, 1])
  func tooLarge(tier: Int) async throws {
    let events = Record<CacheEvent<String>>()
    let set: (String, Int) throws -> Void
    let load: (String) async throws -> Void
    if tier == 0 {
      let cache: MemoryCache<String, Int> = MemoryScene().cache(cost: 10)
      cache.observe { event, _ in events.add(event) }
      set = { cache.setValue(1, forKey: $0, options: .cost($1)) }
      load = { _ = try await cache.value(forKey: $0, options: .cost(11)) { 1 } }
    } else {
      let cache: DiskCache<String, Int> = try scene.cache(cost: 10)
      cache.tier.observe { event, _ in events.add(event) }
      set = { try cache.setValue(1, forKey: $0, options: .cost($1)) }
      load = { _ = try await cache.value(forKey: $0, options: .cost(11)) { 1 } }
    }
    func evicted(_ key: String) -> [CacheEvent<String>] {
      [.inserted(key: key), .removed(key: key, cause: .evicted(.costLimit))]
    }
    try set("a", 11)
    #expect(events.all == evicted("a"))
    events.removeAll()
    try set("a", 4)
    try set("a", 11)
    #expect(
      events.all == [.inserted(key: "a"), .removed(key: "a", cause: .replaced)] + evicted("a"))
    events.removeAll()
    try await load("b")
    #expect(events.all == evicted("b"))
  }

  @Test("With a limit of zero, a value is inserted and removed in memory, and stays on disk")
  func nothingKept() throws {
    let told: [CacheEvent<Int>] = [
      .inserted(key: 1), .removed(key: 1, cause: .evicted(.countLimit)),
    ]
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 0)
    let events = Record<CacheEvent<Int>>()
    cache.observe { event, _ in events.add(event) }
    cache[1] = 1
    #expect(events.all == told)
    let tiered: DiskCache<Int, Int> = try scene.cache(held: 0)
    let ofTiers = Record<TierEvent<Int>>()
    tiered.observeTiers { ofTiers.add($0) }
    try tiered.setValue(1, forKey: 1)
    #expect(
      ofTiers.all == told.map { TierEvent($0, in: .memory) }
        + [TierEvent(.inserted(key: 1), in: .disk)])
    // A read inserts the value again, and again it does not stay.
    ofTiers.removeAll()
    #expect(try tiered.value(forKey: 1) == 1)
    #expect(ofTiers.all == told.map { TierEvent($0, in: .memory) })
  }
}
