import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// A cache on disk simple enough to be obviously correct: an array in the order of use.
private struct ModelDisk {
  struct Entry {
    var key: Int
    var value: String
    var written: Int64
    var accessed: Int64
    var expires: Int64?
    var idle: Int64?

    func hasExpired(at now: Int64) -> Bool {
      expires.map { $0 <= now } == true || idle.map { accessed + $0 <= now } == true
    }
  }

  /// The least recently used first. Expired entries stay until they are removed.
  var entries: [Entry] = []
  var countLimit: Int

  func index(of key: Int, at now: Int64) -> Int? {
    entries.firstIndex { $0.key == key && !$0.hasExpired(at: now) }
  }

  mutating func read(_ key: Int, at now: Int64) -> String? {
    guard let index = index(of: key, at: now) else { return nil }
    var entry = entries.remove(at: index)
    entry.accessed = now
    entries.append(entry)
    return entry.value
  }

  mutating func set(_ entry: Entry) {
    entries.removeAll { $0.key == entry.key }
    entries.append(entry)
    entries.removeFirst(max(0, entries.count - countLimit))
  }

  mutating func remove(_ key: Int, at now: Int64) -> String? {
    index(of: key, at: now).map { entries.remove(at: $0).value }
  }

  func keys(at now: Int64) -> [Int] {
    entries.filter { !$0.hasExpired(at: now) }.map(\.key).sorted()
  }
}

