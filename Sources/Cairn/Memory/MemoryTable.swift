/// A key with its value. Not copyable, so that a read of one part does not copy the other.
@usableFromInline
struct EntryPayload<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
  @usableFromInline let key: Key
  @usableFromInline var value: Value

  @inlinable
  init(key: Key, value: Value) {
    self.key = key
    self.value = value
  }

  @inlinable
  mutating func exchange(_ other: inout Value) { swap(&value, &other) }
}

/// The entries of a cache: a hash table of slot numbers, the slots, and the eviction orders.
///
///     buckets   hash │ slot + 1, by open addressing; 0: empty
///                 ▼
///     nodes     links, times, cost                        of slot 0, 1, 2 …
///     payloads  key, value                                of slot 0, 1, 2 …
///
/// The parts always agree. `count` slots are in use, and the others are free. Each slot in use is
/// found through the buckets, is in the list, and is in the heap if it can expire. Their costs add
/// up to `totalCost`.
@usableFromInline
struct MemoryTable<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
  /// Linear probing. Never more than half full.
  @usableFromInline var buckets = SlotArray<UInt64>(repeating: 0, count: 2)
  @usableFromInline var nodes = SlotArray<EntryNode>(repeating: EntryNode(), count: 0)
  @usableFromInline var payloads = SlotArray<EntryPayload<Key, Value>?>()
  /// The free slots, linked through `older`.
  @usableFromInline var firstFree = noSlot
  @usableFromInline var list = RecencyList()
  @usableFromInline var ghosts = GhostQueue()
  @usableFromInline var deadlines = DeadlineHeap()
  @usableFromInline var count = 0
  /// Wide enough for the exact sum of any number of costs.
  @usableFromInline var totalCost: UInt128 = 0

  @inlinable
  init() {}

  // MARK: Finding

  /// The hash of a key in the table's form. Computed before the lock is taken.
  @inlinable
  @inline(__always)
  static func hash(_ key: Key) -> UInt32 {
    fold(key.hashValue)
  }

  @inlinable
  @inline(__always)
  static func fold(_ hash: Int) -> UInt32 {
    let hash = UInt(bitPattern: hash)
    return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
  }

  @inlinable
  @inline(__always)
  func find(_ key: Key, hash: UInt32) -> UInt32 {
    let mask = buckets.count &- 1
    var bucket = Int(hash) & mask
    while true {
      let word = buckets[bucket]
      if word == 0 { return noSlot }
      if UInt32(truncatingIfNeeded: word >> 32) == hash {
        let slot = UInt32(truncatingIfNeeded: word) &- 1
        if holds(slot, key) { return slot }
      }
      bucket = (bucket &+ 1) & mask
    }
  }

  /// The slot with this hash whose key `isSought` accepts.
  func find(hash: UInt32, where isSought: (Key) -> Bool) -> UInt32 {
    let mask = buckets.count &- 1
    var bucket = Int(hash) & mask
    while true {
      let word = buckets[bucket]
      if word == 0 { return noSlot }
      if UInt32(truncatingIfNeeded: word >> 32) == hash {
        let slot = UInt32(truncatingIfNeeded: word) &- 1
        if let key = self.key(slot), isSought(key) { return slot }
      }
      bucket = (bucket &+ 1) & mask
    }
  }

  @inlinable
  @inline(__always)
  func holds(_ slot: UInt32, _ key: Key) -> Bool {
    switch payloads[Int(slot)] {
    case .some(let payload): payload.key == key
    case .none: false
    }
  }

  /// Whether a slot is in use.
  func isUsed(_ slot: Int) -> Bool {
    switch payloads[slot] {
    case .some: true
    case .none: false
    }
  }

  /// The key of a slot, or `nil` if the slot is free.
  @inlinable
  @inline(__always)
  func key(_ slot: UInt32) -> Key? {
    switch payloads[Int(slot)] {
    case .some(let payload): payload.key
    case .none: nil
    }
  }

  /// The value of a slot, or `nil` if the slot is free.
  @inlinable
  @inline(__always)
  func value(_ slot: UInt32) -> Value? {
    switch payloads[Int(slot)] {
    case .some(let payload): payload.value
    case .none: nil
    }
  }

  // MARK: Changing

  /// Adds an absent key. The caller must then call `set`.
  ///
  /// - Parameter isSmall: whether the entry enters the small queue of S3-FIFO.
  @inlinable
  mutating func insert(_ key: Key, _ value: Value, hash: UInt32, isSmall: Bool) -> UInt32 {
    let slot = takeSlot()
    payloads[Int(slot)] = EntryPayload(key: key, value: value)
    nodes[Int(slot)] = EntryNode()
    nodes[Int(slot)].hash = hash
    nodes[Int(slot)].isRecent = true
    enter(slot, hash: hash)
    if isSmall { list.pushSmall(slot, &nodes) } else { list.pushNewest(slot, &nodes) }
    count += 1
    return slot
  }

  /// Exchanges the value of a slot in use.
  @inlinable
  mutating func exchangeValue(of slot: UInt32, with value: inout Value) {
    payloads[Int(slot)]?.exchange(&value)
  }

  /// Sets the attributes of a slot.
  @inlinable
  mutating func set(
    _ slot: UInt32, cost: Int, _ times: EntryTimes, version: UInt64
  ) {
    let index = Int(slot)
    totalCost -= UInt128(nodes[index].cost)
    totalCost += UInt128(cost)
    if nodes[index].isSmall {
      list.smallCost = list.smallCost - UInt128(nodes[index].cost) + UInt128(cost)
    }
    nodes[index].cost = cost
    nodes[index].written = times.written
    nodes[index].accessed = times.now
    nodes[index].expires = times.expires
    nodes[index].idleLimit = times.idleLimit
    nodes[index].version = version
    nodes[index].isRead = false
    nodes[index].hasTags = false
    if nodes[index].heapIndex != noSlot || times.expires != never
      || times.idleLimit != never
    {
      deadlines.update(slot, &nodes)
    }
  }

  /// Removes an entry.
  @inlinable
  mutating func remove(_ slot: UInt32) -> EntryPayload<Key, Value>? {
    let index = Int(slot)
    if nodes[index].heapIndex != noSlot {
      deadlines.remove(slot, &nodes)
    }
    if nodes[index].isSmall { list.leaveSmall(slot, &nodes) }
    list.unlink(slot, &nodes)
    leave(slot)
    totalCost -= UInt128(nodes[index].cost)
    count -= 1
    if count == 0 { list.isFilling = true }
    nodes[index].older = firstFree
    firstFree = slot
    var payload: EntryPayload<Key, Value>?
    swap(&payload, &payloads[index])
    return payload
  }

  // MARK: The buckets

  @inlinable
  mutating func enter(_ slot: UInt32, hash: UInt32) {
    let mask = buckets.count - 1
    var bucket = Int(hash) & mask
    while buckets[bucket] != 0 { bucket = (bucket + 1) & mask }
    buckets[bucket] = UInt64(hash) << 32 | UInt64(slot + 1)
  }

  /// Empties the bucket of a slot, and moves later entries that would otherwise be unreachable
  /// (Knuth, volume 3, algorithm 6.4R). So there are no tombstone markers to clear.
  @inlinable
  mutating func leave(_ slot: UInt32) {
    let mask = buckets.count - 1
    let hash = nodes[Int(slot)].hash
    let wanted = UInt64(hash) << 32 | UInt64(slot + 1)
    var hole = Int(hash) & mask
    while buckets[hole] != wanted { hole = (hole + 1) & mask }
    var bucket = hole
    while true {
      bucket = (bucket + 1) & mask
      let word = buckets[bucket]
      if word == 0 { break }
      // The entry may move if its home is not between the hole and its place.
      let home = Int(word >> 32) & mask
      if (bucket - home) & mask >= (bucket - hole) & mask {
        buckets[hole] = word
        hole = bucket
      }
    }
    buckets[hole] = 0
  }

  // MARK: The slots

  /// Takes a free slot, or makes a new one.
  @inlinable
  mutating func takeSlot() -> UInt32 {
    if firstFree != noSlot {
      let slot = firstFree
      firstFree = nodes[Int(slot)].older
      return slot
    }
    if nodes.count == nodes.capacity { grow() }
    nodes.append(EntryNode())
    payloads.append(nil)
    return UInt32(nodes.count - 1)
  }

  /// Doubles the room for entries.
  @inlinable
  mutating func grow() {
    let newCapacity = max(8, nodes.capacity * 2)
    precondition(newCapacity < Int(noSlot), "a cache holds at most 2^31 entries")
    nodes.grow(toCapacity: newCapacity)
    payloads.grow(toCapacity: newCapacity)
    let old = exchange(&buckets, with: SlotArray(repeating: 0, count: newCapacity * 2))
    // In the order of the old buckets, which is the order of the new ones in each half.
    for bucket in 0..<old.count where old[bucket] != 0 {
      let word = old[bucket]
      enter(UInt32(truncatingIfNeeded: word) - 1, hash: UInt32(truncatingIfNeeded: word >> 32))
    }
  }

  /// The memory that the table itself takes in bytes, without the memory that keys and values refer
  /// to.
  @inlinable
  var byteCount: Int {
    buckets.count * 8 + nodes.capacity * MemoryLayout<EntryNode>.stride
      + payloads.capacity * MemoryLayout<EntryPayload<Key, Value>?>.stride
      + deadlines.byteCount + ghosts.byteCount
  }
}
