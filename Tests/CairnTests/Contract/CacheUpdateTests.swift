import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Updates of values in caches")
struct CacheUpdateTests {
  let scene = TieredScene()

  private struct Refused: Error, Equatable { var number = 0 }

  /// The update of each cache, by one name.
  enum Kind: CaseIterable { case memory, disk, tiered }

  /// A cache of one kind, with the calls that the tests make.
  struct Subject: Sendable {
    var update: @Sendable (String, Lifetime?, (Int?) throws -> Int?) throws -> Int?
    var set: @Sendable (Int, String, Int?, Lifetime) throws -> Void
    var setLifetime: @Sendable (String, Duration) throws -> Void
    var value: @Sendable (String) throws -> Int?
    var info: @Sendable (String) throws -> EntryInfo?
    var remove: @Sendable (String) throws -> Void
    var audit: @Sendable () throws -> [String] = { [] }
  }

  private func subject(_ kind: Kind) throws -> Subject {
    switch kind {
    case .memory:
      let cache: MemoryCache<String, Int> = MemoryScene().cache { $0.clock = scene.clock }
      return Subject(
        update: { key, lifetime, change in
          try cache.update(forKey: key, options: .lifetime(lifetime)) { try change($0) }?.value
        },
        set: { cache.setValue($0, forKey: $1, options: EntryOptions(cost: $2, lifetime: $3)) },
        setLifetime: { cache.setLifetime(.after($1), forKey: $0) },
        value: { cache.value(forKey: $0) }, info: { cache.info(forKey: $0) },
        remove: { cache.removeValue(forKey: $0) },
        audit: { cache.audit() })
    case .disk:
      let cache: DiskCache<String, Int> = try scene.disk.cache()
      return Subject(
        update: { key, lifetime, change in
          try cache.update(forKey: key, options: .lifetime(lifetime)) { try change($0) }?.value
        },
        set: { try cache.setValue($0, forKey: $1, options: EntryOptions(cost: $2, lifetime: $3)) },
        setLifetime: { try cache.setLifetime(.after($1), forKey: $0) },
        value: { try cache.value(forKey: $0) }, info: { try cache.info(forKey: $0) },
        remove: { try cache.removeValue(forKey: $0) })
    case .tiered:
      let cache: DiskCache<String, Int> = try scene.cache()
      return Subject(
        update: { key, lifetime, change in
          try cache.update(forKey: key, options: .lifetime(lifetime)) { try change($0) }?.value
        },
        set: { try cache.setValue($0, forKey: $1, options: EntryOptions(cost: $2, lifetime: $3)) },
        setLifetime: { try cache.setLifetime(.after($1), forKey: $0) },
        value: { try cache.value(forKey: $0) }, info: { try cache.info(forKey: $0) },
        remove: { try cache.removeValue(forKey: $0) },
        audit: { try cache.audit() })
    }
  }

  @Test("The closure receives the current value, and its result is found", arguments: Kind.allCases)
  func updates(kind: Kind) throws {
    let cache = try subject(kind)
    #expect(try cache.update("a", nil) { ($0 ?? 10) + 1 } == 11)
    #expect(try cache.update("a", nil) { ($0 ?? 10) + 1 } == 12)
    #expect(try cache.value("a") == 12)
    #expect(try cache.update("a", nil) { _ in nil } == nil)
    #expect(try cache.value("a") == nil)
    #expect(try cache.update("a", nil) { _ in nil } == nil)
    #expect(try cache.audit() == [])
  }

