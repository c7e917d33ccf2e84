import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("What is read from memory counts as used on disk", .timeLimit(.minutes(30)))
struct TieredRecencyTests {
  let scene = TieredScene()

  @Test("However short the interval, reads are reported to the disk in batches, not one by one")
  func shortIntervals() throws {
    for interval in [Duration.zero, .seconds(-1), .nanoseconds(1)] {
      let scene = TieredScene()
      let cache: DiskCache<Int, Int> = try scene.cache { $0.memory?.recencyInterval = interval }
      try cache.setValue(1, forKey: 1)
      for _ in 0..<3 { _ = try cache.value(forKey: 1) }
      #expect(scene.background.delays == [.milliseconds(1)])
    }
  }

  @Test("A read reports nothing; after a while, all reads are reported in order")
  func batches() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<5 { try cache.setValue(key, forKey: key) }
    scene.advance(by: .seconds(1))
    for key in [3, 0, 3, 1, 0] { _ = try cache.value(forKey: key) }
    #expect(try cache.keysByRecency() == [0, 1, 2, 3, 4])
    // One job, however many hits.
    #expect(scene.background.delays.count == 1)
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [2, 4, 3, 1, 0])
    // Nothing runs without reads, and the next read requests a report again.
    #expect(scene.background.delays.isEmpty)
    _ = try cache.value(forKey: 2)
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [4, 3, 1, 0, 2])
    #expect(try cache.statistics().hitCount == cache.statistics().memory?.hitCount)
  }

  @Test(
    "Reads are reported even with policies that do not keep the order of use in memory",
    arguments: [EvictionPolicy.sieve, .s3FIFO])
  func sieve(policy: EvictionPolicy) throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.memory?.policy = policy }
    for key in 0..<4 { try cache.setValue(key, forKey: key) }
    cache.recency?.tell()
    for key in [2, 0] {
      scene.clock.advance(by: .milliseconds(1))
      _ = try cache.value(forKey: key)
    }
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [1, 3, 2, 0])
    // Hits that the next report covers are shared, and others are not.
    for key in [1, 1, 1, 1, 1, 1, 3] {
      scene.clock.advance(by: .milliseconds(1))
      _ = try cache.value(forKey: key)
    }
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [2, 0, 1, 3])
  }

  @Test("Reads are also reported with LRU when its hits are shared")
  func sharedLRU() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 4)
    func share() { cache.tier.held.shareHits() }
    for key in 0..<4 { try cache.setValue(key, forKey: key) }
    cache.recency?.tell()
    for key in [2, 0, 0, 3] {
      share()
      scene.clock.advance(by: .milliseconds(1))
      _ = try cache.value(forKey: key)
    }
    #expect(cache.tier.held.sharedHitCount == 1)
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [1, 2, 0, 3])
    // 0 is marked, so it moves when it is the oldest. But its access is not reported again.
    for key in 4..<6 { try cache.setValue(key, forKey: key) }
    _ = try cache.value(forKey: 3)
    _ = try cache.value(forKey: 4)
    try cache.setValue(6, forKey: 6)
    #expect(cache.tier.held.keys().map(\.key) == [6, 0, 4, 3])
    scene.advance(by: .seconds(1))
    #expect(try cache.keysByRecency() == [1, 2, 0, 5, 3, 4, 6])
  }

  @Test("Reads are reported to the disk before a trim, whose victims are then exact")
  func beforeTrim() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<600 { try cache.setValue(key, forKey: key) }
    for key in stride(from: 0, to: 600, by: 2) { _ = try cache.value(forKey: key) }
    try cache.trim(toCount: 300)
    #expect(try Set(cache.keys()) == Set(stride(from: 0, to: 600, by: 2)))
    _ = try cache.value(forKey: 4)
    _ = try cache.value(forKey: 2)
    try cache.trim(toCost: try cache.totalCost() / 300 * 2)
    #expect(try Set(cache.keys()) == [2, 4])
  }

  @Test(
    "A late report does not order earlier reads after later writes",
    arguments: [EvictionPolicy.leastRecentlyUsed, .sieve, .s3FIFO])
  func lateReport(policy: EvictionPolicy) throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.memory?.policy = policy }
    for key in 0..<100 { try cache.setValue(key, forKey: key) }
    scene.clock.advance(by: .milliseconds(1))
    for key in 0..<50 { _ = try cache.value(forKey: key) }
    scene.clock.advance(by: .milliseconds(1))
    for key in 100..<120 { try cache.setValue(key, forKey: key) }
    cache.recency?.tell()
    let order = try cache.keysByRecency()
    #expect(Set(order.suffix(20)) == Set(100..<120))
    #expect(Set(order.prefix(50)) == Set(50..<100))
  }

  @Test("All reads of entries that memory has evicted since are reported")
  func manyEvictedReads() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 5000)
    for key in 0..<5000 { try cache.setValue(key, forKey: key) }
    for key in (0..<5000).reversed() { _ = try cache.value(forKey: key) }
    for key in 5000..<10_000 { try cache.setValue(key, forKey: key) }
    #expect(try !cache.tier.contains(0))
    cache.recency?.tell()
    // The reads came after the writes of these keys and are reported after the later writes.
    #expect(try cache.keysByRecency().suffix(5000) == Array((0..<5000).reversed()))
  }

  @Test("An entry whose report is pending counts as used until the report")
  func sparedWhileTold() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    try cache.setValue(3, forKey: 3, options: .idleLimit(.seconds(9)))
    scene.clock.advance(by: .seconds(1))
    for key in [0, 1, 3] { _ = try cache.value(forKey: key) }
    func isInUse(_ key: Int) throws -> Bool {
      try KeyCoder<Int>.integer.encode(key) { cache.recency?.isInUse($0) == true }
    }
    #expect(cache.tier.held.takeRecentKeys().map(\.key) == [0, 1])
    #expect(try isInUse(0) && isInUse(1) && !isInUse(2))
    // Entries that were reported before, or at once, need no such mark.
    #expect(try !isInUse(0) && !isInUse(3))
    for key in [0, 1] { _ = try cache.value(forKey: key) }
    cache.recency?.tell()
    #expect(try !isInUse(0) && !isInUse(1))
  }

  @Test("A late report of a read does not prolong the lifetime of an entry with a short idle limit")
  func idleToldLater() throws {
    let cache: DiskCache<Int, Int> = try scene.cache(held: 1)
    func isThereAfterTelling() throws -> Bool {
      scene.clock.advance(by: .seconds(8))
      cache.recency?.tell()
      scene.clock.advance(by: .seconds(1))
      return try cache.contains(0)
    }
    // Read at the moment when it was written, and evicted from memory.
    try cache.setValue(0, forKey: 0, options: .idleLimit(.seconds(9)))
    #expect(try cache.value(forKey: 0) == 0)
    let isInUse = try KeyCoder<Int>.integer.encode(0) { cache.recency?.isInUse($0) == true }
    #expect(!isInUse)
    #expect(try cache.value(forKey: 0) == 0)
    try cache.setValue(1, forKey: 1)
    #expect(try isThereAfterTelling() == false)
    // The value that was read is not the current one.
    try cache.setValue(0, forKey: 0)
    scene.clock.advance(by: .seconds(1))
    #expect(try cache.value(forKey: 0) == 0)
    try cache.setValue(1, forKey: 1)
    try cache.setStored(0, forKey: 0, options: .idleLimit(.seconds(9)))
    #expect(try isThereAfterTelling() == false)
  }

  @Test("If memory is short, it is freed before reads are reported to the disk")
  func freedFirst() throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<3 { try cache.setValue(key, forKey: key) }
    let found = Record<[Int]>()
    let observation = cache.tier.observe { [weak cache] event, _ in
      if case .removedAll = event, let cache { found.add((try? cache.keysByRecency()) ?? []) }
    }
    _ = try cache.value(forKey: 0)
    scene.press(.critical)
    #expect(found.all == [[0, 1, 2]])
    #expect(try cache.keysByRecency() == [1, 2, 0])
    // The observation holds the scene, whose queue holds what holds the observation.
    observation.cancel()
  }

  @Test("A report that waits in a user's coder is completed by its own thread")
  func sharedTelling() throws {
    let gate = DispatchSemaphore(value: 0)
    let isWaiting = Record<Int>()
    let waits = Record<Int>()
    let coder = KeyCoder<Int>.custom(
      encode: { key in
        if key == 1, !waits.all.isEmpty, isWaiting.all.isEmpty {
          isWaiting.add(key)
          gate.wait()
        }
        return [UInt8(key)]
      }, decode: { Int([UInt8](copying: $0)[0]) }
    ).comparingByEquality()
    let cache: DiskCache<Int, Int> = try scene.cache(keys: coder, values: .standard)
    func order() throws -> [Int] { try cache.store.keysByRecency().map { Int($0[0]) } }
    for key in 0..<5 { try cache.setValue(key, forKey: key) }
    for key in [1, 3, 2] { _ = try cache.value(forKey: key) }
    waits.add(0)
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      cache.recency?.tell()
      ended.signal()
    }
    #expect(comesTrue { !isWaiting.all.isEmpty })
    cache.recency?.tell()
    #expect(try order() == [0, 1, 4, 3, 2])
    try cache.trim(toCount: 2)
    #expect(try Set(cache.keys()) == [3, 2])
    gate.signal()
    ended.wait()
    #expect(try order() == [3, 2])
  }

  @Test(
    "Many reports at once leave nothing unreported",
    arguments: [KeyCoder<Int>.integer, .json().comparingByEquality()])
  func tellingCrowd(coder: KeyCoder<Int>) throws {
    let cache: DiskCache<Int, Int> = try scene.cache(keys: coder, values: .standard)
    for key in 0..<200 { try cache.setValue(key, forKey: key) }
    let ended = Record<Int>()
    onThreads(4) { thread in
      for round in 0..<200 {
        _ = try? cache.value(forKey: thread * 50 + round % 25)
        if round % (thread + 3) == 0 { cache.recency?.tell() }
      }
      ended.add(thread)
    }
    cache.recency?.tell()
    #expect(ended.all.count == 4)
    let order = try cache.store.keysByRecency().map { bytes in
      try bytes.withBytes { try coder.decode($0) }
    }
    let read = (0..<200).filter { $0 % 50 < 25 }
    #expect(order.suffix(100).sorted() == read)
  }

  @Test("Reads are reported to the disk before a close, and before memory is emptied")
  func beforeClose() throws {
    do {
      // Even after few writes a checkpoint is made, which keeps the order.
      let cache: DiskCache<Int, Int> = try scene.cache {
        $0.store.checkpointRecordThreshold = 0
      }
      for key in 0..<4 { try cache.setValue(key, forKey: key) }
      _ = try cache.value(forKey: 1)
      cache.tier.removeAll()
      #expect(try cache.keysByRecency() == [0, 2, 3, 1])
      _ = try cache.values(forKeys: 0..<4)
      _ = try cache.value(forKey: 2)
      try cache.close()
    }
    let cache: DiskCache<Int, Int> = try scene.cache()
    #expect(try cache.keysByRecency() == [0, 1, 3, 2])
    _ = try cache.values(forKeys: 0..<4)
    _ = try cache.value(forKey: 0)
    cache.respond(to: .critical)
    #expect(try cache.keysByRecency() == [1, 2, 3, 0])
  }

  @Test("Reads are also reported when the last reference is released")
  func atEnd() throws {
    do {
      let cache: DiskCache<Int, Int> = try scene.cache {
        $0.store.checkpointRecordThreshold = 0
      }
      for key in 0..<3 { try cache.setValue(key, forKey: key) }
      _ = try cache.value(forKey: 0)
    }
    let cache: DiskCache<Int, Int> = try scene.cache()
    #expect(try cache.keysByRecency() == [1, 2, 0])
  }

  @Test("A walk through memory finds everything that was used, even if entries move meanwhile")
  func walk() throws {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 3000)
    for key in 0..<3000 { cache[key] = key }
    // Nothing was read.
    #expect(cache.takeRecentKeys() == [])
    cache.read(0)
    cache[5] = 5
    cache.read(7)
    // Values written between two reads are included, those written before are not.
    #expect(cache.takeRecentKeys() == [0, 5, 7])
    #expect(cache.takeRecentKeys() == [])
    let told = Record<Int>()
    let ended = Record<Int>()
    onThreads(3) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      if thread == 0 {
        while ended.all.count < 2 { for key in cache.takeRecentKeys() { told.add(key) } }
      } else {
        for _ in 0..<40_000 {
          let key = random.below(3000)
          switch random.below(20) {
          case 0: cache[key] = nil
          case 1: cache[key] = key
          default: cache.read(key)
          }
        }
        ended.add(thread)
      }
    }
    _ = cache.takeRecentKeys()
    #expect(cache.audit() == [], TestSeed.comment)
    #expect(!told.all.isEmpty)
    for key in stride(from: 0, to: 3000, by: 7) { cache.read(key) }
    #expect(
      cache.takeRecentKeys() == stride(from: 0, to: 3000, by: 7).filter { cache.contains($0) },
      TestSeed.comment)
  }
}

extension MemoryCache {
  /// A read by the cache in front of the disk.
  func read(_ key: Key) {
    var ticket = CacheTicket()
    var notice: PendingNotice = []
    _ = readAbove(key, ticket: &ticket, notice: &notice)
  }
}
