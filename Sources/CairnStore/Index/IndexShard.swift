/// One part of the index: a table with open addressing and linear probing, kept sorted by hash
/// (Amble and Knuth, "Ordered hash tables", 1974). A lookup of an absent key ends early, and
/// growing takes one pass over the table.
///
/// The home of an entry is `hash * capacity >> 40`, which grows with the hash, so the whole table
/// is ordered by hash. Slack follows the last home, so runs of entries never wrap around.
struct IndexShard: ~Copyable {
  private(set) var entries = EntryTable()
  private(set) var capacity = 0
  /// The number of entries.
  private(set) var count = 0
  /// The number of entries that can expire.
  private(set) var expirableCount = 0
  /// Whether the entries are still in their source. The table is then empty, and `count` and
  /// `expirableCount` are the values after loading.
  private(set) var isUnloaded = false
  /// Whether entries that can expire may lack a deadline.
  var lacksDeadlines = false
  /// The capacity of the first allocation. Other capacities are this one times a power of two.
  private let firstCapacity: UInt8
  /// The deadlines of entries that can expire, or `nil` if there are none. A copy of a shard has
  /// none.
  var deadlines: DeadlineBox?
  /// The origin of deadlines, in milliseconds since the Unix epoch.
  let origin: Int64
  /// The index's epoch at the last change. A snapshot of a later epoch sees the current state.
  var epoch: UInt64 = 0
  let budget: MemoryBudget

  /// - Parameters:
  ///   - phase: from 0 to below 1; the position of this shard's capacities between two powers of
  ///     two, so that the shards of a store do not all grow at the same time.
  ///   - origin: approximately the current time, in milliseconds since the Unix epoch.
  init(phase: Double, origin: Int64, budget: MemoryBudget = .unlimited) {
    self.budget = budget
    self.origin = origin
    // Approximates 2 to the power of the phase, with an error under 1 %.
    firstCapacity = UInt8(8 * (1 + phase * (0.6565 + 0.3435 * phase)))
  }

  /// A copy that takes as little memory as fast lookups allow: about 19 bytes an entry.
  ///
  /// - Throws: `outOfMemory`.
  init(copying other: borrowing IndexShard) throws(StoreError) {
    self.init(like: other)
    if count == 0 || isUnloaded { return }
    try resize(to: count * 20 / 17 + 1, from: other)
  }

  /// Takes over the entries of a shard, which becomes empty.
  init(emptying other: inout IndexShard) {
    self.init(like: other)
    capacity = other.capacity
    swap(&entries, &other.entries)
    other.removeAll()
  }

  /// Everything of a shard but its tables.
  private init(like other: borrowing IndexShard) {
    budget = other.budget
    origin = other.origin
    firstCapacity = other.firstCapacity
    epoch = other.epoch
    count = other.count
    expirableCount = other.expirableCount
    isUnloaded = other.isUnloaded
  }

  var byteCount: Int { entries.byteCount + (deadlines?.table.byteCount ?? 0) }

  /// Marks the empty shard as unloaded: its entries stay in their source until `load` receives
  /// them.
  mutating func unload(count: Int, expirableCount: Int) {
    self.count = count
    self.expirableCount = expirableCount
    isUnloaded = count > 0
  }

  /// Fills the empty table.
  ///
  /// - Throws: `outOfMemory`. The shard is then not loaded.
  mutating func load(_ loaded: [IndexEntry]) throws(StoreError) {
    precondition(capacity == 0)
    if !loaded.isEmpty { try fill(with: loaded) }
    isUnloaded = false
    count = loaded.count
    expirableCount = loaded.reduce(0) { $0 + ($1.flags.contains(.canExpire) ? 1 : 0) }
    lacksDeadlines = expirableCount > 0
  }

  private mutating func fill(with loaded: [IndexEntry]) throws(StoreError) {
    var newCapacity = capacity(for: loaded.count)
    while true {
      let new = try table(ofCapacity: newCapacity)
      var filling = Filling(capacity: newCapacity)
      if loaded.allSatisfy({ filling.add($0, to: new) }) {
        entries = new
        capacity = newCapacity
        return
      }
      newCapacity *= 2
    }
  }

  /// 2^24 times 256 shards: four billion keys.
  static let largestCapacity = 1 << 24

  static func slotCount(ofCapacity capacity: Int) -> Int { capacity + 8 + capacity / 64 }

