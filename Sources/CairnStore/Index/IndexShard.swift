/// One part of the index: a table with open addressing and linear probing, kept sorted by hash
/// (Amble and Knuth, "Ordered hash tables", 1974), so that looking for an absent key ends early
/// and growing is one pass that reads nothing but the table.
///
/// The home of an entry is `hash * capacity >> 40`, which grows with the hash; so the whole table
/// is in the order of its hashes. Behind the last home lies some slack, so that nothing wraps.
struct IndexShard: ~Copyable {
  private var entries = FlatBuffer<IndexEntry>(zeroCount: 0)
  private var capacity = 0
  /// Entries in the table.
  private(set) var count = 0
  /// Entries whose record can expire.
  private(set) var expirableCount = 0
  /// Whether the entries are still where they come from. `count` and `expirableCount` say then what
  /// there will be; the table is empty.
  private(set) var isUnloaded = false
  /// The ends of lifetimes that were extended, by the location of the put.
  private(set) var extensions: [Location: LifetimeExtension] = [:]
  /// The index's epoch when this last changed: a snapshot of a later one sees what is here.
  var epoch: UInt64 = 0
  /// The capacity of the first allocation; others are this times powers of two.
  private let firstCapacity: Int

  /// - Parameter phase: from 0 to below 1; where between two powers of two this shard's
  ///   capacities lie, so that shards of a store do not all grow at the same time.
  init(phase: Double) {
    // 2 to the phase, closely enough: the chord's error is under 1 %.
    firstCapacity = Int(8 * (1 + phase * (0.6565 + 0.3435 * phase)))
  }

  /// A copy in as little memory as lets lookups stay fast: about 19 bytes an entry.
  init(copying other: borrowing IndexShard) {
    firstCapacity = other.firstCapacity
    epoch = other.epoch
    count = other.count
    expirableCount = other.expirableCount
    isUnloaded = other.isUnloaded
    extensions = other.extensions
    if count == 0 || isUnloaded { return }
    resize(to: count * 20 / 17 + 1, from: other)
  }

  /// Takes over the entries of a shard, which is left empty.
  init(emptying other: inout IndexShard) {
    firstCapacity = other.firstCapacity
    epoch = other.epoch
    count = other.count
    expirableCount = other.expirableCount
    isUnloaded = other.isUnloaded
    capacity = other.capacity
    extensions = other.extensions
    swap(&entries, &other.entries)
    other.removeAll()
  }

  var byteCount: Int { entries.byteCount }

  /// From now on the entries are somewhere else, until `load` is given them.
  mutating func unload(count: Int, expirableCount: Int) {
    self.count = count
    self.expirableCount = expirableCount
    isUnloaded = count > 0
  }

  /// Fills the empty table.
  mutating func load(_ contents: ShardContents) {
    precondition(capacity == 0)
    let loaded = contents.entries
    extensions = contents.extensions
    isUnloaded = false
    count = loaded.count
    expirableCount = loaded.reduce(0) { $0 + ($1.flags.contains(.canExpire) ? 1 : 0) }
    if count == 0 { return }
    var newCapacity = capacity(for: count)
    while true {
      let new = table(ofCapacity: newCapacity)
      var filling = Filling(capacity: newCapacity)
      if loaded.allSatisfy({ filling.add($0, to: new) }) {
        entries = new
        capacity = newCapacity
        return
      }
      newCapacity *= 2
    }
  }

  /// Whether a table whose size is in proportion can hold the entries, which are in the order of their
  /// hashes. Hashes are keyed, so that those that cannot be held were made up; and no entry stands there
  /// twice.
  static func canHold(_ entries: [IndexEntry]) -> Bool {
    for (number, entry) in entries.enumerated() {
      var other = number - 1
      while other >= 0, entries[other].hash == entry.hash {
        // No two keys in a billion stores share so much of a hash as eight would have to.
        if entries[other].location == entry.location || number - other > 8 { return false }
        other -= 1
      }
    }
    var capacity = 8
    while (entries.count + 1) * 20 > capacity * 17 { capacity *= 2 }
    for _ in 0..<3 where capacity < largestCapacity {
      let end = slotCount(ofCapacity: capacity)
      var next = 0
      let fits = entries.allSatisfy { entry in
        next = max(next, Int((entry.hash &* UInt64(capacity)) >> 40)) + 1
        return next <= end
      }
      if fits { return true }
      capacity *= 2
    }
    return false
  }

  /// 2^24 times 256 shards: four billion keys.
  private static let largestCapacity = 1 << 24

