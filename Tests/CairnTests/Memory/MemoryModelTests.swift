import Cairn
import FuzzSupport
import Testing

/// A cache simple enough to be obviously correct: an array in the order of use, searched for
/// everything.
private struct ModelCache {
  struct Entry {
    var key: Int
    var value: Int
    var cost: Int
    var written: Int64
    var accessed: Int64
    var expires: Int64?
    var idle: Int64?
  }

  /// The least recently used first.
  var entries: [Entry] = []
  var countLimit: Int?
  var costLimit: Int?

  mutating func drop(at now: Int64) {
    entries.removeAll { entry in
      entry.expires.map { $0 <= now } == true
        || entry.idle.map { entry.accessed + $0 <= now } == true
    }
  }

  mutating func read(_ key: Int, at now: Int64) -> Int? {
    guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
    var entry = entries.remove(at: index)
    entry.accessed = now
    entries.append(entry)
    return entry.value
  }

  mutating func set(_ entry: Entry) {
    entries.removeAll { $0.key == entry.key }
    if entry.expires.map({ $0 <= entry.written }) == true || entry.idle.map({ $0 <= 0 }) == true {
      return
    }
    if countLimit.map({ $0 <= 0 }) == true || costLimit.map({ entry.cost > $0 }) == true { return }
    entries.append(entry)
    keepLimits()
  }

  mutating func keepLimits() {
    trim(toCount: countLimit ?? .max)
    trim(toCost: costLimit ?? .max)
  }

  mutating func trim(toCount count: Int) { entries.removeFirst(max(0, entries.count - count)) }

  mutating func trim(toCost cost: Int) {
    while totalCost > cost { entries.removeFirst() }
  }

  mutating func removeLargest(while isTooMuch: (ModelCache) -> Bool) {
    while isTooMuch(self), let largest = entries.map(\.cost).max() {
      entries.remove(at: entries.firstIndex { $0.cost == largest } ?? 0)
    }
  }

  var totalCost: Int { entries.reduce(0) { $0 + $1.cost } }
}

