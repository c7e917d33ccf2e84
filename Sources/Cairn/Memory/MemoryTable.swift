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
///     buckets   hash → slot
///                 ▼
///     nodes     links, times, cost                        of slot 0, 1, 2 …
///     payloads  key, value                                of slot 0, 1, 2 …
///
/// The parts always agree. `count` slots are in use, and the others are free. Each slot in use is
/// found through the buckets, is in the list, and is in the heap if it can expire. Their costs add
/// up to `totalCost`.
///
/// Every part grows in steps of bounded size, so no write has to move all entries.
@usableFromInline
struct MemoryTable<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
  @usableFromInline var buckets = HashBuckets()
  @usableFromInline var nodes = PagedArray<EntryNode>()
  @usableFromInline var payloads = PagedArray<EntryPayload<Key, Value>?>()
  /// The free slots, linked like the list.
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
    buckets.find(hash) { slot in holds(slot, key) }
  }

  /// Like `find`. While the key is compared, the processor fetches what a write of the entry needs.
  @inlinable
  @inline(__always)
  func findToWrite(_ key: Key, hash: UInt32) -> UInt32 {
    let slot = buckets.find(hash) { slot in
      nodes.prefetch(Int(slot))
      return holds(slot, key)
    }
    if slot != noSlot {
      let (newer, older) = (nodes[Int(slot)].newer, nodes[Int(slot)].older)
      if newer != noSlot { nodes.prefetch(Int(newer)) }
      if older != noSlot { nodes.prefetch(Int(older)) }
    }
    return slot
  }

  /// The slot with this hash whose key `isSought` accepts.
  func find(hash: UInt32, where isSought: (Key) -> Bool) -> UInt32 {
    buckets.find(hash) { slot in key(slot).map(isSought) ?? false }
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
    nodes[Int(slot)] = EntryNode(hash: hash)
    buckets.enter(slot, hash: hash)
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
    // One access to the node: each one finds its page anew.
    let old = nodes[Int(slot)].set(cost: cost, times, version: version)
    if old.cost != cost {
      totalCost = totalCost - UInt128(old.cost) + UInt128(cost)
      if old.isSmall { list.smallCost = list.smallCost - UInt128(old.cost) + UInt128(cost) }
    }
    if old.isInHeap || times.expires != never || times.idleLimit != never {
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
    buckets.leave(slot, hash: nodes[index].hash)
    totalCost -= UInt128(nodes[index].cost)
    count -= 1
    if count == 0 { list.isFilling = true }
    enterFree(slot)
    var payload: EntryPayload<Key, Value>?
    swap(&payload, &payloads[index])
    return payload
  }

  // MARK: The slots

  /// Takes a free slot, or makes a new one.
  @inlinable
  mutating func takeSlot() -> UInt32 {
    if firstFree != noSlot {
      let slot = firstFree
      leaveFree(slot)
      return slot
    }
    precondition(nodes.count < Int(Int32.max), "a cache holds at most 2^31 entries")
    nodes.append(EntryNode())
    payloads.append(nil)
    return UInt32(nodes.count - 1)
  }

  @inlinable
  mutating func enterFree(_ slot: UInt32) {
    nodes[Int(slot)].newer = noSlot
    nodes[Int(slot)].older = firstFree
    if firstFree != noSlot { nodes[Int(firstFree)].newer = slot }
    firstFree = slot
  }

  @inlinable
  mutating func leaveFree(_ slot: UInt32) {
    let (newer, older) = (nodes[Int(slot)].newer, nodes[Int(slot)].older)
    if newer == noSlot { firstFree = older } else { nodes[Int(newer)].older = older }
    if older != noSlot { nodes[Int(older)].newer = newer }
  }

  /// Gives up the last slot. If it is in use, its entry moves to a free slot.
  ///
  /// - Returns: `false` if no slot is free.
  mutating func dropLastSlot() -> Bool {
    if firstFree == noSlot { return false }
    let last = UInt32(nodes.count - 1)
    if isUsed(Int(last)) { move(last, to: takeSlot()) } else { leaveFree(last) }
    _ = nodes.removeLast()
    _ = payloads.removeLast()
    return true
  }

  private mutating func move(_ slot: UInt32, to other: UInt32) {
    payloads[Int(other)] = payloads[Int(slot)].take()
    nodes[Int(other)] = nodes[Int(slot)]
    buckets.replace(slot, by: other, hash: nodes[Int(other)].hash)
    deadlines.replaceSlot(by: other, nodes)
    list.replace(slot, by: other, &nodes)
  }

  /// The memory that the table itself takes in bytes, without the memory that keys and values refer
  /// to.
  @inlinable
  var byteCount: Int {
    buckets.byteCount + nodes.capacity * MemoryLayout<EntryNode>.stride
      + payloads.capacity * MemoryLayout<EntryPayload<Key, Value>?>.stride
      + deadlines.byteCount + ghosts.byteCount
  }
}
