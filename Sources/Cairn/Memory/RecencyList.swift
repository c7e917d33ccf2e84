/// The order in which entries go: a list through the nodes, linked both ways by the numbers of slots.
///
///     newest ─older→ … ─older→ oldest
///            ←newer─   ←newer─
///
/// Not to be used without the nodes that it links; `MemoryTable` has both.
@usableFromInline
struct RecencyList: Sendable {
  @usableFromInline var newest = noSlot
  @usableFromInline var oldest = noSlot
  /// Where SIEVE's search goes on; `noSlot`: at the oldest.
  @usableFromInline var hand = noSlot
  /// Where a walk from the newest to the oldest goes on, whatever moves meanwhile.
  @usableFromInline var walk = noSlot

  @inlinable init() {}

  @inlinable
  @inline(__always)
  mutating func pushNewest(_ slot: UInt32, _ nodes: inout SlotArray<EntryNode>) {
    nodes[Int(slot)].newer = noSlot
    nodes[Int(slot)].older = newest
    if newest == noSlot { oldest = slot } else { nodes[Int(newest)].newer = slot }
    newest = slot
  }

  @inlinable
  @inline(__always)
  mutating func unlink(_ slot: UInt32, _ nodes: inout SlotArray<EntryNode>) {
    let newer = nodes[Int(slot)].newer
    let older = nodes[Int(slot)].older
    if hand == slot { hand = newer }
    if walk == slot { walk = older }
    if newer == noSlot { newest = older } else { nodes[Int(newer)].older = older }
    if older == noSlot { oldest = newer } else { nodes[Int(older)].newer = newer }
  }

  /// Notes an access.
  @inlinable
  @inline(__always)
  mutating func touch(
    _ slot: UInt32, policy: EvictionPolicy, _ nodes: inout SlotArray<EntryNode>
  ) {
    nodes[Int(slot)].isRecent = true
    if policy == .sieve {
      // Reading is cheaper than writing where the line is shared.
      if !nodes[Int(slot)].isVisited { nodes[Int(slot)].isVisited = true }
    } else if newest != slot {
      unlink(slot, &nodes)
      pushNewest(slot, &nodes)
    }
  }

  /// The entry to go next; `noSlot` where there is none.
  ///
  /// - Parameter spared: one that is not to go.
  @usableFromInline
  mutating func victim(
    policy: EvictionPolicy, sparing spared: UInt32, _ nodes: inout SlotArray<EntryNode>
  ) -> UInt32 {
    if policy == .leastRecentlyUsed {
      return oldest == spared && oldest != noSlot ? nodes[Int(oldest)].newer : oldest
    }
    if oldest == noSlot || (oldest == spared && newest == spared) { return noSlot }
    var slot = hand == noSlot ? oldest : hand
    // Ends in the second round at the latest, since the first leaves nothing visited.
    while slot == spared || nodes[Int(slot)].isVisited {
      if slot != spared { nodes[Int(slot)].isVisited = false }
      slot = nodes[Int(slot)].newer
      if slot == noSlot { slot = oldest }
    }
    // A new entry comes after the eviction that made room for it: the hand does not see it now.
    let seesNew = plantedInCache(.handSeesNewEntry)
    hand = nodes[Int(slot)].newer == spared && spared == newest && !seesNew ? noSlot : slot
    return slot
  }
}
