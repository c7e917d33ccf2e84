/// S3-FIFO: a small queue for new entries, a main queue, and the ghosts of the small queue.
extension RecencyList {
  /// The share of the small queue is the limit divided by this number.
  @usableFromInline static var smallShare: Int { 10 }

  /// The minimum number of uses for an entry to move from the small queue to the main one.
  private static var promotionFrequency: UInt64 { 2 }

  /// Inserts an entry as the newest of the small queue. The entry's cost is still 0.
  @usableFromInline
  mutating func pushSmall(_ slot: UInt32, _ nodes: inout PagedArray<EntryNode>) {
    let older = newestSmall
    let newer = oldestMain(nodes)
    nodes[Int(slot)].older = older
    nodes[Int(slot)].newer = newer
    if older == noSlot { oldest = slot } else { nodes[Int(older)].newer = slot }
    if newer == noSlot { newest = slot } else { nodes[Int(newer)].older = slot }
    nodes[Int(slot)].isSmall = true
    newestSmall = slot
    smallCount += 1
  }

  /// Subtracts an entry from the small queue's counts before it is unlinked.
  @usableFromInline
  mutating func leaveSmall(_ slot: UInt32, _ nodes: inout PagedArray<EntryNode>) {
    if newestSmall == slot { newestSmall = nodes[Int(slot)].older }
    nodes[Int(slot)].isSmall = false
    smallCount -= 1
    smallCost -= UInt128(nodes[Int(slot)].cost)
  }

  private func oldestMain(_ nodes: borrowing PagedArray<EntryNode>) -> UInt32 {
    newestSmall == noSlot ? oldest : nodes[Int(newestSmall)].newer
  }

  /// The entry to evict next, or `noSlot` if there is none. If it is in the small queue, its hash
  /// joins the ghosts.
  ///
  /// - Parameters:
  ///   - spared: the entry to make room for, which must stay, or `noSlot` if there is none.
  ///   - count: the number of entries.
  ///   - limit: the limit of the cache, in entries or in cost.
  ///   - isByCost: whether `limit` is a cost limit.
  /// - Complexity: O(1). After `mostMoves` moves, the next entry is evicted although it was used.
  @usableFromInline
  mutating func queueVictim(
    sparing spared: UInt32, of count: Int, limit: UInt128, isByCost: Bool,
    _ ghosts: inout GhostQueue, _ nodes: inout PagedArray<EntryNode>
  ) -> UInt32 {
    // A trim leaves room for either queue.
    isFilling = spared == noSlot
    let mostSmall = max(1, limit / UInt128(Self.smallShare))
    var moveCount = 0
    while true {
      let oldestMain = oldestMain(nodes)
      let hasMain = oldestMain != noSlot && !(oldestMain == spared && newest == spared)
      let hasSmall = newestSmall != noSlot && !(newestSmall == spared && oldest == spared)
      if !hasMain && !hasSmall { return noSlot }
      if hasSmall && (!hasMain || small(without: spared, isByCost, nodes) >= mostSmall) {
        let slot = oldest == spared ? nodes[Int(oldest)].newer : oldest
        if nodes[Int(slot)].frequency < Self.promotionFrequency || moveCount >= Self.mostMoves {
          // The target size of the main queue, once this entry is gone.
          let limit = (count - 1) * (Self.smallShare - 1) / Self.smallShare
          ghosts.append(nodes[Int(slot)].hash, limit: limit)
          return slot
        }
        nodes[Int(slot)].frequency = 0
        leaveSmall(slot, &nodes)
        moveToNewest(slot, &nodes)
      } else {
        let frequency = nodes[Int(oldestMain)].frequency
        if oldestMain != spared && (frequency == 0 || moveCount >= Self.mostMoves) {
          return oldestMain
        }
        if frequency > 0 { nodes[Int(oldestMain)].frequency = frequency - 1 }
        moveToNewest(oldestMain, &nodes)
      }
      moveCount += 1
    }
  }

  private mutating func moveToNewest(_ slot: UInt32, _ nodes: inout PagedArray<EntryNode>) {
    unlink(slot, &nodes)
    pushNewest(slot, &nodes)
  }

  /// The size of the small queue, in entries or in cost, without one entry.
  private func small(
    without spared: UInt32, _ isByCost: Bool, _ nodes: borrowing PagedArray<EntryNode>
  ) -> UInt128 {
    let counts = spared != noSlot && nodes[Int(spared)].isSmall
    if isByCost { return smallCost - UInt128(counts ? nodes[Int(spared)].cost : 0) }
    return UInt128(smallCount - (counts ? 1 : 0))
  }
}

extension MemoryState {
  /// The entry to evict next by S3-FIFO, or `noSlot` if there is none.
  @inlinable
  mutating func queueVictim(_ cause: EvictionCause, sparing spared: UInt32) -> UInt32 {
    let isByCost = cause == .costLimit
    return table.list.queueVictim(
      sparing: spared, of: table.count,
      limit: isByCost ? costLimit : UInt128(min(countLimit, table.count)), isByCost: isByCost,
      &table.ghosts, &table.nodes)
  }

  /// Whether a new entry enters the small queue of S3-FIFO. `false` if its key was recently evicted
  /// from there, or if the cache is filling up and the small queue has its share.
  @inlinable
  mutating func goesToSmall(hash: UInt32, cost: Int) -> Bool {
    if table.ghosts.take(hash) { return false }
    let fits = table.count < countLimit && table.totalCost + UInt128(cost) <= costLimit
    return !(table.list.isFilling && fits && smallHasItsShare)
  }

  @inlinable
  var smallHasItsShare: Bool {
    let share = RecencyList.smallShare
    let limit = countLimit == .max && costLimit == .max ? table.count : countLimit
    return table.list.smallCount >= max(1, limit / share)
      || table.list.smallCost >= max(1, costLimit / UInt128(share))
  }
}
