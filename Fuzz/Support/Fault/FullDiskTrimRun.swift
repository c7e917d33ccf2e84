import CairnStore

/// A store fills a disk with ever new keys, to the last byte or together with other programs. The
/// same process trims it, or the next one after a kill.
///
/// The conditions: the trim removes the right entries, in the order of the last accesses. The
/// remaining entries are unharmed, and there is room for new values. The run repeats this, because
/// each round leaves a different log.
package struct FullDiskTrimRun {
  package private(set) var tally = Tally()
  private var choices: FuzzRandom
  private let clock = ManualClock()
  private let configuration: StoreConfiguration
  private let disk = SimulatedDisk()
  private var process: SimulatedProcess
  /// The number of the value of each key, the least recently accessed first.
  private var keys: [Int] = []
  private var nextKey = 0
  private let valueByteCount: Int
  private let trace: ((String) -> Void)?

  package init(seed: UInt64, trace: ((String) -> Void)? = nil) {
    var choices = FuzzRandom(seed: seed)
    var configuration = StoreConfiguration.simulated(clock)
    // The simulation examines each record that is written into a mapping.
    if choices.once(in: 2) { configuration.mapsFiles = false }
    configuration.segmentByteLimit = (64 << 10) << choices.element(of: [0, 2, 4, 10])
    self.configuration = configuration
    valueByteCount = [60, 100, 300, 1000, 5000][choices.below(5)]
    process = SimulatedProcess.start(on: disk, seed: 0)
    self.choices = choices
    self.trace = trace
  }

  package mutating func run() throws {
    defer { process.kill() }
    disk.capacity = 4096 * (160 + choices.below(400))
    trace?("room for \(disk.capacity ?? 0) bytes, values of \(valueByteCount)")
    _ = try process.open(configuration)
    for _ in 0..<(1 + choices.below(3)) {
      try fill()
      try touch()
      try reopen()
      try trim()
    }
    try process.close()
  }

  private func value(_ key: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: valueByteCount)
  }

  private var store: Store {
    guard let store = process.store else { preconditionFailure("no store is open") }
    return store
  }

  private mutating func put() throws -> Bool {
    do throws(StoreError) {
      try store.setValue(value(nextKey), forKey: "key \(nextKey)", durability: .process)
    } catch {
      guard case .noSpace(_, _, .disk) = error else {
        throw FuzzFailure("an error other than noSpace: \(error)")
      }
      return false
    }
    keys.append(nextKey)
    nextKey += 1
    if choices.once(in: 100) { process.queue.runAll(dueAfter: .zero) }
    return true
  }

  private mutating func fill() throws {
    while try put() {}
    tally["disks filled"] += 1
    // Other programs take what is left.
    let capacity = disk.capacity
    if choices.once(in: 2) { disk.capacity = disk.allocatedByteCount }
    trace?("\(keys.count) keys, \(disk.allocatedByteCount) of \(capacity ?? 0) bytes")
    lostCapacity = (capacity ?? 0) - (disk.capacity ?? 0)
  }

  /// The space that other programs took.
  private var lostCapacity = 0

  /// Reads some values, or all if it is no longer known what was read last.
  private mutating func touch() throws {
    let readsAll = !isOrderKnown || choices.once(in: 3)
    for key in keys.shuffled(using: &choices) where readsAll || choices.once(in: 3) {
      guard try store.value(forKey: "key \(key)") == value(key) else {
        throw FuzzFailure("key \(key) has another value")
      }
      keys.append(key)
      tally["reads"] += 1
    }
    var seen: Set<Int> = []
    keys = keys.reversed().filter { seen.insert($0).inserted }.reversed()
    isOrderKnown = true
  }

  /// Whether the store knows the order in which the keys were accessed.
  private var isOrderKnown = true

  private mutating func reopen() throws {
    switch choices.below(3) {
    case 0: return
    case 1:
      trace?("close and open")
      try process.close()
    default:
      trace?("kill and open")
      process.kill()
    }
    // There may have been no room for a checkpoint.
    isOrderKnown = false
    process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
    _ = try process.open(configuration)
    tally["opened while full"] += 1
  }

  private mutating func trim() throws {
    let limit = choices.below(keys.count + 1) / (1 + choices.below(3))
    let freed = keys.count - limit
    trace?("trim to \(limit)")
    let summary = try store.trim(.toCount(limit))
    guard summary.count == freed else {
      throw FuzzFailure("a trim to \(limit) of \(keys.count) removes \(summary.count)")
    }
    try checkContents(limit)
    // If few bytes are dead, a put does not start a compaction.
    if freed < keys.count / 4 || choices.once(in: 2) {
      do throws(StoreError) { _ = try store.compact() } catch {
        // The error means that the trim has left nothing worth a copy.
        guard case .noSpace = error else { throw error }
      }
    }
    tally["trims"] += 1
    // A third of what was removed must fit again, less what the reserve takes.
    let before = nextKey
    let wanted = (freed - 2 * (64 << 10) / valueByteCount) / 3
    while nextKey - before < wanted {
      if try !put() {
        let free = (disk.capacity ?? 0) - disk.allocatedByteCount
        throw FuzzFailure(
          "after a trim by \(freed) only \(nextKey - before) new values fit, \(free) bytes are free"
        )
      }
    }
    try checkContents(limit + nextKey - before)
    disk.capacity = (disk.capacity ?? 0) + lostCapacity
    lostCapacity = 0
  }

  private mutating func checkContents(_ count: Int) throws {
    var found: Set<Int> = []
    try store.forEachKey { key in
      guard let number = Int(String(decoding: key.copied().dropFirst(4), as: UTF8.self)) else {
        throw FuzzFailure("a key that was never written")
      }
      found.insert(number)
      return .next
    }
    guard found.count == count else {
      throw FuzzFailure("\(found.count) keys are left instead of \(count)")
    }
    let isExpected = found == Set(keys.suffix(count))
    if isOrderKnown, !isExpected { throw FuzzFailure("the trim did not remove the oldest keys") }
    keys.removeAll { !found.contains($0) }
    guard keys.count == count else { throw FuzzFailure("a removed key is back") }
    let snapshot = try store.snapshot()
    for key in keys {
      guard try snapshot.value(forKey: "key \(key)") == value(key) else {
        throw FuzzFailure("key \(key) has another value")
      }
    }
  }
}
