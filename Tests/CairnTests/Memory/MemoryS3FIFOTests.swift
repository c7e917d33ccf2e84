import Cairn
import FuzzSupport
import Testing

/// A key whose hash it may share with another key.
private struct QueueKey: Hashable, Sendable {
  var number: Int
  var hasTwin = false

  func hash(into hasher: inout Hasher) { hasher.combine(hasTwin ? number / 2 : number) }

  /// The hash as a cache computes it.
  var shortHash: UInt32 {
    let hash = UInt(bitPattern: hashValue)
    return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
  }
}

@Suite("A cache in memory with S3-FIFO")
struct MemoryS3FIFOTests {
  /// A cache and its simulator, which receive the same calls.
  private struct Pair {
    let scene = MemoryScene()
    let cache: MemoryCache<QueueKey, Int>
    var simulator: S3FIFOSimulator
    let hasTwins: Bool

    init(count: Int?, cost: Int?, hasTwins: Bool = false) {
      cache = scene.cache(count: count, cost: cost) { $0.policy = .s3FIFO }
      simulator = S3FIFOSimulator(countLimit: count, costLimit: cost)
      simulator.now = scene.clock.now().millisecondsSinceEpoch
      self.hasTwins = hasTwins
    }

    func key(_ number: Int) -> QueueKey { QueueKey(number: number, hasTwin: hasTwins) }

    /// - Returns: whether it is a hit.
    mutating func read(_ number: Int) -> Bool {
      let isHit = cache.value(forKey: key(number)) != nil
      #expect(isHit == simulator.read(number), TestSeed.comment)
      return isHit
    }

    mutating func set(_ number: Int, cost: Int = 0, deadline: Int64? = nil) {
      let lifetime = deadline.map { Lifetime.milliseconds($0 - simulator.now) } ?? .standard
      cache.setValue(
        number, forKey: key(number), options: EntryOptions(cost: cost, lifetime: lifetime))
      simulator.set(number, hash: key(number).shortHash, cost: cost, deadline: deadline)
    }

    /// Uses a key as programs do: reads it, and sets it if it is missing.
    mutating func use(_ number: Int, cost: Int = 0) -> Bool {
      if read(number) { return true }
      set(number, cost: cost)
      return false
    }

    mutating func advance(by milliseconds: Int) {
      scene.clock.advance(by: .milliseconds(milliseconds))
      simulator.now += Int64(milliseconds)
    }

    func expectSame() {
      #expect(cache.keys().map(\.number) == simulator.keys, TestSeed.comment)
      #expect(cache.audit() == [], TestSeed.comment)
    }
  }

  @Test("Any sequence of calls has the simulator's hits, misses and order", arguments: 0..<60)
  func simulated(run: Int) {
    var random = FuzzRandom(seed: TestSeed.current &+ UInt64(2000 + run))
    var countLimit = run % 3 == 0 ? nil : 1 + random.below(run % 2 == 0 ? 12 : 60)
    var costLimit = run % 4 == 0 ? nil : 10 + random.below(run % 2 == 0 ? 60 : 400)
    var pair = Pair(count: countLimit, cost: costLimit, hasTwins: run % 5 == 0)
    let keyCount = run % 2 == 0 ? 24 : 120
    var deadlines: Set<Int64> = []
    for step in 0..<1500 {
      let key = random.once(in: 3) ? random.below(keyCount / 6) : random.below(keyCount)
      switch random.below(40) {
      case 0..<20: _ = pair.use(key, cost: random.below(16))
      case 20..<26: _ = pair.read(key)
      case 26..<29: pair.set(key, cost: random.below(16))
      case 29..<32:
        // No two at the same time: which of them goes first is not defined.
        var deadline = pair.simulator.now + 1 + Int64(random.below(60))
        while !deadlines.insert(deadline).inserted { deadline += 1 }
        pair.set(key, cost: random.below(16), deadline: deadline)
      case 32:
        pair.cache.removeValue(forKey: pair.key(key))
        pair.simulator.remove(key)
      case 33 where random.once(in: 3):
        let count = random.below(keyCount / 2)
        pair.cache.trim(.toCount(count))
        pair.simulator.trim(toCount: count)
      case 34 where random.once(in: 3):
        let cost = 1 + random.below(300)
        pair.cache.trim(.toBytes(cost))
        pair.simulator.trim(toCost: cost)
      case 35 where countLimit != nil && random.once(in: 3):
        let limit = 1 + random.below(keyCount / 2)
        countLimit = limit
        pair.cache.countLimit = limit
        pair.simulator.setLimits(countLimit: limit, costLimit: costLimit)
      case 36 where costLimit != nil && random.once(in: 3):
        let limit = 10 + random.below(400)
        costLimit = limit
        pair.cache.costLimit = limit
        pair.simulator.setLimits(countLimit: countLimit, costLimit: limit)
      case 37 where step % 500 == 0:
        pair.cache.removeAll()
        pair.simulator = S3FIFOSimulator(countLimit: countLimit, costLimit: costLimit)
        pair.simulator.now = pair.scene.clock.now().millisecondsSinceEpoch
      case 38:
        // Also moves entries to free slots.
        pair.cache.respond(to: .moderate)
        pair.simulator.trim(toCount: .max)
      default: pair.advance(by: random.below(4))
      }
      pair.expectSame()
    }
  }