@Suite("A cache in memory against a model")
struct MemoryModelTests {
  @Test(
    "Any sequence of calls returns what the model returns, in the same order", arguments: 0..<40)
  func model(run: Int) {
    let scene = MemoryScene()
    var random = FuzzRandom(seed: TestSeed.current &+ UInt64(run))
    let countLimit = run % 3 == 0 ? nil : 1 + random.below(12)
    let costLimit = run % 4 == 0 ? nil : 10 + random.below(60)
    let cache: MemoryCache<Int, Int> = scene.cache(count: countLimit, cost: costLimit)
    var model = ModelCache(countLimit: countLimit, costLimit: costLimit)
    let inserted = Record<Int>()
    let gone = Record<Int>()
    cache.observe { event, value in
      switch event {
      case .inserted: inserted.add(value ?? -1)
      case .removed: gone.add(value ?? -1)
      default: break
      }
    }
    var cleared: [Int] = []
    for step in 0..<600 {
      let now = scene.clock.now().millisecondsSinceEpoch
      model.drop(at: now)
      let key = random.below(20)
      switch random.below(22) {
      case 0..<7:
        let entry = ModelCache.Entry(
          key: key, value: step, cost: random.below(16), written: now, accessed: now,
          expires: random.below(3) == 0 ? now + Int64(random.below(50)) : nil,
          idle: random.below(3) == 0 ? Int64(random.below(30)) : nil)
        model.set(entry)
        let options = EntryOptions(
          cost: entry.cost, lifetime: entry.expires.map { .milliseconds($0 - now) } ?? .standard,
          idleLimit: entry.idle.map { .milliseconds($0) })
        cache.setValue(step, forKey: key, options: options)
      case 7..<12: #expect(cache.value(forKey: key) == model.read(key, at: now))
      case 12:
        let value = model.entries.first { $0.key == key }?.value
        #expect(cache.contains(key) == (value != nil))
        #expect(cache.peekValue(forKey: key) == value, TestSeed.comment)
      case 13:
        #expect(cache.takeValue(forKey: key) == model.entries.first { $0.key == key }?.value)
        model.entries.removeAll { $0.key == key }
      case 14:
        let count = random.below(15)
        if random.below(2) == 0 {
          cache.trim(.toCount(count))
          model.trim(toCount: count)
        } else {
          cache.trim(.toCount(count, order: .largestFirst))
          model.removeLargest { $0.entries.count > count }
        }
      case 15:
        let cost = 1 + random.below(80)
        if random.below(2) == 0 {
          cache.trim(.toBytes(cost))
          model.trim(toCost: cost)
        } else {
          cache.trim(.toBytes(cost, order: .largestFirst))
          model.removeLargest { $0.totalCost > cost }
        }
      case 16:
        let age = Int64(1 + random.below(60))
        if random.below(2) == 0 {
          cache.trim(.unused(for: .milliseconds(age)))
          model.entries.removeAll { $0.accessed < now - age }
        } else {
          cache.trim(.older(than: .milliseconds(age)))
          model.entries.removeAll { $0.written < now - age }
        }
      case 17:
        let end = now + Int64(random.below(80))
        cache.setLifetime(.milliseconds(end - now), forKey: key)
        if let index = model.entries.firstIndex(where: { $0.key == key }) {
          model.entries[index].expires = end
        }
      case 18:
        if random.below(10) == 0 {
          cleared += model.entries.map(\.value)
          // Expired entries that are still held are removed too, without separate reports.
          cache.trim(.expired)
          cache.removeAll()
          model.entries = []
        } else {
          // Removes expired entries, and moves others to free slots.
          cache.respond(to: .moderate)
        }
      case 19:
        let limit = 1 + random.below(12)
        cache.countLimit = limit
        model.countLimit = limit
        model.keepLimits()
      default: scene.clock.advance(by: .milliseconds(random.below(12)))
      }
      let later = scene.clock.now().millisecondsSinceEpoch
      model.drop(at: later)
      #expect(cache.keys() == model.entries.reversed().map(\.key), TestSeed.comment)
      #expect(cache.audit() == [], TestSeed.comment)
      if step % 7 == 0 {
        #expect(cache.count() == model.entries.count, TestSeed.comment)
        #expect(cache.totalCost() == model.totalCost, TestSeed.comment)
      }
      if step % 50 == 49 {
        let values = cache.entries().map(\.value)
        #expect(values == model.entries.reversed().map(\.value), TestSeed.comment)
      }
    }
    // Every inserted value was removed once or exists, even if it was not kept.
    cache.trim(.expired)
    #expect(
      (gone.all + cleared + model.entries.map(\.value)).sorted() == inserted.all.sorted(),
      TestSeed.comment)
  }

  @Test(
    "SIEVE follows its published description, except for two bounds", arguments: 0..<20)
  func sieve(run: Int) {
    // The description's own form: a queue with the newest at the end, and a hand. Two additions: the
    // hand starts over when it has evicted as many entries as there are, including the new one, and
    // 16 for each that it passed over. And it passes over at most 256 for one eviction.
    var random = FuzzRandom(seed: TestSeed.current &+ UInt64(1000 + run))
    let capacity = run == 0 ? 600 : 1 + random.below(run % 2 == 0 ? 10 : 100)
    let scene = MemoryScene()
    let cache: MemoryCache<Int, Int> = scene.cache(count: capacity) { $0.policy = .sieve }
    var queue: [(key: Int, isVisited: Bool)] = []
    var hand: Int?
    var takenCount = 0
    for step in 0..<2000 {
      // Occasionally a loop, in which the hand starts over.
      let key = step % 800 < 400 ? random.below(2 * capacity + 4) : step % (capacity * 2)
      let isHit = cache.value(forKey: key) != nil
      #expect(isHit == queue.contains { $0.key == key }, TestSeed.comment)
      if let index = queue.firstIndex(where: { $0.key == key }) {
        queue[index].isVisited = true
        continue
      }
      if queue.count == capacity {
        if takenCount > capacity { (hand, takenCount) = (nil, 0) }
        var index = hand.flatMap { hand in queue.firstIndex { $0.key == hand } } ?? 0
        var passCount = 0
        while queue[index].isVisited && passCount < 256 {
          queue[index].isVisited = false
          passCount += 1
          index = (index + 1) % queue.count
          takenCount = max(0, takenCount - 16)
        }
        takenCount += 1
        hand = index + 1 < queue.count ? queue[index + 1].key : nil
        queue.remove(at: index)
      }
      queue.append((key, false))
      cache.setValue(0, forKey: key)
      if step % 50 == 0 { cache.respond(to: .moderate) }
      #expect(cache.keys() == queue.reversed().map(\.key), TestSeed.comment)
    }
    #expect(cache.audit() == [])
  }

  @Test("Keys whose hashes are equal or adjacent are distinguished")
  func collisions() {
    struct Key: Hashable, Sendable {
      var number: Int
      func hash(into hasher: inout Hasher) { hasher.combine(number % 3) }
    }
    let scene = MemoryScene()
    let cache: MemoryCache<Key, Int> = scene.cache()
    var model: [Key: Int] = [:]
    var random = FuzzRandom(seed: TestSeed.current)
    for step in 0..<4000 {
      let key = Key(number: random.below(60))
      if random.below(2) == 0 {
        cache[key] = step
        model[key] = step
      } else {
        #expect(cache.takeValue(forKey: key) == model.removeValue(forKey: key), TestSeed.comment)
      }
      #expect(cache[key] == model[key], TestSeed.comment)
    }
    #expect(cache.count() == model.count)
    #expect(cache.audit() == [], TestSeed.comment)
  }
}
