import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What is read from memory counts as used on disk", .timeLimit(.minutes(30)))
struct TieredRecencyTests {
  let scene = TieredScene()

  @Test(
    "A hit in memory is an access on disk, at once and in order, whatever the policy",
    arguments: [EvictionPolicy.leastRecentlyUsed, .sieve, .s3FIFO], [false, true])
  func hits(policy: EvictionPolicy, isShared: Bool) throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.memory?.policy = policy }
    for key in 0..<5 { try cache.setValue(key, forKey: key) }
    for key in [3, 0, 3, 1, 0] {
      if isShared { cache.tier.held.shareHits() }
      scene.clock.advance(by: .milliseconds(1))
      _ = try cache.value(forKey: key)
    }
    #expect(try cache.keysByRecency() == [2, 4, 3, 1, 0])
    let statistics = try cache.statistics()
    #expect(statistics.hitCount == 5 && statistics["memory.hits"] == 5)
    if isShared { #expect(cache.tier.held.sharedHitCount == 5) }
    // Nothing runs in the background.
    #expect(scene.background.delays.isEmpty)
  }

  @Test("A call that is no access leaves the order on disk")
  func peeks() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    for _ in 0..<2 {
      #expect(try cache.peekValue(forKey: 0) == 0 && cache.tier.value(forKey: 0) == 0)
      #expect(try cache.contains(0) && cache.tier.info(forKey: 0) != nil)
    }
    #expect(try cache.keysByRecency() == [0, 1, 2])
  }

  @Test("The victims of a trim are exact")
  func beforeTrim() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<600 { try cache.setValue(key, forKey: key) }
    for key in stride(from: 0, to: 600, by: 2) { _ = try cache.value(forKey: key) }
    try cache.trim(.toCount(300))
    #expect(try Set(cache.keys()) == Set(stride(from: 0, to: 600, by: 2)))
    _ = try cache.value(forKey: 4)
    _ = try cache.value(forKey: 2)
    try cache.trim(.toBytes(try cache.totalCost() / 300 * 2))
    #expect(try Set(cache.keys()) == [2, 4])
  }

  @Test("A hit prolongs the life of an entry with an idle limit in both tiers")
  func idle() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    try cache.setValue(0, forKey: 0, options: .idleLimit(.seconds(9)))
    for _ in 0..<5 {
      scene.clock.advance(by: .seconds(8))
      #expect(try cache.value(forKey: 0) == 0)
    }
    #expect(try cache.statistics()["memory.hits"] == 5)
    #expect(try cache.containsStored(0))
    scene.clock.advance(by: .seconds(10))
    #expect(try cache.value(forKey: 0) == nil && !cache.containsStored(0))
  }

  @Test("The order of hits survives a close, and the release of the last reference")
  func beforeClose() throws {
    func cache() throws -> DiskCache<Int, Int> {
      // Even after few writes a checkpoint is made, which keeps the order.
      try scene.cache { $0.store.checkpointRecordThreshold = 0 }
    }
    do {
      let cache = try cache()
      for key in 0..<4 { try cache.setValue(key, forKey: key) }
      _ = try cache.value(forKey: 1)
      cache.tier.removeAll()
      #expect(try cache.keysByRecency() == [0, 2, 3, 1])
      _ = try cache.values(forKeys: 0..<4)
      _ = try cache.value(forKey: 2)
      try cache.close()
    }
    do {
      let cache = try cache()
      #expect(try cache.keysByRecency() == [0, 1, 3, 2])
      try cache.setValue(4, forKey: 4)
      for key in [0, 0, 3, 0] { _ = try cache.value(forKey: key) }
    }
    #expect(try cache().keysByRecency() == [1, 2, 4, 3, 0])
  }
}
