import Cairn
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Parallel hits of SIEVE and S3-FIFO, without the mutex", .timeLimit(.minutes(5)))
struct SharedReadTests {
  static let policies: [EvictionPolicy] = [.sieve, .s3FIFO]
  let scene = MemoryScene()

  /// A cache whose next hits are shared.
  private func sharing<Key: Hashable & Sendable, Value: Sendable>(
    _ policy: EvictionPolicy, _ entries: [(Key, Value)], lifetime: Duration? = nil,
    idleLimit: Duration? = nil
  ) -> MemoryCache<Key, Value> {
    let cache: MemoryCache<Key, Value> = scene.cache(count: 100) {
      $0.policy = policy
      $0.lifetime = lifetime
      $0.idleLimit = idleLimit
    }
    for (key, value) in entries { cache.setValue(value, forKey: key) }
    for _ in 0..<4 { _ = cache.value(forKey: entries[0].0) }
    return cache
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

  @Test("LRU moves entries at each hit, so it shares none")
  func never() {
    let cache = sharing(.leastRecentlyUsed, [(1, 1)])
    for _ in 0..<10 { _ = cache.value(forKey: 1) }
    #expect(cache.sharedHitCount == 0 && cache.statistics().hitCount == 14)
  }

  @Test("A shared hit spares its entry, and updates its access time", arguments: policies)
  func uses(policy: EvictionPolicy) throws {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 10) { $0.policy = policy }
    for key in 0..<10 { cache[key] = key }
    // Makes the hits shared; 9 alone is not read.
    for _ in 0..<4 { _ = cache[0] }
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
    let cache: DiskCache<Int, Int> = try TieredScene().cache { $0.memory?.policy = policy }
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
