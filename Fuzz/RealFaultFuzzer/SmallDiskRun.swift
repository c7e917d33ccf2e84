import CairnStore
import FuzzSupport

/// A store that fills a filesystem of 1 to 16 MiB, together with other programs. Nothing may be
/// lost. Every refusal must be `noSpace` and change nothing. Everything can be removed, and there
/// is room again once space is freed.
struct SmallDiskRun {
  private var random: FuzzRandom
  private let disk: TinyDisk
  private let configuration: StoreConfiguration
  private var store: Store
  /// What the store should contain.
  private var values: [Int: [UInt8]] = [:]
  private var nextKey = 0
  private let meanByteCount: Int
  private var tally = Tally()

  static func run(seed: UInt64) throws -> Tally {
    var run = try SmallDiskRun(seed: seed)
    return try run.run()
  }

  private init(seed: UInt64) throws {
    random = FuzzRandom(seed: seed)
    meanByteCount = random.element(of: [60, 300, 1000, 4000, 20_000, 60_000])
    // Many small values fit on a disk, so they get a smaller one.
    let pages = meanByteCount < 1000 ? 3 << 8 : 15 << 8
    disk = try TinyDisk(byteCount: (1 << 20) + random.below(pages) * 4096)
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.segmentByteLimit = 131_072 << random.below(10)
    if random.once(in: 2) { configuration.durability = .process }
    self.configuration = configuration
    store = try Store(path: disk.path + "/store", configuration: configuration)
  }

  private func name(_ key: Int) -> String { "key \(key)" }

  private mutating func run() throws -> Tally {
    for round in 0..<2 {
      let isShared = random.once(in: 2)
      if isShared, random.once(in: 2) { try disk.leave(random.below(disk.byteCount / 2)) }
      try fill()
      if isShared { try disk.fill() }
      try check(store, holds: values, name: name)
      try makeRoom()
      try check(store, holds: values, name: name)
      if isShared {
        disk.free()
        try putSome("others gave their space back")
      }
      if round == 0, random.once(in: 2) { try reopen() }
    }
    try reopen()
    try check(store, holds: values, name: name)
    try store.close()
    return tally
  }

  private mutating func reopen() throws {
    try store.close()
    try checkFiles(of: store.path)
    store = try Store(path: disk.path + "/store", configuration: configuration)
    tally["reopenings"] += 1
  }

  private mutating func value() -> [UInt8] {
    random.bytes(count: 1 + random.below(2 * meanByteCount))
  }

  /// Puts, overwrites and removes until the store has refused several times.
  private mutating func fill() throws {
    var refusalsLeft = 1 + random.below(6)
    // With many overwrites, the disk may never fill.
    var operationsLeft = 3 * disk.byteCount / meanByteCount
    let overwrites = random.below(4)
    while refusalsLeft > 0, operationsLeft > 0 {
      operationsLeft -= 1
      let key = random.below(8) < overwrites && nextKey > 0 ? random.below(nextKey) : nextKey
      if random.once(in: 20) {
        try remove(key)
      } else if random.once(in: 20) {
        if try !putBatch(from: key) { refusalsLeft -= 1 }
      } else if try !put(value(), key) {
        refusalsLeft -= 1
      }
    }
  }

  /// - Returns: whether there was room for the value.
  private mutating func put(_ value: [UInt8], _ key: Int) throws -> Bool {
    if let error = try storeError({ try store.setValue(value, forKey: name(key)) }) {
      try note(error)
      guard try store.value(forKey: name(key)) == values[key] else {
        throw FuzzFailure("a refused write has changed \(name(key))")
      }
      return false
    }
    values[key] = value
    nextKey = max(nextKey, key + 1)
    tally["writes"] += 1
    return true
  }

  private mutating func putBatch(from key: Int) throws -> Bool {
    let batch = (0..<1 + random.below(8)).map { (key: key + $0, value: value()) }
    let error = try storeError {
      try store.write { writer in
        for (key, value) in batch { try writer.setValue(value, forKey: name(key)) }
      }
    }
    if let error {
      try note(error)
      for (key, _) in batch {
        guard try store.value(forKey: name(key)) == values[key] else {
          throw FuzzFailure("a refused batch has changed \(name(key))")
        }
      }
      return false
    }
    for (key, value) in batch { values[key] = value }
    nextKey = max(nextKey, key + batch.count)
    tally["batches"] += 1
    return true
  }

  /// A refusal is due to lack of space, names the store, and leaves it usable.
  private mutating func note(_ error: StoreError) throws {
    guard case .noSpace(let path, _, .disk) = error, path.hasPrefix(store.path) else {
      throw FuzzFailure("refused with \(error)")
    }
    tally["refusals"] += 1
  }

  private mutating func remove(_ key: Int) throws {
    let isThere = values.removeValue(forKey: key) != nil
    guard try store.removeValue(forKey: name(key)) == isThere else {
      throw FuzzFailure("a removal of \(name(key)) did not find what was there")
    }
    tally["removals"] += 1
  }

  /// Frees space in one of several ways. Afterwards, there must be room again.
  private mutating func makeRoom() throws {
    let before = values.values.reduce(0) { $0 + $1.count }
    switch random.below(4) {
    case 0:
      try store.removeAll()
      values = [:]
      tally["removals of all"] += 1
    case 1:
      let count = values.count / 2
      let removal = try store.trim(.toCount(count))
      guard removal.count == values.count - count, try store.count() == count else {
        throw FuzzFailure("a trim from \(values.count) to \(count) removed \(removal.count)")
      }
      var kept: [Int: [UInt8]] = [:]
      for (key, value) in values {
        guard let found = try store.value(forKey: name(key)) else { continue }
        guard found == value else { throw FuzzFailure("another value of \(name(key))") }
        kept[key] = value
      }
      values = kept
      tally["trims"] += 1
    case 2:
      for key in values.keys.sorted() where random.once(in: 2) { try remove(key) }
      tally["removals of half"] += 1
    default:
      for key in values.keys.sorted() { try remove(key) }
      tally["removals of each"] += 1
    }
    // Other programs may have taken all the room that a compaction needs.
    if random.once(in: 2), let error = try storeError({ _ = try store.compact() }) {
      try note(error)
    }
    let after = values.values.reduce(0) { $0 + $1.count }
    // A small removal may not free a block.
    if before - after > 512 << 10 { try putSome("\(before - after) of \(before) bytes went") }
  }

  private mutating func putSome(_ reason: String) throws {
    for _ in 0..<8 {
      let key = nextKey
      let value = random.bytes(count: 1 + random.below(500))
      if try !put(value, key) {
        throw FuzzFailure(
          "no room for \(value.count) bytes, though \(reason): \(disk.freeByteCount) free, \(try store.statistics())"
        )
      }
    }
    tally["times with room again"] += 1
  }
}
