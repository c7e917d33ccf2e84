/// The entries that can expire, ordered by deadline: a binary heap in which each entry records its
/// place (Williams, 1964).
///
/// Reads that postpone an idle deadline do not update the heap, nor do loads that extend a
/// lifetime. So the heap's deadlines may be too early, but never too late. An entry that reaches
/// the top too early is put back. Setting a deadline takes O(log n) for n entries that can expire.
/// It takes O(1) if the deadline is later than all others, for example if all lifetimes are the
/// same.
@usableFromInline
struct DeadlineHeap: ~Copyable, Sendable {
  @usableFromInline
  struct Item: Sendable {
    @usableFromInline var deadline: Int64
    @usableFromInline var slot: UInt32
  }

  @usableFromInline var items = PagedArray<Item>()

  @usableFromInline init() {}

  @usableFromInline var count: Int { items.count }

  /// The memory that the heap takes, in bytes.
  @usableFromInline var byteCount: Int { items.capacity * MemoryLayout<Item>.stride }

  /// Whether an entry may have expired by `now`.
  @usableFromInline
  func isDue(at now: Int64) -> Bool {
    items.count > 0 && items[0].deadline <= now
  }

  /// Adds the deadline of a slot's node, or removes the slot if it cannot expire.
  @usableFromInline
  mutating func update(_ slot: UInt32, _ nodes: inout PagedArray<EntryNode>) {
    let deadline = nodes[Int(slot)].deadline
    let index = nodes[Int(slot)].heapIndex
    if deadline == never { return remove(slot, &nodes) }
    if index == noSlot {
      items.append(Item(deadline: deadline, slot: slot))
      rise(items.count - 1, &nodes)
    } else {
      items[Int(index)].deadline = deadline
      settle(Int(index), &nodes)
    }
  }

  @usableFromInline
  mutating func remove(_ slot: UInt32, _ nodes: inout PagedArray<EntryNode>) {
    let index = nodes[Int(slot)].heapIndex
    if index == noSlot { return }
    nodes[Int(slot)].heapIndex = noSlot
    let last = items.removeLast()
    if Int(index) < items.count {
      items[Int(index)] = last
      nodes[Int(last.slot)].heapIndex = index
      settle(Int(index), &nodes)
    }
  }

  /// The maximum number of entries to put back in one call, so that no write has to put back all
  /// of them.
  package static var mostPutBack: Int { 16 }

  /// The slot of an entry that has expired by `now`. The entry stays in the heap.
  ///
  /// - Returns: `noSlot` if there is none. Also `noSlot`, while `isDue` stays `true`, if too many
  ///   entries had to be put back; then call again.
  @usableFromInline
  mutating func firstDue(at now: Int64, _ nodes: inout PagedArray<EntryNode>) -> UInt32 {
    for _ in 0..<Self.mostPutBack where isDue(at: now) {
      let slot = items[0].slot
      if nodes[Int(slot)].hasExpired(at: now) { return slot }
      // The entry's deadline has moved since it was added.
      update(slot, &nodes)
    }
    return noSlot
  }

  /// Follows an entry that has moved to another slot.
  mutating func replaceSlot(by slot: UInt32, _ nodes: borrowing PagedArray<EntryNode>) {
    let index = nodes[Int(slot)].heapIndex
    if index != noSlot { items[Int(index)].slot = slot }
  }

  /// Calls `body` with each slot whose deadline in the heap has passed.
  ///
  /// - Complexity: O(number of those slots).
  func forEachDue(at now: Int64, _ body: (UInt32) -> Void) {
    var open = [0]
    while let index = open.popLast() {
      guard index < items.count, items[index].deadline <= now else { continue }
      body(items[index].slot)
      open += [2 * index + 1, 2 * index + 2]
    }
  }

  private mutating func settle(_ index: Int, _ nodes: inout PagedArray<EntryNode>) {
    rise(index, &nodes)
    sink(index, &nodes)
  }

  private mutating func rise(_ start: Int, _ nodes: inout PagedArray<EntryNode>) {
    var index = start
    let item = items[index]
    while index > 0, items[(index - 1) / 2].deadline > item.deadline {
      place(items[(index - 1) / 2], at: index, &nodes)
      index = (index - 1) / 2
    }
    place(item, at: index, &nodes)
  }

  private mutating func sink(_ start: Int, _ nodes: inout PagedArray<EntryNode>) {
    var index = start
    let item = items[index]
    while true {
      var child = 2 * index + 1
      if child >= items.count { break }
      if child + 1 < items.count, items[child + 1].deadline < items[child].deadline { child += 1 }
      if items[child].deadline >= item.deadline { break }
      place(items[child], at: index, &nodes)
      index = child
    }
    place(item, at: index, &nodes)
  }

  private mutating func place(
    _ item: Item, at index: Int, _ nodes: inout PagedArray<EntryNode>
  ) {
    items[index] = item
    nodes[Int(item.slot)].heapIndex = UInt32(index)
  }
}
