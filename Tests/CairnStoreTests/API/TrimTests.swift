import CairnStore
import FuzzSupport
import Testing

@Suite("Trimming")
struct TrimTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let queue = ManualBackgroundQueue()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, .small(clock: clock), background: queue)
  }

  func fill(_ count: Int, byteCount: Int = 20) throws {
    for number in 0..<count {
      try store.setValue([UInt8](repeating: 1, count: byteCount), forKey: "key\(number)")
    }
  }

  /// The numbers of the remaining keys.
  func left(_ store: Store? = nil) throws -> [Int] {
    try (store ?? self.store).contents().keys.compactMap { Int($0.dropFirst(3)) }.sorted()
  }

  // MARK: Order

  @Test("The least recently written go first, exactly")
  func written() throws {
    try fill(1000)
    try store.setValue("again", forKey: "key0")
    let summary = try store.trim(.toCount(10))
    #expect(summary.count == 990)
    #expect(summary.damagedCount == 0)
    #expect(try left() == [0] + Array(991..<1000))
    #expect(try store.count() == 10)
  }

  @Test(
    "A read keeps an entry, in every form of reading",
    arguments: ["value", "entry", "withValue", "values"])
  func read(form: String) throws {
    try fill(10)
    for key in ["key3", "key1"] {
      switch form {
      case "value": _ = try store.value(forKey: key)
      case "entry": _ = try store.entry(forKey: key)
      case "withValue": _ = try store.withValue(forKey: key) { $0.byteCount }
      default: _ = try store.values(forKeys: [key])
      }
    }
    try store.trim(.toCount(3))
    #expect(try left() == [1, 3, 9])
    try store.trim(.toCount(1))
    #expect(try left() == [1])
  }

  @Test(
    "A call that is not an access protects nothing",
    arguments: ["contains", "info", "keys", "entries", "count", "where", "failed"])
  func notRead(form: String) throws {
    try fill(10)
    switch form {
    case "contains": _ = try store.contains("key0")
    case "info": _ = try store.info(forKey: "key0")
    case "keys": try store.forEachKey { _ in .next }
    case "entries": try store.forEachEntry { _ in .next }
    case "count": _ = try store.count()
    case "where": #expect(try store.remove { _, _ in false }.count == 0)
    default: _ = try store.compareAndSet("v", forKey: "key0", expecting: 9999)
    }
    try store.trim(.toCount(9))
    #expect(try left() == Array(1..<10))
  }

  @Test("Random accesses: the survivors are the most recently used, to the tick")
  func exact() throws {
    var generator = Seed.generator()
    var recency: [Int] = []
    func touch(_ number: Int) {
      recency.removeAll { $0 == number }
      recency.append(number)
    }
    for round in 0..<20 {
      for _ in 0..<300 {
        let number = Int.random(in: 0..<200, using: &generator)
        let key = "key\(number)"
        switch Int.random(in: 0..<8, using: &generator) {
        case 0..<3:
          try store.setValue(
            "v", forKey: key, lifetime: number % 3 == 0 ? .seconds(1000) : .standard)
          touch(number)
        case 3..<7: if try store.value(forKey: key) != nil { touch(number) }
        default:
          try store.removeValue(forKey: key)
          recency.removeAll { $0 == number }
        }
      }
      let limit = Int.random(in: 0...recency.count, using: &generator)
      let summary = try store.trim(.toCount(limit))
      #expect(summary.count == recency.count - limit, Seed.comment)
      recency.removeFirst(recency.count - limit)
      #expect(try left() == recency.sorted(), "round \(round), \(Seed.comment)")
    }
  }

  @Test("A close keeps the order of recency, reads included")
  func reopened() throws {
    try fill(300, byteCount: 1000)
    try store.setValue("v", forKey: "key5")
    _ = try store.value(forKey: "key0")
    try store.close()
    let again = try Store(directory.store, .small(clock: clock))
    try again.trim(.toCount(3))
    #expect(try left(again) == [0, 5, 299])
  }

  @Test("The largest go first; among equals, the least recently used")
  func largest() throws {
    for number in 0..<50 {
      try store.setValue([UInt8](repeating: 1, count: number / 10 * 100), forKey: "key\(number)")
    }
    _ = try store.value(forKey: "key30")
    #expect(try store.trim(.toCount(35, order: .largestFirst)).count == 15)
    #expect(try left() == Array(0..<31) + Array(36..<40))
    let live = try store.statistics().liveByteCount
    try store.trim(.toBytes(live - 1, order: .largestFirst))
    #expect(try left() == Array(0..<31) + Array(37..<40))
  }

  // MARK: Bytes

  @Test("No more entries are removed than the bytes require")
  func bytes() throws {
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: number * 10), forKey: "key\(number)")
    }
    let before = try store.statistics().liveByteCount
    for share in [9, 8, 5, 3, 1] {
      let limit = before / 10 * share
      let live = try store.statistics().liveByteCount
      let summary = try store.trim(.toBytes(limit))
      let after = try store.statistics().liveByteCount
      #expect(after <= limit)
      #expect(live - after == summary.cost)
      let oldest = try #require(try left().first)
      // The last removal was needed.
      #expect(after + 40 + 10 * (oldest - 1) > limit)
      #expect(try left() == Array(oldest..<200))
    }
    let count = try store.count()
    #expect(try store.trim(.toBytes(0)).count == count)
    #expect(try store.count() == 0)
    #expect(try store.statistics().liveByteCount == 0)
  }

  @Test(
    "A trim to bytes removes no more extended entries than it must, and reports what it removed")
  func extended() throws {
    for number in 10..<50 {
      try store.setValue([1], forKey: "\(number)", lifetime: .seconds(100))
      try store.setLifetime(.seconds(200), forKey: "\(number)")
    }
    let before = try store.statistics().liveByteCount
    let summary = try store.trim(.toBytes(before / 2))
    #expect(summary.count == 20)
    #expect(try store.count() == 20)
    #expect(try store.statistics().liveByteCount == before - summary.cost)
  }

  @Test("Many small entries before few large ones")
  func skewed() throws {
    try fill(2000, byteCount: 1)
    for number in 2000..<2010 {
      try store.setValue([UInt8](repeating: 1, count: 20_000), forKey: "key\(number)")
    }
    try store.trim(.toBytes(45_000))
    #expect(try left() == [2008, 2009])
  }

  // MARK: Age

  @Test("By access, entries used since stay")
  func byAccess() throws {
    try fill(10)
    clock.advance(by: .seconds(100))
    _ = try store.value(forKey: "key4")
    try store.setValue("new", forKey: "key7")
    clock.advance(by: .seconds(100))
    #expect(try store.trim(.unused(for: .seconds(250))).count == 0)
    #expect(try store.trim(.unused(for: .seconds(150))).count == 8)
    #expect(try left() == [4, 7])
    #expect(try store.trim(.unused(for: .seconds(101))).count == 0)
    #expect(try store.trim(.unused(for: .seconds(99))).count == 2)
  }

  @Test("By write, reads do not count")
  func byWrite() throws {
    try fill(10)
    clock.advance(by: .seconds(100))
    for number in 0..<10 { _ = try store.value(forKey: "key\(number)") }
    try store.setValue("new", forKey: "key7")
    clock.advance(by: .seconds(100))
    #expect(try store.trim(.older(than: .seconds(250))).count == 0)
    #expect(try store.trim(.older(than: .seconds(150))).count == 9)
    #expect(try left() == [7])
  }

  @Test(
    "An age of zero or less removes everything",
    arguments: [Duration.zero, .seconds(-5), .seconds(Int64.min)].flatMap {
      [Trim.unused(for: $0), .older(than: $0)]
    })
  func noAge(trim: Trim) throws {
    try fill(10)
    #expect(try store.trim(trim).count == 10)
    #expect(try left() == [])
  }

  @Test(
    "The longest age removes nothing",
    arguments: [Trim.unused(for: .seconds(Int64.max)), .older(than: .seconds(Int64.max))])
  func longestAge(trim: Trim) throws {
    try fill(10)
    clock.advance(by: .seconds(1_000_000))
    #expect(try store.trim(trim).count == 0)
  }

  // MARK: Expiry

  @Test("Expired entries go before all others")
  func expiredFirst() throws {
    try fill(10)
    for number in 10..<15 {
      try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(number == 14 ? 9 : 1))
    }
    clock.advance(by: .seconds(2))
    #expect(try store.count() == 11)
    #expect(try store.trim(.toCount(11)).count == 4)
    #expect(try store.count() == 11)
    #expect(try store.trim(.toCount(10)).count == 1)
    #expect(try left() == Array(1..<10) + [14])
  }

  @Test("Removing the expired takes them, and only them, out of the index and the live bytes")
  func removeExpired() throws {
    try fill(100, byteCount: 2000)
    for number in 100..<200 {
      try store.setValue(
        [UInt8](repeating: 1, count: 1000), forKey: "key\(number)",
        options: EntryOptions(
          lifetime: number % 2 == 0 ? .seconds(10) : .standard,
          idleLimit: number % 4 == 1 ? .seconds(30) : nil))
    }
    #expect(try store.trim(.expired).count == 0)
    clock.advance(by: .seconds(20))
    _ = try store.value(forKey: "key101")
    let before = try store.statistics()
    let summary = try store.trim(.expired)
    #expect(summary.count == 50)
    var after = try store.statistics()
    #expect(after.count == 150)
    #expect(after.liveByteCount == before.liveByteCount - summary.cost)
    #expect(after.tombstoneCount == before.tombstoneCount + 50)
    clock.advance(by: .seconds(12))
    #expect(try store.trim(.expired).count == 24)
    after = try store.statistics()
    #expect(after.count == 126)
    #expect(try store.contains("key101"))
    #expect(try store.trim(.expired) == RemovalSummary())
  }

  @Test("After a reopen, expired entries are found too")
  func removeExpiredReopened() throws {
    for number in 0..<100 {
      try store.setValue(
        [UInt8](repeating: 1, count: 2000), forKey: "key\(number)",
        lifetime: number < 7 ? .seconds(5) : .standard)
    }
    try store.close()
    clock.advance(by: .seconds(5))
    // Rounds of maintenance would remove them too.
    let again = try Store(
      directory.store, .small(clock: clock) { $0.maintenanceInterval = nil })
    #expect(try again.trim(.expired).count == 7)
    #expect(try again.statistics().count == 93)
  }

  // MARK: Keys and predicates

  @Test("Keys are removed by name; absent and expired ones do not count")
  func keys() throws {
    try fill(5)
    try store.setValue("v", forKey: "short", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    #expect(try store.removeValues(forKeys: ["key1", "none", "key3", "key1", "short"]) == 2)
    #expect(try left() == [0, 2, 4])
    #expect(try store.removeValues(forKeys: [String]()) == 0)
    guard case .invalidKey = storeError({ try store.removeValues(forKeys: ["key0", "", "key2"]) })
    else {
      Issue.record("no error")
      return
    }
    #expect(try left() == [2, 4])
  }

  @Test("A predicate chooses by size, cost, age and key")
  func predicate() throws {
    for number in 0..<20 {
      try store.setValue(
        [UInt8](repeating: 1, count: number), forKey: "key\(number)", options: .cost(number))
      clock.advance(by: .seconds(1))
    }
    let time = clock.now().advanced(by: .seconds(-18))
    #expect(try store.remove { _, info in info.valueByteCount >= 17 }.count == 3)
    #expect(try store.remove { _, info in info.cost == 5 }.count == 1)
    #expect(try store.remove { _, info in info.written < time }.count == 2)
    #expect(try store.remove { key, _ in key.byteCount == 5 }.count == 7)
    #expect(try left() == [2, 3, 4, 6, 7, 8, 9])
  }

  struct Refusal: Error {}

  @Test("The predicate's error is thrown, and nothing is removed")
  func predicateThrows() throws {
    try fill(100)
    var count = 0
    #expect(throws: Refusal.self) {
      try store.remove { _, _ in
        count += 1
        if count == 90 { throw Refusal() }
        return true
      }
    }
    #expect(count == 90)
    #expect(try store.count() == 100)
  }

  @Test("A predicate may use the store, and what it rewrites stays")
  func predicateWrites() throws {
    try fill(20)
    let summary = try store.remove { key, _ in
      if try store.count() == 20, key.byteCount == 4 { try store.setValue("new", forKey: key) }
      return true
    }
    #expect(summary.count == 10)
    #expect(try left() == Array(0..<10))
  }

  @Test("If a predicate removes everything and writes again, the new entries stay")
  func predicateRemovesAll() throws {
    try store.setValue("old", forKey: "key")
    let summary = try store.remove { key, _ in
      try store.removeAll()
      try store.setValue("new", forKey: key)
      return true
    }
    #expect(summary.count == 0)
    #expect(try store.text("key") == "new")
  }

  // MARK: Arguments

  @Test("An empty store has nothing to trim")
  func empty() throws {
    #expect(try store.trim(.toCount(0)) == RemovalSummary())
    #expect(try store.trim(.toBytes(0, order: .largestFirst)) == RemovalSummary())
    #expect(try store.trim(.unused(for: .zero)) == RemovalSummary())
    #expect(try store.trim(.expired, durability: .durable) == RemovalSummary())
    #expect(try store.remove { _, _ in true } == RemovalSummary())
    #expect(try store.statistics().segmentCount == 0)
  }

  @Test("A limit below zero counts as zero", arguments: [0, -1, Int.min], [true, false])
  func nothingLeft(limit: Int, byCount: Bool) throws {
    try fill(100)
    let summary = try byCount ? store.trim(.toCount(limit)) : store.trim(.toBytes(limit))
    #expect(summary.count == 100)
    #expect(try store.count() == 0)
    try store.setValue("v", forKey: "key")
    #expect(try store.count() == 1)
  }

  @Test(
    "A limit that already holds removes nothing and writes nothing", arguments: [100, 101, Int.max])
  func holds(limit: Int) throws {
    try fill(100)
    let last = try store.statistics().lastVersion
    #expect(try store.trim(.toCount(limit)) == RemovalSummary())
    #expect(try store.trim(.toBytes(max(limit, 1 << 20))) == RemovalSummary())
    #expect(try store.trim(.toBytes(Int.max, order: .largestFirst)) == RemovalSummary())
    #expect(try store.statistics().lastVersion == last)
  }

  @Test("A store that is closed or open for reading removes nothing")
  func notWritable() throws {
    try fill(10)
    try store.close()
    let reader = try Store(directory.store, .small(clock: clock), readOnly: true)
    for (store, expected) in [
      (store, StoreError.closed(path: directory.store)),
      (reader, StoreError.readOnly(path: directory.store)),
    ] {
      #expect(throws: expected) { try store.trim(.toCount(1)) }
      #expect(throws: expected) { try store.trim(.toCount(1, order: .largestFirst)) }
      #expect(throws: expected) { try store.trim(.toBytes(1)) }
      #expect(throws: expected) { try store.trim(.unused(for: .zero)) }
      #expect(throws: expected) { try store.trim(.older(than: .zero)) }
      #expect(throws: expected) { try store.trim(.expired) }
      #expect(throws: expected) { try store.removeValues(forKeys: ["key1"]) }
      #expect(throws: expected) { try store.remove { _, _ in true } }
    }
    #expect(try reader.count() == 10)
  }
}
