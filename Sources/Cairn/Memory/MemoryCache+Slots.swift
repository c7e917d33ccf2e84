internal import CairnStore

/// Visiting all slots, while other calls continue.
extension MemoryCache {
  /// The number of slots visited under one hold of the lock.
  private static var slotGroupCount: Int { 512 }

  /// Visits the slots that exist at the beginning, in groups, from the last to the first. An entry
  /// moves only to a lower slot (see `MemoryTable.dropLastSlot`), so each entry that stays is
  /// visited, usually once. Entries written in the meantime may be missed.
  ///
  /// - Parameters:
  ///   - visit: visits a group under the lock.
  ///   - body: receives the result of `visit`, outside the lock.
  /// - Complexity: O(slots). Lets waiting threads take the lock between groups.
  func forEachSlotGroup<Found, Failure: Error>(
    _ visit: (inout MemoryState<Key, Value>, Range<Int>) -> Found,
    then body: (Found) throws(Failure) -> Void
  ) throws(Failure) {
    let count = lock.withLock { $0.table.nodes.count }
    for start in stride(from: 0, to: count, by: Self.slotGroupCount).reversed() {
      let found = lock.withLock { state in
        // The table may have become smaller.
        let end = min(start + Self.slotGroupCount, count, state.table.nodes.count)
        return visit(&state, start..<max(start, end))
      }
      try body(found)
      if start > 0 { lock.giveWay() }
    }
  }

  /// Removes the entries for which `cause` returns a cause.
  func removeSlots(_ cause: (EntryNode) -> RemovalCause?) -> RemovalSummary {
    var summary = RemovalSummary()
    var removed = RemovedEntries<Key, Value>()
    forEachSlotGroup { state, slots in
      for slot in slots where state.table.isUsed(slot) {
        guard let cause = cause(state.table.nodes[slot]) else { continue }
        summary.add(cost: state.table.nodes[slot].cost)
        state.remove(UInt32(slot), cause, &removed)
      }
      return state.observers
    } then: { observers in
      deliver(exchange(&removed, with: RemovedEntries()), to: observers)
    }
    return summary
  }
}
