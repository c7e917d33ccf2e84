import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("A cache in memory with many threads", .timeLimit(.minutes(30)))
struct MemoryConcurrencyTests {
  /// A value that shows its owner and its number.
  struct Stamp: Sendable, Hashable {
    var key: Int
    var number: Int
    var cost: Int
  }

  static let countLimit = 150
  static let costLimit = 1500

  /// All calls at once, by threads that each write to their own keys. So each thread knows what may
  /// be found for its keys: the value it set last until that is gone, and nothing from then on.
  @Test(
    "Every thread finds its own values or nothing, and limits always hold",
    arguments: EvictionPolicy.allCases, [ValueRelease.automatic, .onCaller])
  func model(policy: EvictionPolicy, release: ValueRelease) {
    let scene = MemoryScene()
    let cache: MemoryCache<Int, Stamp> = scene.cache(
      count: Self.countLimit, cost: Self.costLimit
    ) {
      $0.policy = policy
      $0.release = release
    }
    let held = Lock<[Stamp: Int]>([:])
    let cleared = Atomic(0)
    cache.observe { [weak cache] event, value in
      switch event {
      case .inserted: if let value { held.withLock { $0[value, default: 0] += 1 } }
      case .removed: if let value { held.withLock { $0[value, default: 0] -= 1 } }
      case .removedAll(let count): cleared.add(count, ordering: .relaxed)
      default: break
      }
      // An observer that reads is one of the threads.
      if case .removed(let key, .replaced) = event { _ = cache?.info(forKey: key) }
    }
    let faults = Record<String>()
    let threads = 4
    let keys = 100
    onThreads(threads) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      // The value that the thread last set for each of its keys, or `nil` if it is gone for good.
      var mine = [Stamp?](repeating: nil, count: keys)
      // The time from which each value must be gone, because its lifetime has ended.
      var ends = [Int64](repeating: .max, count: keys)
      func now() -> Int64 { scene.clock.now().millisecondsSinceEpoch }
      func check(_ found: Stamp?, _ index: Int, since before: Int64) {
        if let found {
          if found != mine[index] { faults.add("\(found) instead of \(mine[index] as Any)") }
          if ends[index] <= before { faults.add("\(found) at \(before)") }
        } else {
          // Once gone, a value does not reappear by itself.
          mine[index] = nil
        }
      }
      for step in 0..<4000 {
        let index = random.below(keys)
        let key = index * threads + thread
        let before = now()
        switch random.below(40) {
        case 0..<14:
          let lifetime: Int64? = random.below(3) == 0 ? Int64(random.below(40)) : nil
          let stamp = Stamp(key: key, number: step, cost: random.below(30))
          cache.setValue(
            stamp, forKey: key,
            options: EntryOptions(
              cost: stamp.cost, lifetime: lifetime.map { .milliseconds($0) } ?? .standard,
              idleLimit: random.below(5) == 0 ? .milliseconds(random.below(60)) : nil))
          mine[index] = stamp
          // The clock may have advanced before the call read it.
          ends[index] = lifetime.map { now() + $0 } ?? .max
        case 14..<24: check(cache.value(forKey: key), index, since: before)
        case 24:
          check(cache.entry(forKey: key)?.value, index, since: before)
        case 25:
          if !cache.contains(key) { mine[index] = nil }
        case 26:
          if cache.removeValue(forKey: key), mine[index] == nil { faults.add("\(key) came back") }
          mine[index] = nil
        case 27:
          check(cache.takeValue(forKey: key), index, since: before)
          mine[index] = nil
        case 28: cache.trim(.toCount(random.below(Self.countLimit)))
        case 29: cache.trim(.toBytes(1 + random.below(1500), order: .largestFirst))
        case 30:
          let age = Duration.milliseconds(1 + random.below(30))
          cache.trim(random.below(2) == 0 ? .unused(for: age) : .older(than: age))
        case 31: cache.trim(.expired)
        case 32:
          let lifetime = random.below(60)
          cache.setLifetime(.milliseconds(lifetime), forKey: key)
          ends[index] = max(ends[index], now() + Int64(lifetime))
        case 33:
          for entry in cache.entries() where entry.key % threads == thread {
            check(entry.value, entry.key / threads, since: before)
          }
        case 34:
          if random.below(20) == 0 { cache.removeAll() }
        case 35:
          let victim = random.below(7)
          cache.remove { key, _ in key % 7 == victim && key % threads == thread }
        case 36:
          if random.below(10) == 0 {
            cache.respond(to: MemoryPressure.allCases[random.below(3)])
          }
        case 37: scene.advance(by: .milliseconds(random.below(8)))
        default: _ = cache.values(forKeys: [key, key + 1, key + 2])
        }
        let statistics = cache.statistics()
        if statistics.count > Self.countLimit { faults.add("\(statistics.count) entries") }
        if statistics.cost > Self.costLimit { faults.add("a cost of \(statistics.cost)") }
      }
    }
    #expect(faults.all == [], TestSeed.comment)
    #expect(cache.audit() == [], TestSeed.comment)
    scene.background.runAll()
    // Each inserted value was removed once, was part of a removal of all, or exists.
    let balance = held.withLock { $0 }
    let left = balance.values.filter { $0 > 0 }.reduce(0, +)
    #expect(balance.values.allSatisfy { (0...1).contains($0) }, TestSeed.comment)
    #expect(
      left == cache.statistics().count + cleared.load(ordering: .relaxed), TestSeed.comment)
    let statistics = cache.statistics()
    #expect(
      statistics["insertions"]
        == statistics["replacements"] + statistics["removals"] + statistics["expirations"]
        + statistics.evictionCount + UInt64(statistics.count), TestSeed.comment)
  }

  @Test("Each value is destroyed once, and none is left, with all threads at work")
  func values() {
    let made = Atomic(0)
    let ended = Atomic(0)
    final class Counted: Sendable {
      let counter: @Sendable () -> Void
      init(_ counter: @escaping @Sendable () -> Void) { self.counter = counter }
      deinit { counter() }
    }
    do {
      let cache = MemoryCache<Int, Counted>(
        configuration: MemoryConfiguration(countLimit: 200))
      onThreads(4) { thread in
        var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
        for _ in 0..<5000 {
          let key = random.below(400)
          switch random.below(8) {
          case 0..<4:
            made.add(1, ordering: .relaxed)
            cache[key] = Counted { ended.add(1, ordering: .relaxed) }
          case 4: cache[key] = nil
          case 5: if random.below(100) == 0 { cache.removeAll() }
          case 6: if random.below(30) == 0 { cache.trim(.toCount(20)) }
          default: _ = cache[key]
          }
        }
      }
    }
    #expect(
      comesTrue { made.load(ordering: .relaxed) == ended.load(ordering: .relaxed) })
  }

  @Test("Observers can be added and removed while others are called")
  func observers() {
    let scene = MemoryScene()
    let cache: MemoryCache<Int, Int> = scene.cache(count: 10)
    onThreads(4) { thread in
      for round in 0..<500 {
        let count = Atomic(0)
        let told = Record<Int>()
        let observation = cache.observe { _, value in told.add(value ?? 0) }
        cache[thread * 1000 + round] = round
        if told.all.isEmpty { count.add(1, ordering: .relaxed) }
        observation.cancel()
        #expect(count.load(ordering: .relaxed) == 0)
      }
    }
    #expect(cache.observerCount == 0)
  }
}
