import Cairn
import CairnStore
import FuzzSupport
import Testing

/// The promises of the protocols, for any cache.
struct CachingContract<Cache: ContractCache>
where Cache.Key == [UInt8], Cache.Value == [UInt8] {
  enum Promise: CaseIterable {
    case reading, replacing, emptyValues, removing, removingAll, many, batches, counting
    case trimsToCount, trimsToCost, largestFirst, trimsToZero, ages, lifetimes, idleLimits, keys
    case peeks, entries, everything, takes, updates, compares, setLifetimes
    case predicates, events
  }

  let cache: Cache
  let advance: (Duration) -> Void

  func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }
  func value(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number), count: 100) }

  func fill(_ count: Int) throws {
    for number in 0..<count {
      try cache.setValue(value(number), forKey: key(number), options: .standard)
    }
  }

  func left(of count: Int) throws -> [Int] {
    try (0..<count).filter { try cache.contains(key($0)) }
  }

  func check(_ promise: Promise) throws {
    switch promise {
    case .reading:
      #expect(try cache.value(forKey: key(1)) == nil && !cache.contains(key(1)))
      try cache.setValue(value(1), forKey: key(1), options: .standard)
      #expect(try cache.value(forKey: key(1)) == value(1) && cache.contains(key(1)))
      #expect(try cache.value(forKey: key(2)) == nil)
    case .replacing:
      for number in 0..<5 {
        try cache.setValue(value(number), forKey: key(1), options: .standard)
        #expect(try cache.value(forKey: key(1)) == value(number))
      }
      #expect(try cache.count() == 1)
    case .emptyValues:
      try cache.setValue([], forKey: key(1), options: .standard)
      #expect(try cache.value(forKey: key(1)) == [] && cache.contains(key(1)))
      #expect(try cache.count() == 1)
    case .removing:
      try fill(3)
      #expect(try cache.removeValue(forKey: key(1)))
      #expect(try !cache.removeValue(forKey: key(1)))
      #expect(try left(of: 3) == [0, 2])
      try cache.setValue(value(9), forKey: key(1), options: .standard)
      #expect(try cache.value(forKey: key(1)) == value(9))
    case .removingAll:
      try cache.removeAll()
      try fill(20)
      try cache.removeAll()
      #expect(try cache.count() == 0 && cache.totalCost() == 0)
      #expect(try cache.value(forKey: key(3)) == nil)
      try fill(2)
      #expect(try left(of: 20) == [0, 1])
    case .many:
      try fill(3)
      #expect(
        try cache.values(forKeys: [key(2), key(7), key(0), key(2)])
          == [value(2), nil, value(0), value(2)])
      #expect(try cache.removeValues(forKeys: [key(2), key(7), key(2), key(0)]) == 2)
      #expect(try left(of: 3) == [1])
    case .batches:
      try cache.setValues([
        (key: key(1), value: value(1)), (key: key(2), value: value(2)),
        (key: key(1), value: value(3)),
      ])
      #expect(try cache.values(forKeys: [key(1), key(2)]) == [value(3), value(2)])
      #expect(try cache.count() == 2)
    case .counting:
      #expect(try cache.count() == 0 && cache.totalCost() == 0)
      try fill(10)
      #expect(try cache.count() == 10)
      // Each costs the same, whatever the unit.
      let cost = try cache.totalCost()
      #expect(cost >= 1000)
      try cache.removeValues(forKeys: (0..<5).map(key))
      #expect(try cache.count() == 5 && cache.totalCost() == cost / 2)
    case .trimsToCount:
      try fill(10)
      _ = try cache.value(forKey: key(0))
      #expect(try cache.trim(.toCount(20)).count == 0)
      #expect(try cache.trim(.toCount(3)).count == 7)
      #expect(try left(of: 10) == [0, 8, 9])
    case .trimsToCost:
      try fill(10)
      _ = try cache.value(forKey: key(1))
      let cost = try cache.totalCost()
      let summary = try cache.trim(.toBytes(cost / 2))
      #expect(summary == RemovalSummary(count: 5, cost: cost / 2))
      #expect(try left(of: 10) == [1, 6, 7, 8, 9])
    case .largestFirst:
      for number in 0..<6 {
        try cache.setValue(
          [UInt8](repeating: 1, count: number * 1000), forKey: key(number), options: .standard)
      }
      try cache.trim(.toCount(4, order: .largestFirst))
      #expect(try left(of: 6) == [0, 1, 2, 3])
      try cache.trim(.toBytes(2600, order: .largestFirst))
      #expect(try left(of: 6) == [0, 1])
    case .trimsToZero:
      try fill(3)
      #expect(try cache.trim(.toCount(-1)).count == 3)
      try fill(3)
      try cache.setValue([], forKey: key(3), options: .standard)
      #expect(try cache.trim(.toBytes(0)).count == 4)
      try fill(3)
      #expect(try cache.trim(.unused(for: .zero)).count == 3)
      #expect(try cache.count() == 0)
    case .ages:
      try fill(3)
      #expect(try cache.trim(.unused(for: .seconds(3600))).count == 0)
      #expect(try left(of: 3) == [0, 1, 2])
      advance(.seconds(7200))
      _ = try cache.value(forKey: key(1))
      #expect(try cache.trim(.unused(for: .seconds(3600))).count == 2)
      #expect(try left(of: 3) == [1])
      #expect(try cache.trim(.older(than: .seconds(3600))).count == 1)
    case .lifetimes:
      func set(_ number: Int, lifetime: Lifetime) throws {
        try cache.setValue(value(number), forKey: key(number), options: .lifetime(lifetime))
      }
      try set(0, lifetime: .seconds(10))
      try set(1, lifetime: .seconds(0))
      try set(2, lifetime: .seconds(Int64.max))
      try cache.setValue(value(3), forKey: key(3), options: .cost(1))
      #expect(try left(of: 4) == [0, 2, 3] && cache.count() == 3)
      advance(.seconds(10))
      #expect(try cache.value(forKey: key(0)) == nil && cache.count() == 2)
      #expect(try !cache.removeValue(forKey: key(0)))
      try set(0, lifetime: .seconds(10))
      #expect(try left(of: 4) == [0, 2, 3])
      advance(.seconds(10))
      try cache.trim(.expired)
      #expect(try cache.trim(.expired).count == 0)
      #expect(try left(of: 4) == [2, 3])
    case .idleLimits:
      for number in 0..<2 {
        try cache.setValue(
          value(number), forKey: key(number),
          options: EntryOptions(cost: nil, lifetime: .standard, idleLimit: .seconds(100)))
      }
      for _ in 0..<3 {
        advance(.seconds(60))
        #expect(try cache.value(forKey: key(0)) == value(0))
      }
      #expect(try left(of: 2) == [0])
    case .keys:
      // Any bytes can be a key.
      let keys: [[UInt8]] = [[0], [0, 0], [255], Array("../x".utf8), Array(".".utf8)]
      for (number, key) in keys.enumerated() {
        try cache.setValue(value(number), forKey: key, options: .standard)
      }
      #expect(try cache.count() == keys.count)
      for (number, key) in keys.enumerated() {
        #expect(try cache.value(forKey: key) == value(number))
      }
    case .peeks: try checkPeeks()
    case .entries: try checkEntries()
    case .everything: try checkEverything()
    case .takes: try checkTakes()
    case .updates: try checkUpdates()
    case .compares: try checkCompares()
    case .setLifetimes: try checkSetLifetimes()
    case .predicates: try checkPredicates()
    case .events: try checkEvents()
    }
  }
}

