import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What is read from memory is not evicted from disk", .timeLimit(.minutes(30)))
struct TieredEvictionTests {
  let scene = TieredScene()

  @Test("An entry that is read from memory stays on disk")
  func beforeEviction() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 3)
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    for next in 3..<50 {
      _ = try cache.value(forKey: 0)
      try cache.setValue(next, forKey: next)
      #expect(try cache.tier.contains(0), "\(next)")
    }
    #expect(try Set(cache.keys()) == [0, 48, 49])
  }

  @Test(
    "Used entries stay among many",
    arguments: [KeyCoder<Int>.integer, .json()])
  func manyEvictions(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(
      keys: coder, values: .standard, count: 2000)
    for key in 0..<2000 { try cache.setValue(key, forKey: key) }
    for next in 2000..<9000 {
      if next % 50 == 0 { for hot in 0..<20 { _ = try cache.value(forKey: hot) } }
      try cache.setValue(next, forKey: next)
    }
    #expect(try cache.values(forKeys: 0..<20) == Array(0..<20))
    #expect(try cache.count() <= 2000)
  }

  @Test(
    "If everything was read, the entry that was read first is evicted, not the newest write",
    arguments: [1, 2, 3, 100, 300, 2000, 5000])
  func allRead(limit: Int) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: limit)
    for key in 0..<limit { try cache.setValue(key, forKey: key) }
    for round in 0..<3 {
      let before = try cache.keys().sorted()
      for key in before { _ = try cache.value(forKey: key) }
      let next = limit + round
      try cache.setValue(next, forKey: next)
      let left = try Set(cache.keys())
      #expect(left.contains(next))
      #expect(left.count <= limit && left.count >= limit - limit / 100)
      #expect(left == Set(before.suffix(left.count - 1) + [next]))
    }
  }

  @Test("An expired entry is not spared, even if it was read")
  func overIsNotSpared() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 200)
    for key in 0..<100 { try cache.setValue(key, forKey: key, lifetime: .seconds(10)) }
    for key in 100..<200 { try cache.setValue(key, forKey: key) }
    _ = try cache.value(forKey: 0)
    scene.clock.advance(by: .seconds(11))
    try cache.setValue(200, forKey: 200)
    #expect(try !cache.keys().contains(0))
    #expect(try cache.store.usage().indexedKeyCount <= 200)
  }

  @Test("A write that evicts many entries evicts nothing that was read")
  func largeWrites() throws {
    let batches: DiskCache<Int, Int> = try scene.cache(count: 1000)
    for key in 0..<1000 { try batches.setValue(key, forKey: key) }
    for key in 0..<500 { _ = try batches.value(forKey: key) }
    try batches.setValues((1000..<1400).map { ($0, $0) })
    #expect(try Set(batches.keys()).isSuperset(of: Array(0..<500) + Array(1000..<1400)))

    for key in 1000..<1005 { _ = try batches.value(forKey: key) }
    try batches.setValues((2000..<2990).map { ($0, $0) })
    #expect(try Set(batches.keys()).isSuperset(of: 2000..<2990))

    let scene = TieredScene()
    let values: DiskCache<Int, [UInt8]> = try scene.cache(bytes: 1 << 20)
    for key in 0..<900 { try values.setValue([UInt8](repeating: 1, count: 1000), forKey: key) }
    for key in 0..<900 { _ = try values.value(forKey: key) }
    try values.setValue([UInt8](repeating: 1, count: 600_000), forKey: 900)
    let left = try Set(values.keys())
    #expect(left.contains(900) && left.isSuperset(of: 600..<900) && left.isDisjoint(with: 0..<400))
  }

  private static let coders = [KeyCoder<Int>.integer, .json()]

  @Test(
    "A batch that begins below the limit and ends above evicts nothing that was read",
    arguments: coders)
  func beforeBatch(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(keys: coder, values: .standard, count: 10)
    for key in 0..<8 { try cache.setValue(key, forKey: key) }
    _ = try cache.value(forKey: 0)
    try cache.setValues((8..<12).map { (key: $0, value: $0) })
    #expect(try Set(cache.keys()) == [0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  }

  @Test(
    "A large value that needs the room of others evicts nothing that was read", arguments: coders,
    0..<3)
  func beforeLargeValue(coder: KeyCoder<Int>, way: Int) async throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache(
      keys: coder, values: .standard, bytes: 512 << 10)
    for key in 0..<60 { try await cache.setValue([UInt8](repeating: 1, count: 8000), forKey: key) }
    #expect(try cache.count() == 60)
    for key in [1, 0] { _ = try cache.value(forKey: key) }
    let large = [UInt8](repeating: 2, count: 64 << 10)
    switch way {
    case 0: try await cache.setValue(large, forKey: 60)
    case 1: _ = try await cache.compareAndSet(large, forKey: 60, expecting: nil)
    default: _ = try await cache.value(forKey: 60) { large }
    }
    let keys = try Set(cache.keys())
    #expect(keys.count < 60 && keys.isSuperset(of: [0, 1, 60]) && !keys.contains(2))
  }
}
