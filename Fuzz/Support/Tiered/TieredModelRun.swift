import Cairn
import CairnRepair
import CairnStore

/// Calls of one thread to a two-tier cache. The model predicts each result exactly, even at the
/// millisecond at which something ends, whichever tier the result comes from.
///
/// In one half of the runs, time advances by single milliseconds. The other half also has idle
/// limits. There, time advances by seconds, and limits end between them, because the disk records
/// accesses only within 1 %.
package struct TieredModelRun {
  typealias Cache = DiskCache<Int, String>

  static let keyCount = 12

  let scene = TieredModelScene()
  let path: String
  let hasIdleLimits: Bool
  var random: FuzzRandom
  var cache: Cache
  var model: TieredModel
  private var step = 0
  /// What was done, to help examine a failure.
  private var done: [String] = []
  var tally = Tally()

  package static func run(seed: UInt64) throws -> Tally {
    let directory = try RunDirectory(onDisk: false)
    var run = try TieredModelRun(seed: seed, path: directory.store)
    try run.work()
    let errors = try Store.verify(path: directory.store).errors
    guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
    return run.tally
  }

  private init(seed: UInt64, path: String) throws {
    random = FuzzRandom(seed: seed)
    self.path = path
    hasIdleLimits = random.once(in: 2)
    model = TieredModel(now: scene.clock.now().millisecondsSinceEpoch)
    cache = try scene.open(path, &random)
  }

  private mutating func work() throws {
    do {
      for _ in 0..<400 {
        step += 1
        model.now = scene.clock.now().millisecondsSinceEpoch
        let key = random.below(Self.keyCount)
        try takeStep(key)
        model.now = scene.clock.now().millisecondsSinceEpoch
        try compare(key)
        if random.once(in: 20) { try compareAll() }
      }
      try compareAll()
      try cache.close()
    } catch {
      throw FuzzFailure(
        "step \(step): \(error); idle limits: \(hasIdleLimits); the last steps:\n  "
          + done.suffix(40).joined(separator: "\n  "))
    }
    scene.discardAll()
    tally["runs"] += 1
    tally["steps"] += step
  }

  private mutating func takeStep(_ key: Int) throws {
    switch random.below(40) {
    case 0..<7: try set(key)
    case 7..<14: try read(key, below: random.once(in: 3))
    case 14: try readMany()
    case 15: try setMany()
    case 16..<18: try setLifetime(key)
    case 18: try take(key)
    case 19: try remove(key)
    case 20: try compareAndSet(key)
    case 21: try compareAndRemove(key)
    case 22: try update(key)
    case 23..<25: try makeMemorySmaller()
    case 25: try keepHouse()
    case 26: if random.once(in: 8) { try reopen(key) }
    case 27: try peek(key)
    case 28..<34: try read(key, below: false)
    default: pass()
    }
  }

  // MARK: Writes

  private mutating func newEntry(_ key: Int) -> TieredModel.Entry {
    let ends = random.once(in: 2)
    let idles = hasIdleLimits && random.once(in: 3)
    // Some lengths end around the moments at which time stands still. Others end at once.
    let length =
      hasIdleLimits
      ? 1000 * Int64(random.below(12)) + Int64(random.below(3)) - 1 : Int64(random.below(40)) - 2
    return TieredModel.Entry(
      value: "\(key) \(step)" + String(repeating: "x", count: random.below(40)), version: 0,
      cost: random.once(in: 3) ? random.below(100) : nil, written: model.now,
      accessed: model.now, expires: ends ? model.now + length : nil,
      idleLimit: idles ? 500 + 1000 * Int64(random.below(15)) : nil)
  }

  /// A length or an end, which are equivalent here.
  private mutating func lifetime(_ entry: TieredModel.Entry) -> Lifetime {
    guard let expires = entry.expires else { return random.once(in: 2) ? .standard : .unlimited }
    return random.once(in: 2)
      ? .milliseconds(expires - entry.written)
      : .until(Timestamp(millisecondsSinceEpoch: expires))
  }

  mutating func note(_ text: String, below: Bool = false) {
    done.append("\(step) at \(model.now % 1_000_000): \(text)\(below ? " below" : "")")
  }

  mutating func set(_ key: Int) throws {
    var entry = newEntry(key)
    let lifetime = lifetime(entry)
    let idleLimit = entry.idleLimit.map { Duration.milliseconds($0) }
    note("set \(key) until \(Self.text(entry))")
    let options = EntryOptions(cost: entry.cost, lifetime: lifetime, idleLimit: idleLimit)
    entry.version = try cache.setValue(entry.value, forKey: key, options: options)
    model.set(entry, forKey: key)
    tally["sets"] += 1
  }

  private mutating func setMany() throws {
    var keys = (0..<3).map { _ in random.below(Self.keyCount) }
    // One batch has one lifetime.
    let common = newEntry(keys[0])
    let lifetime = lifetime(common)
    let idleLimit = common.idleLimit.map { Duration.milliseconds($0) }
    let pairs = keys.enumerated().map { (key: $0.element, value: "\(step) \($0.offset)") }
    note("set \(keys) until \(Self.text(common))")
    let removesFirst = random.once(in: 3)
    if removesFirst {
      try cache.write { batch in
        for (key, value) in pairs {
          try batch.setValue(
            value, forKey: key, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
        }
        try batch.removeValue(forKey: keys[0])
      }
    } else {
      try cache.setValues(pairs, options: EntryOptions(lifetime: lifetime, idleLimit: idleLimit))
    }
    for (key, value) in pairs {
      var entry = common
      entry.value = value
      entry.cost = nil
      entry.version = try cache.info(forKey: key)?.version ?? 0
      model.set(entry, forKey: key)
    }
    if removesFirst { _ = model.remove(keys[0]) }
    keys = Array(Set(keys))
    for key in keys { try compare(key) }
  }

  private mutating func setLifetime(_ key: Int) throws {
    let length =
      hasIdleLimits
      ? 1000 * Int64(random.below(30)) + Int64(random.below(3)) : Int64(random.below(100))
    note("lifetime of \(key): \(length)")
    let isThere = try cache.setLifetime(.milliseconds(length), forKey: key)
    let version = try cache.info(forKey: key)?.version
    try expect(
      isThere, model.setLifetime(key, to: length, version: version), "a lifetime of \(key)")
    if isThere { tally["lifetimes"] += 1 }
  }

  private mutating func take(_ key: Int) throws {
    note("take \(key)")
    let value =
      try cache.takeValue(forKey: key)
    try expect(value, model.remove(key)?.value, "what was taken of \(key)")
  }

  private mutating func remove(_ key: Int) throws {
    note("remove \(key)")
    let isThere: Bool
    switch random.below(3) {
    case 0:
      isThere =
        try cache.removeValue(forKey: key)
    case 1:
      isThere =
        try cache.removeValues(forKeys: [key]) == 1
    default:
      isThere =
        try cache.remove { other, _ in other == key }.count == 1
    }
    try expect(isThere, model.remove(key) != nil, "a removal of \(key)")
  }

  private mutating func compareAndSet(_ key: Int) throws {
    var entry = newEntry(key)
    let lifetime = lifetime(entry)
    let idleLimit = entry.idleLimit.map { Duration.milliseconds($0) }
    let current = model.entry(key)?.version
    let expected = random.once(in: 3) ? (random.once(in: 2) ? nil : 1) : current
    note("compare and set \(key) until \(Self.text(entry))")
    let result =
      try cache.compareAndSet(
        entry.value, forKey: key, expecting: expected,
        options: EntryOptions(cost: entry.cost, lifetime: lifetime, idleLimit: idleLimit))
    switch result {
    case .stored(let version):
      try expect(expected, current, "the version of \(key) that was expected")
      entry.version = version
      model.set(entry, forKey: key)
    case .mismatch(let found):
      try expect(found, current, "the version of \(key) that was found")
      guard expected != current else { throw FuzzFailure("a mismatch with what was expected") }
    }
  }

  private mutating func compareAndRemove(_ key: Int) throws {
    let current = model.entry(key)?.version
    let expected = random.once(in: 3) ? 1 : current ?? 1
    note("compare and remove \(key)")
    let isRemoved =
      try cache.compareAndRemove(forKey: key, expecting: expected)
    try expect(isRemoved, expected == current, "a removal of \(key) by its version")
    if isRemoved { _ = model.remove(key) }
  }

  /// An update that keeps the value's end and its idle limit.
  private mutating func update(_ key: Int) throws {
    let present = model.read(key)
    let removes = random.once(in: 4)
    let value = "\(key) \(step)"
    var seen: String?
    note("update \(key)\(removes ? " to nothing" : "")")
    let change = { (old: String?) -> String? in
      seen = old
      return removes ? nil : value
    }
    let result =
      try cache.update(forKey: key, change)
    try expect(seen, present?.value, "what an update of \(key) saw")
    try expect(result?.value, removes ? nil : value, "what an update of \(key) gave")
    guard let result else {
      _ = model.remove(key)
      return
    }
    model.set(
      TieredModel.Entry(
        value: value, version: result.version, cost: present?.cost, written: model.now,
        accessed: model.now, expires: present?.expires, idleLimit: present?.idleLimit), forKey: key)
  }
}