@Suite("A cache on disk against a model", .timeLimit(.minutes(30)))
struct DiskModelTests {
  @Test(
    "Any sequence of calls returns what the model returns, even after a reopen",
    arguments: 0..<12)
  func model(run: Int) throws {
    let scene = DiskScene()
    var random = FuzzRandom(seed: TestSeed.current &+ UInt64(run))
    let limit = 3 + random.below(15)
    // The versions that exist, according to observers.
    let told = Record<(event: CacheEvent<Int>, version: UInt64)>()
    func open() throws -> DiskCache<Int, String> {
      let cache: DiskCache<Int, String> = try scene.cache(count: limit) {
        $0.store.maintenanceInterval = nil
        // Every close records the order of use.
        $0.store.checkpointRecordThreshold = 0
      }
      _ = cache.events.add { told.add(($0, $1)) }
      return cache
    }
    var cache = try open()
    var model = ModelDisk(countLimit: limit)
    for step in 0..<500 {
      let now = scene.clock.now().millisecondsSinceEpoch
      let key = random.below(25)
      switch random.below(26) {
      case 0..<8:
        // Times are half a second apart, because the store knows them within 1 %.
        let entry = ModelDisk.Entry(
          key: key, value: "\(step)", written: now, accessed: now,
          expires: random.below(3) == 0 ? now + 500 + 1000 * Int64(random.below(20)) : nil,
          idle: random.below(3) == 0 ? 500 + 1000 * Int64(random.below(15)) : nil)
        model.set(entry)
        let options = EntryOptions(
          lifetime: entry.expires.map { .milliseconds($0 - now) } ?? .standard,
          idleLimit: entry.idle.map { .milliseconds($0) })
        try cache.setValue(entry.value, forKey: key, options: options)
      case 8..<13: #expect(try cache.value(forKey: key) == model.read(key, at: now))
      case 13: #expect(try cache.entry(forKey: key)?.value == model.read(key, at: now))
      case 14:
        #expect(
          try cache.withValue(forKey: key) { String(decoding: [UInt8](copying: $0), as: UTF8.self) }
            == model.read(key, at: now))
      case 15:
        let value = model.index(of: key, at: now).map { model.entries[$0].value }
        #expect(try cache.contains(key) == (value != nil))
        #expect(try cache.peekValue(forKey: key) == value, TestSeed.comment)
      case 16: #expect(try cache.takeValue(forKey: key) == model.remove(key, at: now))
      case 17: #expect(try cache.removeValue(forKey: key) == (model.remove(key, at: now) != nil))
      case 18:
        try cache.trim(.expired)
        model.entries.removeAll { $0.hasExpired(at: now) }
        let count = random.below(limit)
        try cache.trim(.toCount(count))
        model.entries.removeFirst(max(0, model.entries.count - count))
      case 19:
        let age = 500 + 1000 * Int64(random.below(15))
        try cache.trim(.expired)
        model.entries.removeAll { $0.hasExpired(at: now) }
        if random.below(2) == 0 {
          try cache.trim(.unused(for: .milliseconds(age)))
          model.entries.removeAll { $0.accessed < now - age }
        } else {
          try cache.trim(.older(than: .milliseconds(age)))
          model.entries.removeAll { $0.written < now - age }
        }
      case 20:
        let end = now + 500 + 1000 * Int64(random.below(30))
        let isThere = try cache.setLifetime(.milliseconds(end - now), forKey: key)
        let index = model.index(of: key, at: now)
        #expect(isThere == (index != nil), TestSeed.comment)
        if let index, model.entries[index].expires != end {
          var entry = model.entries.remove(at: index)
          (entry.expires, entry.written, entry.accessed) = (end, now, now)
          model.entries.append(entry)
        }
      case 21:
        let keys = (0..<3).map { _ in random.below(25) }
        try cache.touch(keys)
        for key in keys { _ = model.read(key, at: now) }
      case 22:
        let keys = (0..<3).map { _ in random.below(25) }
        try cache.setValues(keys.map { (key: $0, value: "\(step) \($0)") })
        for key in keys {
          model.set(
            ModelDisk.Entry(key: key, value: "\(step) \(key)", written: now, accessed: now))
        }
      case 23:
        if random.below(12) == 0 {
          try cache.removeAll()
          model.entries = []
        }
      case 24:
        if random.below(6) == 0 {
          // A close records the reads only if something was also written.
          try cache.setValue("last", forKey: key)
          model.set(ModelDisk.Entry(key: key, value: "last", written: now, accessed: now))
          try cache.close()
          scene.background.discardAll()
          cache = try open()
        }
      default: scene.clock.advance(by: .seconds(random.below(6)))
      }
      if step % 20 == 0 { scene.background.runAll() }
      let later = scene.clock.now().millisecondsSinceEpoch
      #expect(try cache.keys().sorted() == model.keys(at: later), TestSeed.comment)
      #expect(try cache.count() == model.keys(at: later).count, TestSeed.comment)
      #expect(try cache.statistics().count == model.entries.count, TestSeed.comment)
    }
    // Every inserted value was removed or exists, according to observers.
    var there: Set<UInt64> = []
    for (event, version) in told.all {
      switch event {
      case .inserted: #expect(there.insert(version).inserted)
      case .removed: #expect(there.remove(version) != nil, TestSeed.comment)
      case .removedAll(let count):
        #expect(there.count == count, TestSeed.comment)
        there = []
      default: break
      }
    }
    #expect(there.count == model.entries.count, TestSeed.comment)
    // The complete order of use.
    try cache.trim(.expired)
    model.entries.removeAll { $0.hasExpired(at: scene.clock.now().millisecondsSinceEpoch) }
    while !model.entries.isEmpty {
      model.entries.removeFirst()
      try cache.trim(.toCount(model.entries.count))
      #expect(try cache.keys().sorted() == model.entries.map(\.key).sorted(), TestSeed.comment)
    }
  }

  /// All calls at once, by threads that each write to their own keys. Each thread knows what may be
  /// found for its keys: the value it set last until that is gone, and nothing from then on.
  @Test("Every thread finds its own values or nothing, and limits always hold")
  func threads() throws {
    let scene = DiskScene()
    let threads = 4
    let keys = 60
    let limit = 150
    var configuration = DiskCacheConfiguration(countLimit: limit, byteLimit: 40_000)
    configuration.store.clock = scene.clock
    configuration.store.segmentByteLimit = 64 << 10
    configuration.store.maintenanceInterval = .milliseconds(5)
    configuration.store.lifetime = .seconds(1000)
    let cache = try DiskCache<Int, String>.open(
      .path(scene.path), configuration: configuration)
    let there = Lock<[UInt64: Int]>([:])
    _ = cache.events.add { event, version in
      switch event {
      case .inserted: there.withLock { $0[version, default: 0] += 1 }
      case .removed: there.withLock { $0[version, default: 0] -= 1 }
      default: break
      }
    }
    let faults = Record<String>()
    onThreads(threads) { thread in
      var random = FuzzRandom(seed: TestSeed.current &+ UInt64(thread))
      var mine = [String?](repeating: nil, count: keys)
      var ends = [Int64](repeating: .max, count: keys)
      func now() -> Int64 { scene.clock.now().millisecondsSinceEpoch }
      func check(_ found: String?, _ index: Int, since before: Int64) {
        guard let found else {
          // Once gone, a value does not reappear by itself.
          mine[index] = nil
          return
        }
        if found != mine[index] { faults.add("\(found) instead of \(mine[index] as Any)") }
        if ends[index] <= before { faults.add("\(found) at \(before)") }
      }
      func work(_ step: Int) throws {
        let index = random.below(keys)
        let key = index * threads + thread
        let before = now()
        switch random.below(40) {
        case 0..<16:
          let lifetime: Int64? = random.below(3) == 0 ? Int64(random.below(40)) : nil
          let value =
            "\(key) \(step) " + String(repeating: "x", count: random.below(random.below(600) + 1))
          try cache.setValue(
            value, forKey: key,
            options: EntryOptions(
              lifetime: lifetime.map { .milliseconds($0) } ?? .standard,
              metadata: random.below(4) == 0 ? [1, 2] : []))
          mine[index] = value
          // The clock may have advanced before the call read it.
          ends[index] = lifetime.map { now() + $0 } ?? .max
        case 16..<24: check(try cache.value(forKey: key), index, since: before)
        case 24: check(try cache.entry(forKey: key)?.value, index, since: before)
        case 25:
          if try !cache.contains(key) { mine[index] = nil }
        case 26:
          if try cache.removeValue(forKey: key), mine[index] == nil {
            faults.add("\(key) came back")
          }
          mine[index] = nil
        case 27:
          check(try cache.takeValue(forKey: key), index, since: before)
          mine[index] = nil
        case 28: try cache.trim(.toCount(random.below(limit)))
        case 29: try cache.trim(.toBytes(1 + random.below(40_000), order: .largestFirst))
        case 30: try cache.trim(.unused(for: .milliseconds(1 + random.below(30))))
        case 31: try cache.trim(.expired)
        case 32:
          let value = "\(key) compared \(step)"
          let version = try cache.info(forKey: key)?.version
          // Other threads only remove, so a mismatch means that the key was removed meanwhile.
          switch try cache.compareAndSet(value, forKey: key, expecting: version) {
          case .stored:
            mine[index] = value
            ends[index] = .max
          case .mismatch(let current):
            if current != nil { faults.add("\(key) has another version") }
            mine[index] = nil
          }
        case 33:
          try cache.forEachEntry { entry in
            if entry.key % threads == thread {
              check(entry.value, entry.key / threads, since: before)
            }
            return random.below(100) == 0 ? .stop : .next
          }
        case 34:
          if random.below(30) == 0 { try cache.removeAll() }
        case 35:
          try cache.remove { [thread] key, _ in key % 7 == 3 && key % threads == thread }
        case 36: try cache.touch([key])
        case 37: scene.clock.advance(by: .milliseconds(random.below(8)))
        case 38: if random.below(20) == 0 { try cache.compact() }
        default:
          let usage = try cache.statistics()
          // Each of the other threads may be between its write and the eviction for it.
          if usage.count > limit + threads { faults.add("\(usage.count) entries") }
          if usage.liveByteCount > 40_000 + threads * 1000 {
            faults.add("\(usage.liveByteCount) bytes")
          }
        }
      }
      for step in 0..<1500 {
        do { try work(step) } catch { faults.add("\(error)") }
      }
    }
    #expect(faults.all == [], TestSeed.comment)
    #expect(try cache.statistics().count <= limit)
    #expect(try cache.totalCost() <= 40_000)
    let statistics = try cache.statistics()
    let cleared =
      statistics["insertions"] - statistics["replacements"] - statistics["removals"]
      - statistics["expirations"] - statistics.evictionCount
    #expect(cleared == UInt64(statistics.count), TestSeed.comment)
    // No removal was reported twice.
    #expect(there.withLock { $0.values.allSatisfy { (0...1).contains($0) } })
    let expected = try cache.keys().sorted()
    try cache.close()
    let reopened = try DiskCache<Int, String>.open(.path(scene.path), configuration: configuration)
    #expect(try reopened.keys().sorted() == expected)
  }
}