  /// The hits of a policy on a stream.
  private func hitCount(
    _ stream: [Int], capacity: Int, policy: EvictionPolicy
  ) -> Int {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: capacity) { $0.policy = policy }
    return stream.count { key in
      if cache.value(forKey: key) != nil { return true }
      cache[key] = key
      return false
    }
  }

  @Test("On streams like those of programs, each request is a hit or a miss as in the simulator")
  func streams() {
    var random = FuzzRandom(seed: TestSeed.current)
    // A few keys are hot for a while, there is a scan from time to time, and some keys are
    // requested once.
    var once = 100_000
    let stream = (0..<12_000).map { step in
      if step % 3000 > 2400 { return 10_000 + step % 600 }
      if random.once(in: 4) {
        once += 1
        return once
      }
      return step / 4000 * 300 + min(random.below(300), random.below(300), random.below(300))
    }
    for capacity in [1, 2, 9, 10, 100] {
      var pair = Pair(count: capacity, cost: nil)
      for key in stream { _ = pair.use(key) }
      pair.expectSame()
    }
    // Costs from 1 to 64, as of keys.
    var pair = Pair(count: nil, cost: 1500)
    for key in stream { _ = pair.use(key, cost: 1 + key * 37 % 64) }
    pair.expectSame()
  }

  @Test("A loop over more keys than fit has hits, and a scan does not evict hot keys")
  func loopAndScan() {
    let loop = (0..<20_000).map { $0 % 1100 }
    #expect(hitCount(loop, capacity: 1000, policy: .leastRecentlyUsed) == 0)
    #expect(hitCount(loop, capacity: 1000, policy: .s3FIFO) > 12_000)
    // 120 hot keys in turn, with a key that is used once after each of them.
    let scan = (0..<20_000).map { $0 % 2 == 0 ? $0 / 2 % 120 : $0 + 1000 }
    #expect(hitCount(scan, capacity: 200, policy: .leastRecentlyUsed) == 0)
    #expect(hitCount(scan, capacity: 200, policy: .s3FIFO) > 9_500)
  }

  @Test("An entry that was used twice stays, and so does a key that returns soon")
  func promotion() {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 10) { $0.policy = .s3FIFO }
    for key in 0..<10 { cache[key] = key }
    // The first key is in the small queue. The others found the small queue full, and are in the
    // main queue.
    #expect(cache.keys() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    cache[10] = 10
    #expect(!cache.contains(0))
    cache[0] = 0
    // The returning key was evicted from the small queue, so it is now in the main one. The other
    // new key was evicted next.
    #expect(cache.keys() == [0, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    cache[11] = 11
    for _ in 0..<2 { #expect(cache[11] == 11) }
    cache[12] = 12
    // Used twice, it moved to the main queue, whose oldest entry was then evicted.
    #expect(cache.keys() == [11, 0, 9, 8, 7, 6, 5, 4, 3, 12])
    #expect(cache.audit() == [])
  }

  @Test("By cost, the small queue has a tenth of the cost limit")
  func cost() {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(cost: 1000) { $0.policy = .s3FIFO }
    // Used entries stay, whatever passes.
    for key in 0..<90 { cache.setValue(key, forKey: key, options: .cost(10)) }
    for key in 0..<90 { for _ in 0..<3 { #expect(cache[key] == key) } }
    for key in 100..<1000 { cache.setValue(key, forKey: key, options: .cost(1 + key % 50)) }
    #expect((0..<90).count { cache.contains($0) } >= 85)
    #expect(cache.totalCost() <= 1000)
    // An entry that costs as much as all others replaces all of them.
    cache.setValue(0, forKey: 5000, options: .cost(1000))
    #expect(cache.keys() == [5000])
    #expect(cache.audit() == [])
  }

  @Test("Ghosts take memory once something was evicted, and none before")
  func memory() {
    let cache: MemoryCache<Int, Int> = MemoryScene().cache(count: 1000) { $0.policy = .s3FIFO }
    for key in 0..<1000 { cache[key] = key }
    let before = Int(cache.statistics()["overheadBytes"])
    for key in 1000..<5000 { cache[key] = key }
    let ghosts = Int(cache.statistics()["overheadBytes"]) - before
    #expect(ghosts >= 900 * 12 && ghosts <= 900 * 28)
    cache.removeAll()
    #expect(Int(cache.statistics()["overheadBytes"]) < 1000)
  }
}