  @Test("The end and the cost stay, unless others are given", arguments: Kind.allCases)
  func keeps(kind: Kind) throws {
    let cache = try subject(kind)
    try cache.set(1, "a", 7, .seconds(10))
    let end = try #require(try cache.info("a")).expires
    scene.clock.advance(by: .seconds(4))
    #expect(try cache.update("a", nil) { $0.map { $0 + 1 } } == 2)
    #expect(try cache.info("a")?.cost == 7)
    #expect(try cache.info("a")?.expires == end)
    #expect(try cache.audit() == [])
    #expect(try cache.update("a", .seconds(10)) { $0 } == 2)
    scene.clock.advance(by: .seconds(9))
    #expect(try cache.value("a") == 2)
    #expect(try cache.update("a", .unlimited) { $0 } == 2)
    scene.clock.advance(by: .seconds(100))
    #expect(try cache.value("a") == 2)
    #expect(try cache.update("a", .until(ManualClock.start)) { $0 } == 2)
    #expect(try cache.value("a") == nil)
    #expect(try cache.audit() == [])
  }

  @Test("Under a default idle limit, an entry without a limit keeps having none")
  func keepsNoIdleLimit() throws {
    let old: DiskCache<String, Int> = try scene.disk.cache()
    try old.setValue(1, forKey: "a", lifetime: .unlimited)
    try old.close()
    let cache: DiskCache<String, Int> = try scene.disk.cache {
      $0.store.idleLimit = .seconds(10)
    }
    for lifetime in [nil, .standard, .seconds(1000)] as [Lifetime?] {
      #expect(try cache.update(forKey: "a", lifetime: lifetime) { $0 }?.value == 1)
      #expect(try #require(try cache.info(forKey: "a")).idleLimit == nil)
      scene.clock.advance(by: .seconds(60))
      #expect(try cache.value(forKey: "a") == 1)
    }
    #expect(try cache.update(forKey: "b") { _ in 2 }?.value == 2)
    #expect(try #require(try cache.info(forKey: "b")).idleLimit == .seconds(10))
  }

  @Test(
    "A lifetime that is set while the closure runs stays", arguments: Kind.allCases)
  func lifetimeMeanwhile(kind: Kind) throws {
    let cache = try subject(kind)
    try cache.set(1, "a", nil, .seconds(10))
    _ = try cache.update("a", nil) {
      try cache.setLifetime("a", .seconds(100))
      return $0
    }
    scene.clock.advance(by: .seconds(99))
    #expect(try cache.value("a") == 1)
    scene.clock.advance(by: .seconds(1))
    #expect(try cache.value("a") == nil)
  }

  @Test(
    "If another write comes in between, the update starts over with that value",
    arguments: Kind.allCases)
  func repeats(kind: Kind) throws {
    let cache = try subject(kind)
    try cache.set(1, "a", nil, .seconds(10))
    for (step, expected) in [2, nil, nil].enumerated() {
      var seen: [Int?] = []
      let result = try cache.update("a", .seconds(10)) { value in
        seen.append(value)
        if seen.count == 1 {
          switch step {
          case 0: try cache.set(2, "a", nil, .standard)
          case 1: try cache.remove("a")
          default: scene.clock.advance(by: .seconds(10))
          }
        }
        return 5
      }
      #expect(result == 5 && seen.count == 2 && seen[1] == expected)
    }
    // The same holds for a removal.
    var calls = 0
    _ = try cache.update("a", nil) { value in
      calls += 1
      if calls == 1 { try cache.set(6, "a", nil, .standard) }
      return value == 6 ? 6 : nil
    }
    #expect(try calls == 2 && cache.value("a") == 6)
    #expect(try cache.audit() == [])
  }