  /// The smallest capacity of this shard that holds this many entries without growing.
  private func capacity(for count: Int) -> Int {
    var smallest = Int(firstCapacity)
    while (count + 1) * 20 > smallest * 17 { smallest *= 2 }
    return smallest
  }

  @inline(__always)
  private func home(of hash: UInt64) -> Int { Int((hash &* UInt64(capacity)) >> 40) }

  /// The slot of the first entry with this hash, or of the first one after `slot`; `nil` if there
  /// is none.
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

  /// The slot of the entry with this hash and location. Looks first at `expected`, unless it is -1.
  @inline(__always)
  func slot(of hash: UInt64, location: Location, near expected: Int = -1) -> Int? {
    if expected >= 0, expected < entries.count, entries[expected].hash == hash,
      entries[expected].location == location
    {
      return expected
    }
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

  /// Replaces the ticks of all entries.
  func updateTicks(_ newTick: (UInt64) -> UInt64) {
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      setTick(newTick(entries[slot].tick), at: slot)
    }
  }

  /// Replaces the entry in a slot with another of the same hash. The deadline stays.
  @inline(__always)
  mutating func replace(at slot: Int, with entry: IndexEntry) {
    expirableCount +=
      (entry.flags.contains(.canExpire) ? 1 : 0)
      - (entries[slot].flags.contains(.canExpire) ? 1 : 0)
    entries[slot] = entry
  }

  /// - Parameter deadline: for an entry that can expire, or `nil` if not known yet.
  @inline(__always)
  mutating func replace(at slot: Int, with entry: IndexEntry, deadline: Deadline?) {
    replace(at: slot, with: entry)
    noteDeadline(deadline, at: slot)
  }

  /// Adds an entry.
  ///
  /// - Parameter deadline: for an entry that can expire, or `nil` if not known yet.
  /// - Throws: `outOfMemory` if no room was made; nothing has then changed.
  /// - Complexity: O(1) amortised; O(count) if the table grows.
  mutating func add(_ entry: IndexEntry, deadline: Deadline?) throws(StoreError) {
    var slot = (count + 1) * 20 > capacity * 17 ? nil : insertIntoTable(entry)
    if slot == nil {
      try makeRoom(for: [entry.hash])
      slot = insertIntoTable(entry)
      guard slot != nil else { preconditionFailure("room was made") }
    }
    count += 1
    if entry.flags.contains(.canExpire) { expirableCount += 1 }
    if let slot { noteDeadline(deadline, at: slot) }
  }

  /// Adds an entry. If memory can run out, room must exist.
  mutating func insert(_ entry: IndexEntry, deadline: Deadline?) {
    do { try add(entry, deadline: deadline) } catch {
      fatalError("no room was made for an entry: \(error)")
    }
  }

  /// Makes room for this many more entries, if their hashes are evenly spread.
  ///
  /// - Throws: `outOfMemory`; nothing has then changed.
  mutating func reserve(_ more: Int) throws(StoreError) {
    if more == 0 || (count + more) * 20 <= capacity * 17 { return }
    try resize(to: capacity(for: count + more - 1))
  }

  /// Whether this many entries can be added, whatever their hashes.
  @inline(__always)
  func hasRoom(for more: Int) -> Bool {
    guard (count + more) * 20 <= capacity * 17, more <= entries.count else { return false }
    // Each entry takes at most one of the last slots.
    for slot in (entries.count - more)..<entries.count where !entries[slot].isEmpty {
      return false
    }
    return true
  }

  /// Makes room for entries with these hashes.
  ///
  /// - Throws: `outOfMemory`; nothing has then changed.
  /// - Complexity: O(1) amortised for each; O(count) if the table grows.
  mutating func makeRoom(for hashes: [UInt64]) throws(StoreError) {
    if hasRoom(for: hashes.count) { return }
    let hashes = hashes.sorted()
    var wanted =
      (count + hashes.count) * 20 <= capacity * 17
      ? capacity
      : max(capacity * 2, capacity(for: count + hashes.count - 1))
    while !fits(hashes, inCapacity: wanted) { wanted *= 2 }
    if wanted > capacity { try resize(to: wanted) }
  }