@Suite("What every cache promises")
struct CachingTests {
  enum Kind: CaseIterable { case memory, disk, both }
  typealias Promise = CachingContract<MemoryCache<[UInt8], [UInt8]>>.Promise

  /// A promise by its name, because each cache's contract is a separate type.
  private func check<Cache: ContractCache>(
    _ promise: Promise, _ cache: Cache, _ advance: @escaping (Duration) -> Void
  ) throws where Cache.Key == [UInt8], Cache.Value == [UInt8] {
    let index = try #require(Promise.allCases.firstIndex(of: promise))
    try CachingContract(cache: cache, advance: advance).check(
      CachingContract<Cache>.Promise.allCases[index])
  }

  @Test("In memory, on disk and in both", arguments: Kind.allCases, Promise.allCases)
  func promises(kind: Kind, promise: Promise) throws {
    switch kind {
    case .memory:
      let scene = MemoryScene()
      let cache: MemoryCache<[UInt8], [UInt8]> = scene.cache()
      try check(promise, cache, scene.advance)
    case .disk:
      let scene = DiskScene()
      try check(
        promise, try scene.cache(keys: .bytes, values: .bytes), scene.clock.advance)
      withExtendedLifetime(scene) {}
    case .both:
      let scene = TieredScene()
      try check(promise, try scene.cache(keys: .bytes, values: .bytes, held: 5), scene.advance)
    }
  }

  @Test(
    "In generic async code, only reads need the synchronous form", arguments: Kind.allCases
  )
  func tasks(kind: Kind) async throws {
    func use<Cache: Caching<[UInt8], [UInt8]>>(_ cache: Cache) async throws {
      try await cache.setValue([5], forKey: [2], lifetime: .hours(24), options: .standard)
      let version = try await cache.setValue([6], forKey: [3], lifetime: nil, options: .cost(2))
      #expect(try version > 0 && cache.count() == 2)
      #expect(try await cache.removeValue(forKey: [3]))
      #expect(try await !cache.removeValue(forKey: [3]))
      #expect(try cache.contains([2]) && cache.value(forKey: [2]) == [5])
      let loaded = try await cache.value(
        forKey: [4], lifetime: .seconds(60), options: .standard, policy: nil
      ) { [7] }
      #expect(try loaded == [7] && cache.value(forKey: [4]) == [7])
      try await cache.removeAll()
      #expect(try cache.count() == 0)
    }
    switch kind {
    case .memory:
      let cache: MemoryCache<[UInt8], [UInt8]> = MemoryScene().cache()
      try await use(cache)
    case .disk:
      let scene = DiskScene()
      try await use(try scene.cache(keys: .bytes, values: .bytes))
      withExtendedLifetime(scene) {}
    case .both:
      let scene = TieredScene()
      try await use(try scene.cache(keys: .bytes, values: .bytes))
      withExtendedLifetime(scene) {}
    }
  }
}
