import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What is read from memory is not evicted from disk", .timeLimit(.minutes(30)))
struct TieredEvictionTests {
  let scene = TieredScene()

  @Test("Reads are reported to the disk before entries are evicted for a limit")
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
    "Used entries stay among many, even without a report before each eviction",
    arguments: [KeyCoder<Int>.integer, .json(), .json().comparingByEquality()])
  func manyEvictions(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(
      keys: coder, values: .standard, count: 2000)
    for key in 0..<2000 { try cache.setValue(key, forKey: key) }
    for next in 2000..<9000 {
      if next % 50 == 0 { for hot in 0..<20 { _ = try cache.value(forKey: hot) } }
      // With a custom coder that compares by equality, the disk does not query memory.
      if coder.identity == .equality && next % 50 == 0 { cache.recency?.tell() }
      try cache.setValue(next, forKey: next)
    }
    #expect(try cache.values(forKeys: 0..<20) == Array(0..<20))
    #expect(try cache.count() <= 2000)
  }

  @Test(
    "If everything was read but not reported, an old entry is evicted, not the newest write",
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
      // A write reports up to 256 reads. Otherwise it spares up to 256 entries, but less than half.
      let sparedCount = limit <= 256 ? 0 : min(256, (limit - 1) / 2)
      if round == 0 {
        #expect(left.isSuperset(of: 0..<sparedCount) && !left.contains(sparedCount))
      }
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

  @Test("A write at the limit reports up to 256 reads, and leaves more to the background")
  func many() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(count: 6000)
    var next = 0
    func write(_ count: Int) throws {
      for key in next..<(next + count) { try cache.setValue(key, forKey: key) }
      next += count
    }
    try write(6000)
    cache.recency?.tell()
    for key in 5000..<5092 { _ = try cache.value(forKey: key) }
    // Fewer reads than a sixty-fourth of the entries. The write evicts a hundredth of the entries.
    try write(1)
    #expect(cache.tier.held.untoldReadCount == 92)
    try write(61)
    #expect(cache.tier.held.untoldReadCount == 0)
    for key in 5000..<5300 { _ = try cache.value(forKey: key) }
    try write(300)
    #expect(cache.tier.held.untoldReadCount == 300)
    #expect(scene.background.delays == [.seconds(1)])
    // A sixteenth of the entries have been evicted since the last report.
    try write(127)
    #expect(scene.background.delays == [.seconds(1), .zero])
    scene.background.runAll(dueAfter: .zero)
    #expect(cache.tier.held.untoldReadCount == 0)
    // The later writes stay later.
    #expect(try cache.keysByRecency().suffix(727) == Array(5000..<5300) + Array(6062..<6489))
  }

  @Test(
    "Until the report, an eviction spares 256 entries in use, and afterwards all of them",
    arguments: [KeyCoder<Int>.integer, .json()])
  func spared(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(keys: coder, values: .standard, count: 6000)
    for key in 0..<6000 { try cache.setValue(key, forKey: key) }
    for key in 0..<1000 { _ = try cache.value(forKey: key) }
    try cache.setValue(6000, forKey: 6000)
    let evicted = Set(0...6000).subtracting(try cache.keys())
    #expect(evicted == Set(256..<(256 + evicted.count)) && (1...61).contains(evicted.count))
    scene.background.runAll(dueAfter: .zero)
    for key in 6001..<9000 { try cache.setValue(key, forKey: key) }
    #expect(try Set(cache.keys()).isSuperset(of: Set(0..<1000).subtracting(evicted)))
  }

  @Test("A write that may evict many entries reports all reads, and stays")
  func largeWrites() throws {
    let batches: DiskCache<Int, Int> = try scene.cache(count: 1000)
    for key in 0..<1000 { try batches.setValue(key, forKey: key) }
    for key in 0..<500 { _ = try batches.value(forKey: key) }
    try batches.setValues((1000..<1400).map { ($0, $0) })
    #expect(try Set(batches.keys()).isSuperset(of: Array(0..<500) + Array(1000..<1400)))

    // Even if the reads are so few that other writes would not report them.
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

  @Test("A write reports all reads of keys for which the disk cannot query memory")
  func manyUnasked() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(
      keys: .json().comparingByEquality(), values: .standard, count: 500)
    for key in 0..<500 { try cache.setValue(key, forKey: key) }
    for key in 0..<500 { _ = try cache.value(forKey: key) }
    try cache.setValue(500, forKey: 500)
    #expect(cache.tier.held.untoldReadCount == 0)
  }
}
