// Removals by tag in the memory tier, which does not know the tags of its entries.
extension MemoryCache {
  /// The number of slots checked in one hold of the lock.
  private static var doubtGroupCount: Int { 4096 }

  /// Puts entries with tags in doubt if their version is below this one. Only the tier below knows
  /// whether they are removed. 0 ends the doubt.
  func doubt(before version: UInt64) { lock.withLock { $0.doubtful = version } }

  /// Drops the entries in doubt, and makes all earlier tickets void.
  func dropDoubtful() {
    let isDoubting = lock.withLock { state in
      if state.doubtful == 0 { return false }
      state.clears &+= 1
      return true
    }
    if !isDoubting { return }
    var next = 0
    var isDone = false
    while !isDone {
      var removed = RemovedEntries<Key, Value>()
      let observers = lock.withLock { state in
        let end = min(next + Self.doubtGroupCount, state.table.nodes.count)
        for slot in next..<max(next, end)
        where state.table.payloads[slot] != nil && state.isDoubtful(UInt32(slot)) {
          state.remove(UInt32(slot), .evicted(.trim), &removed)
        }
        next += Self.doubtGroupCount
        isDone = next >= state.table.nodes.count
        return state.observers
      }
      deliver(removed, to: observers)
    }
  }
}
