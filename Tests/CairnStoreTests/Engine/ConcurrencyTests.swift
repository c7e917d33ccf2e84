import CairnRepair
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Many threads")
struct ConcurrencyTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A value that shows its key and number, and that they belong together.
  static func value(_ key: Int, _ number: Int, byteCount: Int) -> [UInt8] {
    let text = "\(key) \(number) "
    return Array(text.utf8)
      + [UInt8](repeating: UInt8((key &* 31 &+ number) & 0xFF), count: byteCount)
  }

  static func number(in value: [UInt8], ofKey key: Int) throws -> Int {
    let words = value.split(
      separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
    let found = words.count == 3 ? Int(String(decoding: words[0], as: UTF8.self)) : nil
    guard found == key, let number = Int(String(decoding: words[1], as: UTF8.self)),
      words[2].allSatisfy({ $0 == UInt8((key &* 31 &+ number) & 0xFF) })
    else { throw SupportError(call: "a torn value of \(key)", number: 0) }
    return number
  }

  @Test(
    "Readers see whole values, and never an older value of a key than before",
    arguments: [true, false])
  func monotonic(mapsFiles: Bool) throws {
    let store = try Store(directory.store, .small { $0.mapsFiles = mapsFiles })
    let keys = 8
    for key in 0..<keys { try store.setValue(Self.value(key, 0, byteCount: 10), forKey: "\(key)") }
    let writersLeft = Atomic(2)
    try onThreads(5) { thread in
      if thread < 2 {
        defer { writersLeft.subtract(1, ordering: .sequentiallyConsistent) }
        // Each writer has its own keys. Sizes vary, so that segments roll and some values get their
        // own segments.
        for number in 1...400 {
          for key in stride(from: thread, to: keys, by: 2) {
            let byteCount = number % 97 == 0 ? 70_000 : number * 7 % 900
            try store.setValue(Self.value(key, number, byteCount: byteCount), forKey: "\(key)")
          }
        }
      } else {
        var last = [Int](repeating: 0, count: keys)
        var reads = 0
        while writersLeft.load(ordering: .sequentiallyConsistent) > 0 || reads < 1000 {
          let key = reads % keys
          let number: Int
          if thread == 2 {
            number = try Self.number(in: store.value(forKey: "\(key)") ?? [], ofKey: key)
          } else if thread == 3 {
            let found = try store.withValue(forKey: "\(key)") {
              try Self.number(in: $0.copied(), ofKey: key)
            }
            number = found ?? -1
          } else {
            number = try Self.number(in: store.entry(forKey: "\(key)")?.value ?? [], ofKey: key)
          }
          guard number >= last[key] else {
            throw SupportError(call: "key \(key) went back to \(number)", number: 0)
          }
          last[key] = number
          reads += 1
        }
      }
    }
    for key in 0..<keys {
      #expect(try Self.number(in: store.value(forKey: "\(key)") ?? [], ofKey: key) == 400)
    }
    let contents = try store.contents()
    try store.close()
    #expect(try Store(directory.store).contents() == contents)
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("Threads that set and remove the same keys agree with the versions returned to them")
  func sameKeys() throws {
    let store = try Store(directory.store)
    let newest = Mutex<[Int: (version: UInt64, value: Int)]>([:])
    try onThreads(4) { thread in
      for number in 0..<300 {
        let key = number % 5
        let version = try store.setValue("\(thread * 1000 + number)", forKey: "\(key)")
        newest.withLock { newest in
          if (newest[key]?.version ?? 0) < version {
            newest[key] = (version, thread * 1000 + number)
          }
        }
      }
    }
    for (key, expected) in newest.withLock({ $0 }) {
      #expect(try store.text("\(key)") == "\(expected.value)")
      #expect(try store.info(forKey: "\(key)")?.version == expected.version)
    }
    #expect(try store.count() == 5)
  }

  @Test("Concurrent iterations, removals of all, statistics and writes do no harm")
  func mixture() throws {
    let store = try Store(directory.store)
    try onThreads(4) { thread in
      for number in 0..<60 {
        switch thread {
        case 0:
          for key in 0..<20 {
            try store.setValue(Self.value(key, number, byteCount: 900), forKey: "\(key)")
          }
        case 1:
          try store.forEachEntry { entry in
            let key = Int(String(decoding: entry.key, as: UTF8.self)) ?? -1
            _ = try Self.number(in: entry.value, ofKey: key)
            return .next
          }
        case 2:
          _ = try store.statistics()
          _ = try store.count()
          try store.sync()
        default:
          if number % 10 == 9 { try store.removeAll() }
        }
      }
    }
    let contents = try store.contents()
    #expect(try store.count() == contents.count)
    try store.close()
    #expect(try Store(directory.store).contents() == contents)
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test(
    "A close while others use the store makes them throw closed, and loses nothing acknowledged")
  func close() throws {
    for round in 0..<5 {
      let path = directory("store\(round)")
      let store = try Store(path)
      let acknowledged = Mutex<[String: Int]>([:])
      let started = Atomic(0)
      let writers = (0..<3).map { thread in
        Background {
          for number in 0... {
            if number == 20 { started.add(1, ordering: .sequentiallyConsistent) }
            do {
              try store.setValue(
                "\(number)", forKey: "\(thread)", durability: thread == 0 ? .durable : .process)
            } catch StoreError.closed {
              return
            }
            acknowledged.withLock { $0["\(thread)"] = number }
          }
        }
      }
      let reader = Background {
        do {
          while true { _ = try store.value(forKey: "0") }
        } catch StoreError.closed {
        }
      }
      try waitUntil { started.load(ordering: .sequentiallyConsistent) == 3 }
      try store.close()
      for thread in writers + [reader] {
        #expect(thread.finishes())
        #expect(thread.error == nil)
      }
      let again = try Store(path)
      #expect(try again.statistics().recovery.wasClean)
      for (key, number) in acknowledged.withLock({ $0 }) {
        // A write that threw closed must not have happened, nor any later one.
        let found = try #require(try again.text(key).flatMap { Int($0) })
        #expect(found == number || found == number + 1, "thread \(key)")
      }
      try again.close()
      #expect(try Store.verify(path: path).errors == [])
    }
  }

  @Test("If many threads open a store at once, exactly one gets it")
  func openers() throws {
    for round in 0..<10 {
      let path = directory("store\(round)")
      let stores = Mutex<[Store]>([])
      let locked = Atomic(0)
      try onThreads(6) { _ in
        do {
          let store = try Store(path)
          stores.withLock { $0.append(store) }
        } catch StoreError.locked {
          locked.add(1, ordering: .sequentiallyConsistent)
        }
      }
      #expect(stores.withLock { $0.count } == 1)
      #expect(locked.load(ordering: .sequentiallyConsistent) == 5)
    }
  }

  @Test("Keys that collide under weak hashes take no longer than random ones")
  func hashFlooding() throws {
    // Keys that differ only in high bits, or by multiples of powers of two: they collide in tables
    // that multiply or mask. Under a keyed hash they are as good as any.
    let index = HashIndex(recency: RecencyClock(now: ManualClock.start))
    let hash = SipHash(secret: Array(0..<16))
    var perShard = [Int](repeating: 0, count: 256)
    for number in 0..<65_536 {
      var key = [UInt8](repeating: 0, count: 16)
      key.withMutableSpan { $0.store(UInt64(number) << 48, at: 0) }
      let value = hash.hash(key.rawSpan)
      perShard[Int(value & 0xFF)] += 1
      index.insert(value, location: Location(rawValue: UInt64(number + 1)), flags: [])
    }
    // About 256 per shard: six standard deviations are 96.
    #expect(perShard.allSatisfy { (160...352).contains($0) })
    #expect(index.byteCount / 65_536 <= 40)
  }
}
