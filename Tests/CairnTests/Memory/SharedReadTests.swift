import Cairn
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Parallel hits, without the mutex", .timeLimit(.minutes(30)))
struct SharedReadTests {
  static let policies = EvictionPolicy.allCases
  let scene = MemoryScene()

  /// A cache whose next hits are shared.
  private func sharing<Key: Hashable & Sendable, Value: Sendable>(
    _ policy: EvictionPolicy, _ entries: [(Key, Value)], lifetime: Lifetime = .unlimited,
    idleLimit: Duration? = nil
  ) -> MemoryCache<Key, Value> {
    let cache: MemoryCache<Key, Value> = scene.cache(count: 100) {
      $0.policy = policy
      $0.lifetime = lifetime
      $0.idleLimit = idleLimit
    }
    for (key, value) in entries { cache.setValue(value, forKey: key) }
    share(cache, policy, reading: entries[0].0)
    return cache
  }

  private func share<Key, Value>(
    _ cache: MemoryCache<Key, Value>, _ policy: EvictionPolicy, reading key: Key
  ) {
    for _ in 0..<4 { _ = cache.value(forKey: key) }
    if policy == .leastRecentlyUsed { cache.shareHits() }
  }

  @Test("After some hits in a row, hits are shared, and counted", arguments: policies)
  func shares(policy: EvictionPolicy) {
    let cache = sharing(policy, [(1, "one"), (2, "two")])
    for _ in 0..<10 { #expect(cache.value(forKey: 2) == "two") }
    #expect(cache.sharedHitCount == 10)
    #expect(cache.statistics().hitCount == 14)
    #expect(cache.value(forKey: 3) == nil)
    #expect(cache.statistics().missCount == 1)
    #expect(cache.audit() == [])
  }

  @Test("With LRU, one thread moves entries at each hit, and shares none")
  func alone() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 10) { _ in }
    cache[1] = 1
    for _ in 0..<14 { _ = cache.value(forKey: 1) }
    #expect(cache.sharedHitCount == 0 && cache.statistics().hitCount == 14)
  }

  @Test("With LRU, hits are shared after a read had to wait for another, until a write")
  func waited() {
    let stop = Key.Stop()
    let key = Key(number: 1, stop: stop)
    let cache: MemoryCache<Key, Int> = scene.cache(count: 10) { _ in }
    var attemptCount = 0
    repeat {
      attemptCount += 1
      cache[key] = attemptCount
      let before = stop.arrivedCount.load(ordering: .relaxed)
      stop.isClosed.store(true, ordering: .releasing)
      onThreads(3) { thread in
        if thread > 0 {
          _ = comesTrue { stop.arrivedCount.load(ordering: .relaxed) > before }
        }
        if thread < 2 {
          _ = cache[key]
        } else {
          // Usually long enough for the second read to wait.
          pause(for: .milliseconds(20))
          stop.isClosed.store(false, ordering: .releasing)
        }
      }
      for _ in 0..<5 { _ = cache[key] }
      cache[key] = 0
      for _ in 0..<5 { _ = cache[key] }
    } while cache.sharedHitCount == 0 && attemptCount < 50
    #expect(cache.sharedHitCount == 5)
  }

  @Test("With LRU, a new entry comes before those that its eviction moves")
  func newBeforeMarked() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 2) { _ in }
    for key in 1...2 { cache[key] = key }
    cache.shareHits()
    for key in 1...2 { _ = cache[key] }
    cache[3] = 3
    #expect(cache.keys() == [3, 2])
    cache[4] = 4
    #expect(cache.keys() == [4, 3] && cache.audit() == [])
  }

  @Test("With LRU, evictions move the entries that shared hits marked, a limited number each")
  func manyMarked() {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 1000) { _ in }
    for key in 0..<1000 { cache[key] = key }
    cache.shareHits()
    for key in 0..<1000 { _ = cache[key] }
    #expect(cache.keys() == Array((0..<1000).reversed()))
    cache[1000] = 1000
    // The eviction moved 256 entries behind the new one, and evicted the next although it is
    // marked.
    #expect(Array(cache.keys().prefix(257)) == [1000] + Array((0..<256).reversed()))
    #expect(!cache.contains(256) && cache.contains(257) && cache.count() == 1000)
    // A hit of one thread moves its entry and takes the mark.
    _ = cache[257]
    #expect(cache.keys().first == 257)
    cache.trim(.toCount(1))
    #expect(cache.count() == 1 && cache.audit() == [])
  }

  @Test("A shared hit spares its entry, and updates its access time", arguments: policies)
  func uses(policy: EvictionPolicy) throws {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 10) { $0.policy = policy }
    for key in 0..<10 { cache[key] = key }
    // Only 9 is not read.
    share(cache, policy, reading: 0)
    scene.advance(by: .milliseconds(5))
    for _ in 0..<3 { for key in 0..<9 { _ = cache[key] } }
    #expect(cache.sharedHitCount == 27)
    cache[10] = 10
    #expect(!cache.contains(9))
    for key in 0..<9 {
      let info = try #require(cache.info(forKey: key))
      #expect(info.accessed == scene.clock.now())
    }
  }

  @Test("Expired entries and those with an idle limit are left to the lock", arguments: policies)
  func expiry(policy: EvictionPolicy) {
    let expiring = sharing(policy, [(1, 1)], lifetime: .milliseconds(10))
    #expect(expiring.value(forKey: 1) == 1)
    #expect(expiring.sharedHitCount == 1)
    // Counting them has ended the sharing.
    share(expiring, policy, reading: 1)
    for _ in 0..<20 { _ = expiring.value(forKey: 1) }
    scene.clock.advance(by: .milliseconds(10))
    #expect(expiring.value(forKey: 1) == nil)
    #expect(expiring.sharedHitCount > 1)
    let idle = sharing(policy, [(1, 1)], idleLimit: .milliseconds(10))
    for _ in 0..<5 {
      scene.clock.advance(by: .milliseconds(6))
      #expect(idle.value(forKey: 1) == 1)
    }
    #expect(idle.sharedHitCount == 0)
  }

  @Test("Entries that a removal by tag made doubtful are left to the lock", arguments: policies)
  func doubt(policy: EvictionPolicy) throws {
    let scene = TieredScene()
    defer { withExtendedLifetime(scene) {} }
    let cache: DiskCache<Int, Int> = try scene.cache { $0.memory?.policy = policy }
    try cache.setValue(1, forKey: 1, options: .tags(["x"]))
    try cache.setValue(2, forKey: 2)
    // Read in memory too, so that the report of this covers later reads.
    for _ in 0..<3 { #expect(try cache.value(forKey: 1) == 1) }
    try cache.removeAll(tagged: "x")
    // Makes the hits shared.
    for _ in 0..<40 { #expect(try cache.value(forKey: 2) == 2) }
    #expect(try cache.value(forKey: 1) == nil)
  }

  /// A key whose comparison waits if a test wants that.
  struct Key: Hashable, Sendable {
    final class Stop: Sendable {
      let isClosed = Atomic(false)
      let arrivedCount = Atomic(0)
    }

    let number: Int
    let stop: Stop

    static func == (left: Key, right: Key) -> Bool {
      let stop = left.stop
      if stop.isClosed.load(ordering: .acquiring) {
        stop.arrivedCount.add(1, ordering: .relaxed)
        while stop.isClosed.load(ordering: .acquiring) { pause(for: .milliseconds(1)) }
      }
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }

  @Test(
    "A write waits for the hit in progress, and the next hits find it", arguments: policies)
  func waits(policy: EvictionPolicy) {
    let stop = Key.Stop()
    let key = Key(number: 1, stop: stop)
    let cache = sharing(policy, [(key, "old")])
    let found = Record<String?>()
    let isWritten = Atomic(false)
    stop.isClosed.store(true, ordering: .releasing)
    onThreads(3) { thread in
      switch thread {
      case 0: found.add(cache.value(forKey: key))
      case 1:
        _ = comesTrue { stop.arrivedCount.load(ordering: .relaxed) == 1 }
        cache.removeAll()
        cache.setValue("new", forKey: key)
        isWritten.store(true, ordering: .releasing)
      default:
        _ = comesTrue { stop.arrivedCount.load(ordering: .relaxed) == 1 }
        // Long enough for a write that does not wait.
        pause(for: .milliseconds(50))
        let isEarly = isWritten.load(ordering: .acquiring)
        #expect(!isEarly)
        stop.isClosed.store(false, ordering: .releasing)
      }
    }
    #expect(found.all == ["old"])
    #expect(cache.value(forKey: key) == "new")
    #expect(cache.sharedHitCount == 1)
  }

  /// A value that shows whether it is whole.
  struct Block: Sendable {
    let number: Int
    let bytes: [Int]

    init(_ number: Int) {
      self.number = number
      bytes = Array(repeating: number, count: 20)
    }
  }

  @Test(
    "Readers at full speed find whole values, none older than those written before",
    arguments: policies)
  func threads(policy: EvictionPolicy) {
    let cache: MemoryCache<Int, Block> = scene.cache(count: 64) { $0.policy = policy }
    let keyCount = 8
    for key in 0..<keyCount { cache[key] = Block(0) }
    let written = Lock(Array(repeating: 0, count: keyCount))
    let isOver = Atomic(false)
    let faults = Record<String>()
    let hits = Atomic(0)
    onThreads(4) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      if thread == 0 {
        for number in 1...3000 {
          let key = random.below(keyCount)
          cache[key] = Block(number)
          written.withLock { $0[key] = number }
          // Others come and go, so that slots are reused and the table grows.
          cache[1000 + number] = Block(number)
          if number % 7 == 0 { cache[1000 + number / 2] = nil }
          for _ in 0..<random.below(40) { _ = cache[random.below(keyCount)] }
        }
        isOver.store(true, ordering: .releasing)
        return
      }
      while !isOver.load(ordering: .acquiring) {
        for _ in 0..<50 {
          let key = random.below(keyCount)
          let least = written.withLock { $0[key] }
          guard let block = cache[key] else { continue }
          hits.add(1, ordering: .relaxed)
          if block.number < least { faults.add("\(block.number) after \(least)") }
          if block.bytes != Array(repeating: block.number, count: 20) {
            faults.add("\(block.number): \(block.bytes)")
          }
        }
      }
    }
    #expect(faults.all == [], TestSeed.comment)
    #expect(cache.sharedHitCount > 0)
    #expect(cache.statistics().hitCount >= UInt64(hits.load(ordering: .relaxed)))
    #expect(cache.audit() == [], TestSeed.comment)
  }
}