  private static func slotCount(ofCapacity capacity: Int) -> Int { capacity + 8 + capacity / 64 }

  /// The smallest capacity of this shard that so many entries do not make grow.
  private func capacity(for count: Int) -> Int {
    var smallest = firstCapacity
    while (count + 1) * 20 > smallest * 17 { smallest *= 2 }
    return smallest
  }

  @inline(__always)
  private func home(of hash: UInt64) -> Int { Int((hash &* UInt64(capacity)) >> 40) }

  /// Asks the processor for where an entry with this hash would be, without waiting.
  @inline(__always)
  func prefetch(_ hash: UInt64) {
    if capacity > 0 { entries.prefetch(home(of: hash)) }
  }

  /// The slot of the first entry with this hash, at or after `slot`, or the first where there is
  /// none given; `nil` where there is none left.
  @inline(__always)
  func slot(of hash: UInt64, after slot: Int? = nil) -> Int? {
    if capacity == 0 { return nil }
    var index = slot.map { $0 &+ 1 } ?? home(of: hash)
    while index < entries.count {
      let entry = entries[index]
      if entry.isEmpty || entry.hash > hash { return nil }
      if entry.hash == hash { return index }
      index &+= 1
    }
    return nil
  }

  /// The slot of the entry with this hash and location.
  @inline(__always)
  func slot(of hash: UInt64, location: Location) -> Int? {
    var slot = slot(of: hash)
    while let found = slot {
      if entries[found].location == location { return found }
      slot = self.slot(of: hash, after: found)
    }
    return nil
  }

  /// The slot of the entry with this hash that was accessed at a tick.
  func slot(of hash: UInt64, tick: UInt64) -> Int? {
    var slot = slot(of: hash)
    while let found = slot {
      if entries[found].tick == tick { return found }
      slot = self.slot(of: hash, after: found)
    }
    return nil
  }

  subscript(slot: Int) -> IndexEntry {
    @inline(__always) get { entries[slot] }
  }

  @inline(__always)
  func setTick(_ tick: UInt64, at slot: Int) {
    var entry = entries[slot]
    entry.tick = tick
    entries[slot] = entry
  }

