import CairnStore
import FuzzSupport
import Testing

@Suite("A byte limit that holds with every write")
struct ByteLimitTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A store whose limit is in bytes, so that few large values are evicted at a time.
  func makeStore(byteLimit: Int) throws -> Store {
    try Store(
      directory.store,
      .small {
        $0.byteLimit = byteLimit
        $0.segmentByteLimit = 16 << 20
      })
  }

  @Test("Live bytes stay within their limit, with values of all sizes")
  func allSizes() throws {
    var random = Seed.generator()
    let limit = 200_000
    // Records that a compaction moves briefly count twice.
    let queue = ManualBackgroundQueue()
    let store = try Store(
      directory.store, .small { $0.byteLimit = limit }, background: queue)
    for step in 0..<3000 {
      if step % 20 == 0 { queue.runAll() }
      let byteCount = step % 50 == 0 ? Int.random(in: 0..<100_000, using: &random) : step % 300
      try store.setValue([UInt8](repeating: 7, count: byteCount), forKey: "\(step % 1000)")
      let live = try store.statistics().liveByteCount
      #expect(live <= limit, Seed.comment)
      #expect(try store.contains("\(step % 1000)"), "the newest stays")
    }
    // The values after the last large one exist, whatever its size.
    #expect(try store.count() >= 50)
  }

  @Test("An entry that is larger than the limit is refused, and evicts nothing")
  func tooLarge() throws {
    let store = try Store(directory.store, .small { $0.byteLimit = 10_000 })
    try store.setValue("v", forKey: "stays")
    let error = storeError {
      try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "large")
    }
    guard case .tooLarge("value", 10_000, let largest) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try store.contains("stays"))
    // The reported limit is the one that holds.
    try store.setValue([UInt8](repeating: 1, count: largest), forKey: "large")
    #expect(
      storeError {
        try store.setValue([UInt8](repeating: 1, count: largest + 1), forKey: "large")
      } != nil)
  }

  @Test("A value of nearly the whole limit can be read after it was set")
  func nearlyTheLimit() throws {
    let store = try Store(directory.store, .small { $0.byteLimit = 65_536 })
    for (number, byteCount) in [65_000, 65_100, 65_200, 65_000].enumerated() {
      let value = [UInt8](repeating: UInt8(number), count: byteCount)
      try store.setValue(value, forKey: "key \(number)")
      #expect(try store.value(forKey: "key \(number)") == value)
      #expect(try store.count() == 1)
    }
  }

  @Test("An entry of a batch that is larger than the limit is refused, not lost")
  func batchOfLargest() throws {
    let store = try makeStore(byteLimit: 10_000)
    let error = storeError {
      try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "key")
    }
    guard case .tooLarge("value", _, let largest) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    for byteCount in largest - 24...largest {
      do {
        try store.write {
          try $0.setValue([UInt8](repeating: 1, count: byteCount), forKey: "key")
        }
        #expect(try store.value(forKey: "key")?.count == byteCount)
      } catch let error as StoreError {
        guard case .tooLarge("value", _, _) = error else { throw error }
      }
    }
  }

  @Test("The limit holds even if every candidate has been read since")
  func allRead() throws {
    let limit = 24_000_000
    let store = try makeStore(byteLimit: limit)
    let value = [UInt8](repeating: 1, count: 12_000)
    for number in 0..<2010 { try store.setValue(value, forKey: "\(number)") }
    for _ in 0..<3 {
      for number in 0..<2010 { _ = try store.withValue(forKey: "\(number)") { $0.byteCount } }
      for number in 3000..<3020 {
        try store.setValue(value, forKey: "\(number)")
        #expect(try store.statistics().liveByteCount <= limit)
        #expect(try store.contains("\(number)"))
      }
    }
  }

  @Test("The limit holds even if everything was removed and written again")
  func refilled() throws {
    let limit = 24_000_000
    let store = try makeStore(byteLimit: limit)
    let value = [UInt8](repeating: 1, count: 12_000)
    for round in 0..<2 {
      for number in 0..<2010 {
        try store.setValue(value, forKey: "\(number)")
        #expect(try store.statistics().liveByteCount <= limit)
      }
      #expect(try store.contains("2009"), "round \(round)")
      try store.removeAll()
    }
  }

  @Test("No more than 1 % is evicted beyond what a byte limit needs, however large the oldest are")
  func largeOldest() throws {
    let limit = 10_000_000
    let store = try makeStore(byteLimit: limit)
    let large = 200_000
    for number in 0..<20 {
      try store.setValue([UInt8](repeating: 1, count: large), forKey: "large \(number)")
    }
    let small = [UInt8](repeating: 1, count: 1000)
    var lowest = limit
    for number in 0..<16_000 {
      try store.setValue(small, forKey: "\(number)")
      let live = try store.statistics().liveByteCount
      #expect(live <= limit)
      if number > 6000 { lowest = min(lowest, live) }
    }
    #expect(lowest >= limit - limit / 100 - large - 100)
    // Chosen entries that stayed are still next.
    let left = try store.contents().keys.compactMap { Int($0) }
    #expect(try store.count() == left.count)
    #expect(left.sorted() == Array(16_000 - left.count..<16_000))
  }
}