  /// Whether a table of this capacity has room for the current entries and these sorted hashes.
  private func fits(_ hashes: [UInt64], inCapacity capacity: Int) -> Bool {
    var next = 0
    func add(_ hash: UInt64) { next = max(next, Int((hash &* UInt64(capacity)) >> 40)) + 1 }
    var index = 0
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      while index < hashes.count, hashes[index] < entries[slot].hash {
        add(hashes[index])
        index += 1
      }
      add(entries[slot].hash)
    }
    while index < hashes.count {
      add(hashes[index])
      index += 1
    }
    return next <= Self.slotCount(ofCapacity: capacity)
  }

  /// Adds an entry and returns its slot, or `nil` if its run of entries reaches the table's end.
  private mutating func insertIntoTable(_ entry: IndexEntry) -> Int? {
    var position = home(of: entry.hash)
    while position < entries.count, !entries[position].isEmpty,
      entries[position].hash <= entry.hash
    {
      position += 1
    }
    var end = position
    while end < entries.count, !entries[end].isEmpty { end += 1 }
    guard end < entries.count else { return nil }
    entries.move(from: position, to: position + 1, length: end - position)
    deadlines?.table.move(from: position, to: position + 1, length: end - position)
    entries[position] = entry
    return position
  }

  /// Removes the entry in a slot. Later entries move up as far as their homes allow.
  mutating func remove(at slot: Int) {
    if entries[slot].flags.contains(.canExpire) { expirableCount -= 1 }
    var end = slot + 1
    while end < entries.count, !entries[end].isEmpty, home(of: entries[end].hash) < end { end += 1 }
    entries.move(from: slot + 1, to: slot, length: end - slot - 1)
    deadlines?.table.move(from: slot + 1, to: slot, length: end - slot - 1)
    entries[end - 1] = .empty
    deadlines?.table.remove(at: end - 1)
    count -= 1
    // Below a load of 41 %, an entry would take more than 40 bytes. If there is no memory for a
    // smaller table, keep the larger one.
    if capacity > Int(firstCapacity), count * 100 < capacity * 41 { try? resize(to: capacity / 2) }
  }

  /// Removes all entries.
  mutating func removeAll() {
    entries = EntryTable()
    capacity = 0
    count = 0
    expirableCount = 0
    isUnloaded = false
    deadlines = nil
    lacksDeadlines = false
  }

  /// Removes the entries of tombstones.
  ///
  /// - Throws: `outOfMemory`.
  mutating func removeTombstones() throws(StoreError) {
    var kept = 0
    for slot in 0..<entries.count where !entries[slot].isEmpty {
      if !entries[slot].flags.contains(.tombstone) { kept += 1 }
    }
    if kept == count { return }
    try resize(to: capacity(for: kept), keeping: { !$0.flags.contains(.tombstone) })
    count = kept
  }

  private mutating func resize(
    to newCapacity: Int, keeping isKept: (IndexEntry) -> Bool = { _ in true }
  ) throws(StoreError) {
    var newCapacity = newCapacity
    while true {
      let new = try table(ofCapacity: newCapacity)
      let newDeadlines = try deadlines.map { (old) throws(StoreError) in
        DeadlineBox(try DeadlineTable(like: old.table, slotCount: new.count))
      }
      let isFilled = Self.fill(new, capacity: newCapacity, from: entries, keeping: isKept) {
        if let deadlines { newDeadlines?.table.take(from: deadlines.table, slot: $0, to: $1) }
      }
      if isFilled {
        entries = new
        deadlines = newDeadlines
        capacity = newCapacity
        return
      }
      // A run at the table's end longer than the slack is so unlikely that it may cost a doubling.
      newCapacity *= 2
    }
  }

  private mutating func resize(
    to newCapacity: Int, from other: borrowing IndexShard
  ) throws(StoreError) {
    var newCapacity = newCapacity
    while true {
      let new = try table(ofCapacity: newCapacity)
      if Self.fill(new, capacity: newCapacity, from: other.entries) {
        entries = new
        capacity = newCapacity
        return
      }
      newCapacity *= 2
    }
  }

  /// - Throws: `outOfMemory`, also for more than four billion keys.
  private func table(ofCapacity capacity: Int) throws(StoreError) -> EntryTable {
    let slotCount = Self.slotCount(ofCapacity: capacity)
    guard capacity <= Self.largestCapacity else {
      throw .outOfMemory(neededByteCount: slotCount * MemoryLayout<IndexEntry>.stride)
    }
    return try EntryTable(slotCount: slotCount, capacity: capacity, budget: budget)
  }
}