  /// Gives all entries other ticks.
  func updateTicks(_ newTick: (UInt64) -> UInt64) {
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      setTick(newTick(entries[slot].tick), at: slot)
    }
  }

  /// Puts another entry with the same hash into a slot.
  mutating func replace(at slot: Int, with entry: IndexEntry) {
    expirableCount +=
      (entry.flags.contains(.canExpire) ? 1 : 0)
      - (entries[slot].flags.contains(.canExpire) ? 1 : 0)
    entries[slot] = entry
  }

  /// Adds an entry.
  ///
  /// - Complexity: O(1) amortised; O(count) where the table grows.
  mutating func insert(_ entry: IndexEntry) {
    if (count + 1) * 20 > capacity * 17 { resize(to: max(firstCapacity, capacity * 2)) }
    while !insertIntoTable(entry) { resize(to: capacity * 2) }
    count += 1
    if entry.flags.contains(.canExpire) { expirableCount += 1 }
  }

  /// Makes room for so many more entries at once.
  mutating func reserve(_ more: Int) {
    if more == 0 || (count + more) * 20 <= capacity * 17 { return }
    resize(to: capacity(for: count + more - 1))
  }

  /// Adds an entry unless the run of entries it belongs to fills the slack.
  private func insertIntoTable(_ entry: IndexEntry) -> Bool {
    var position = home(of: entry.hash)
    while position < entries.count, !entries[position].isEmpty,
      entries[position].hash <= entry.hash
    {
      position += 1
    }
    var end = position
    while end < entries.count, !entries[end].isEmpty { end += 1 }
    guard end < entries.count else { return false }
    entries.move(from: position, to: position + 1, length: end - position)
    entries[position] = entry
    return true
  }

  /// Removes the entry in a slot; those behind it move up as far as their homes allow.
  mutating func remove(at slot: Int) {
    if entries[slot].flags.contains(.canExpire) { expirableCount -= 1 }
    var end = slot + 1
    while end < entries.count, !entries[end].isEmpty,
      home(of: entries[end].hash) < end || planted(.neighboursLost)
    {
      end += 1
    }
    entries.move(from: slot + 1, to: slot, length: end - slot - 1)
    entries[end - 1] = .empty
    count -= 1
    // Below 41 % an entry would take more than 40 bytes.
    if capacity > firstCapacity, count * 100 < capacity * 41 { resize(to: capacity / 2) }
  }

  /// Removes all entries.
  mutating func removeAll() {
    entries = FlatBuffer<IndexEntry>(zeroCount: 0)
    capacity = 0
    count = 0
    expirableCount = 0
    isUnloaded = false
    extensions = [:]
  }

  // MARK: Extended lifetimes

  /// The extension of the entry in a slot.
  @inline(__always)
  func extensionOfEntry(at slot: Int) -> LifetimeExtension? {
    let entry = entries[slot]
    return entry.flags.contains(.extended) ? extensions[entry.location] : nil
  }

  /// Gives the entry in a slot an extension or takes it away, and returns the one it had.
  @discardableResult
  mutating func setExtension(_ new: LifetimeExtension?, at slot: Int) -> LifetimeExtension? {
    let entry = entries[slot]
    var flags = entry.flags
    if new == nil { flags.remove(.extended) } else { flags.insert(.extended) }
    entries[slot] = IndexEntry(
      hash: entry.hash, location: entry.location, tick: entry.tick, flags: flags)
    let old = extensions[entry.location]
    extensions[entry.location] = new
    return old
  }

  /// The slot of the entry with this hash that the record at a location extends.
  func slot(of hash: UInt64, extendedBy location: Location) -> Int? {
    var slot = slot(of: hash)
    while let found = slot {
      if extensionOfEntry(at: found)?.location == location { return found }
      slot = self.slot(of: hash, after: found)
    }
    return nil
  }

  /// Removes the entries of tombstones.
  mutating func removeTombstones() {
    var kept = 0
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      if !entries[slot].flags.contains(.tombstone) { kept += 1 }
    }
    if kept == count { return }
    count = kept
    resize(to: capacity(for: kept), keeping: { !$0.flags.contains(.tombstone) })
  }

  private mutating func resize(
    to newCapacity: Int, keeping isKept: (IndexEntry) -> Bool = { _ in true }
  ) {
    var newCapacity = newCapacity
    while true {
      let new = table(ofCapacity: newCapacity)
      if Self.fill(new, capacity: newCapacity, from: entries, keeping: isKept) {
        entries = new
        capacity = newCapacity
        return
      }
      // A run at the table's end longer than the slack is so unlikely that it may cost a doubling.
      newCapacity *= 2
    }
  }

  private mutating func resize(to newCapacity: Int, from other: borrowing IndexShard) {
    var newCapacity = newCapacity
    while true {
      let new = table(ofCapacity: newCapacity)
      if Self.fill(new, capacity: newCapacity, from: other.entries, keeping: { _ in true }) {
        entries = new
        capacity = newCapacity
        return
      }
      newCapacity *= 2
    }
  }

  private func table(ofCapacity capacity: Int) -> FlatBuffer<IndexEntry> {
    precondition(capacity <= Self.largestCapacity, "the index is full")
    return FlatBuffer<IndexEntry>(zeroCount: Self.slotCount(ofCapacity: capacity))
  }

  private static func fill(
    _ new: borrowing FlatBuffer<IndexEntry>, capacity: Int,
    from old: borrowing FlatBuffer<IndexEntry>, keeping isKept: (IndexEntry) -> Bool
  ) -> Bool {
    var filling = Filling(capacity: capacity)
    for slot in 0..<old.count {
      let entry = old[slot]
      if entry.isEmpty || !isKept(entry) { continue }
      guard filling.add(entry, to: new) else { return false }
    }
    return true
  }

  /// Fills a table from front to back.
  private struct Filling {
    let capacity: Int
    var next = 0

    init(capacity: Int) { self.capacity = capacity }

    /// Adds the entry that follows in the order of hashes; `false` where the table ends before.
    @inline(__always)
    mutating func add(
      _ entry: IndexEntry, to table: borrowing FlatBuffer<IndexEntry>
    ) -> Bool {
      let position = max(next, Int((entry.hash &* UInt64(capacity)) >> 40))
      guard position < table.count else { return false }
      table[position] = entry
      next = position + 1
      return true
    }
  }

  /// All entries, in the order of their hashes.
  func allEntries() -> [IndexEntry] {
    var result: [IndexEntry] = []
    appendEntries(to: &result)
    return result
  }

  /// Appends all entries, in the order of their hashes.
  func appendEntries(to result: inout [IndexEntry]) {
    result.reserveCapacity(result.count + count)
    for slot in 0..<entries.count where !entries[slot].isEmpty { result.append(entries[slot]) }
  }
}