  @Test("The closure's error is thrown, and nothing changes", arguments: Kind.allCases)
  func throwing(kind: Kind) throws {
    let cache = try subject(kind)
    try cache.set(1, "a", nil, .standard)
    for key in ["a", "b"] {
      #expect(throws: Refused(number: 3)) {
        try cache.update(key, nil) { _ in throw Refused(number: 3) }
      }
    }
    #expect(try cache.value("a") == 1 && cache.value("b") == nil)
  }

  @Test("Threads that count together lose no increment", arguments: Kind.allCases)
  func increments(kind: Kind) throws {
    let cache = try subject(kind)
    let failures = Record<String>()
    onThreads(8) { _ in
      for number in 0..<200 {
        do {
          _ = try cache.update("key \(number % 2)", nil) { ($0 ?? 0) + 1 }
        } catch {
          failures.add("\(error)")
        }
      }
    }
    #expect(failures.all == [])
    #expect(try cache.value("key 0") == 800 && cache.value("key 1") == 800)
    #expect(try cache.audit() == [])
  }

  @Test("In memory, a closure that cannot fail needs no try, and costing follows the value")
  func inMemory() {
    let cache: MemoryCache<String, String> = MemoryScene().cache(cost: 10)
    #expect(cache.update(forKey: "a") { ($0 ?? "") + "ab" }?.value == "ab")
    #expect(cache.update(forKey: "a") { ($0 ?? "") + "cde" }?.value == "abcde")
    #expect(cache.totalCost() == 5)
    cache.setValue("x", forKey: "b", options: .cost(4))
    cache.update(forKey: "b") { $0.map { $0 + "yz" } }
    #expect(cache.info(forKey: "b")?.cost == 4)
    cache.update(forKey: "b", options: .cost(2)) { $0 }
    #expect(cache.info(forKey: "b")?.cost == 2)
    // The new value is not kept, and neither is the old one.
    #expect(cache.update(forKey: "a") { _ in "01234567890" }?.value == "01234567890")
    #expect(cache.value(forKey: "a") == nil)
    #expect(cache.audit() == [])
  }

  @Test("In memory, observers are called as for any write")
  func told() {
    let cache: MemoryCache<String, Int> = MemoryScene().cache()
    let events = Record<CacheEvent<String>>()
    cache.observe { event, _ in events.add(event) }
    cache.update(forKey: "a") { _ in 1 }
    cache.update(forKey: "a") { _ in 2 }
    cache.update(forKey: "a") { _ in nil }
    #expect(
      events.all == [
        .inserted(key: "a"), .removed(key: "a", cause: .replaced), .inserted(key: "a"),
        .removed(key: "a", cause: .removed),
      ])
  }

  @Test(
    "On disk, metadata stays unless other metadata is given; a value without a cost has none")
  func metadata() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    try cache.setValue("v", forKey: "a", options: .metadata([1, 2]))
    try cache.update(forKey: "a") { ($0 ?? "") + "w" }
    #expect(try cache.entry(forKey: "a")?.metadata == [1, 2])
    #expect(try cache.tier.info(forKey: "a")?.cost == 2)
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "a") == "vw")
    #expect(try cache.tier.info(forKey: "a")?.cost == 2)
    let updated = try cache.update(forKey: "a", options: EntryOptions(cost: 9, metadata: [3])) {
      $0
    }
    #expect(try cache.entry(forKey: "a")?.metadata == [3])
    #expect(try cache.tier.info(forKey: "a")?.version == updated?.version)
    #expect(try cache.update(forKey: "a", options: .metadata([])) { $0 } != nil)
    #expect(try cache.metadata(forKey: "a") == [])
    #expect(try cache.value(forKey: "a") == "vw")
    #expect(try cache.audit() == [])
  }

  @Test("A value of another type is an error or a miss, according to the policy")
  func otherType() throws {
    let values = ValueCoder<[UInt8]>.bytes
    let old = try scene.disk.cache(keys: .string, values: values)
    try old.setValue([0xFF, 0xFE], forKey: "a")
    try old.close()
    let keeping: DiskCache<String, String> = try scene.disk.cache(
      keys: .string, values: .string
    ) { $0.dropsUnreadableValues = false }
    #expect(throws: StoreError.self) {
      try keeping.update(forKey: "a") { _ in
        Issue.record("called")
        return "b"
      }
    }
    #expect(try keeping.info(forKey: "a")?.version == 1)
    try keeping.close()
    let dropping: DiskCache<String, String> = try scene.disk.cache(
      keys: .string, values: .string
    ) { $0.dropsUnreadableValues = true }
    let updated = try dropping.update(forKey: "a") { $0 ?? "none" }
    #expect(updated?.value == "none")
  }
}
