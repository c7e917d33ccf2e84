import Cairn
import CairnStore

extension TieredModelRun {
  // MARK: Reads

  mutating func read(_ key: Int, below: Bool) throws {
    // Before the read: `contains` is not an access.
    let isHeld = try cache.tier.contains(key)
    note("read \(key)", below: below)
    let expected = model.read(key)
    if expected != nil, !isHeld, !below { tally["read from disk"] += 1 }
    if expected != nil, isHeld, !below { tally["read from memory"] += 1 }
    switch random.below(6) {
    case 0:
      let entry = try cache.entry(forKey: key)
      try expect(entry?.value, expected?.value, "the entry of \(key)")
      try compare(entry?.info, expected, key, "the entry of \(key)")
    case 1:
      let body = { (bytes: RawSpan) in [UInt8](copying: bytes) }
      let bytes =
        try cache.withValue(forKey: key, body)
      try expect(bytes != nil, expected != nil, "the bytes of \(key)")
      // A read of the bytes counts as an access in memory, but does not keep them there.
      return
    default:
      let value = below ? try cache.storedValue(forKey: key) : try cache.value(forKey: key)
      try expect(value, expected?.value, "the value of \(key)")
    }
    // Memory holds a value from its first read on.
    if !below, let expected {
      try expect(
        try cache.tier.value(forKey: key), expected.value, "what memory has of \(key) then")
    }
  }

  /// Compares the order of use before and after a call that is not an access.
  mutating func peek(_ key: Int) throws {
    let isHeld = try cache.tier.contains(key)
    note("peek \(key)")
    let accessed = try cache.info(forKey: key)?.accessed
    let value = try cache.peekValue(forKey: key)
    try expect(value, model.entry(key)?.value, "what was peeked of \(key)")
    try expect(try cache.tier.contains(key), isHeld, "whether memory holds \(key)")
    try expect(try cache.info(forKey: key)?.accessed, accessed, "the last access of \(key)")
  }

  mutating func readMany() throws {
    let keys = (0..<4).map { _ in random.below(Self.keyCount) }
    note("read \(keys)")
    let values = try cache.values(forKeys: keys)
    for (key, value) in zip(keys, values) {
      try expect(value, model.read(key)?.value, "the value of \(key), one of many")
    }
  }

  // MARK: What no answer shows

  mutating func makeMemorySmaller() throws {
    let number = random.below(8)
    note("make memory smaller: \(number)")
    switch number {
    case 0: cache.tier.trim(.toCount(random.below(4)))
    case 1: cache.tier.trim(.toCount(random.below(4), order: .largestFirst))
    case 2: cache.tier.trim(.toBytes(1 + random.below(100)))
    case 3: cache.tier.trim(.unused(for: .milliseconds(1 + random.below(5000))))
    case 4: cache.tier.removeAll()
    case 5: cache.tier.trim(.expired)
    case 6: cache.respond(to: random.once(in: 2) ? .high : .critical)
    default:
      cache.tier.countLimit = 1 + random.below(8)
      cache.enterBackground()
    }
  }

  mutating func keepHouse() throws {
    let number = random.below(8)
    note("keep house: \(number)")
    switch number {
    case 0...2: try cache.trim(.expired)
    case 3: try cache.compact()
    case 4: try cache.maintain()
    case 5: scene.diskBackground.runAll()
    case 6: scene.background.runAll()
    default:
      if !random.once(in: 5) { return }
      try cache.removeAll()
      model.removeAll()
    }
  }

  mutating func reopen(_ key: Int) throws {
    // A close records the reads only after a write.
    try set(key)
    note("open anew")
    try cache.close()
    scene.discardAll()
    cache = try scene.open(path, &random)
    tally["times opened anew"] += 1
  }

  /// Lets time pass, and runs the jobs that are then due.
  mutating func pass() {
    let duration = Duration.milliseconds(
      hasIdleLimits ? 1000 * random.below(5) : random.below(12))
    note("\(duration) pass")
    scene.clock.advance(by: duration)
    if random.once(in: 2) { scene.background.runAll(dueAfter: duration) }
  }

  // MARK: Comparisons

  func expect<Value: Equatable>(
    _ found: Value, _ expected: Value, _ what: @autoclosure () -> String
  ) throws {
    if found != expected { throw FuzzFailure("\(what()): \(found) instead of \(expected)") }
  }

  static func text(_ entry: TieredModel.Entry) -> String {
    let end = entry.expires.map { "\($0 % 1_000_000)" } ?? "-"
    return end + (entry.idleLimit.map { ", idle for \($0)" } ?? "")
  }

  func compareAll() throws {
    for key in 0..<Self.keyCount { try compare(key) }
    try expect(try cache.keys().sorted(), model.keys, "the keys")
    try expect(try cache.count(), model.keys.count, "the number of keys")
    let held = try cache.tier.keys().filter { try cache.tier.contains($0) }
    try expect(cache.tier.count(), held.count, "the number of keys in memory")
  }

  /// Compares an entry by queries that are not accesses.
  func compare(_ key: Int) throws {
    let expected = model.entry(key)
    // Memory first: a call to the cache may make memory drop an entry.
    if let value = try cache.tier.value(forKey: key) {
      try expect(value, expected?.value, "what memory has of \(key)")
      let info = try cache.tier.info(forKey: key)
      try compare(info, expected, key, "what memory knows of \(key)", isHeld: true)
    } else {
      try expect(try cache.tier.contains(key), false, "whether memory has \(key)")
    }
    try expect(try cache.containsStored(key), expected != nil, "whether \(key) is on disk")
    try expect(try cache.contains(key), expected != nil, "whether \(key) is there")
    try compare(try cache.info(forKey: key), expected, key, "what the disk knows of \(key)")
    try compare(try cache.info(forKey: key), expected, key, "what is known of \(key)")
  }

  private func compare(
    _ info: EntryInfo?, _ expected: TieredModel.Entry?, _ key: Int, _ what: String,
    isHeld: Bool = false
  ) throws {
    try expect(info?.version, expected?.version, "the version in \(what)")
    guard let info, let expected else { return }
    let end = info.expires?.millisecondsSinceEpoch
    try expect(end, expected.expires, "the end in \(what)")
    try expect(
      info.idleLimit, expected.idleLimit.map { .milliseconds($0) }, "the idle limit in \(what)")
    if let cost = expected.cost { try expect(info.cost, cost, "the cost in \(what)") }
  }
}
