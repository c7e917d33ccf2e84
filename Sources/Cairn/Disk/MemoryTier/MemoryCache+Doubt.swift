// What a cache on disk that removes entries by their tags needs of the tier in memory, which does not know the tags.
extension MemoryCache {
  /// How many slots are looked at under one hold of the lock.
  private static var doubtGroupCount: Int { 4096 }

  /// From here on an entry with tags is in doubt whose version is at or below this one: only the tier below knows whether it
  /// is still to be found.
  func doubt(through version: UInt64) { lock.withLock { $0.doubtful = version } }

  /// Drops what is in doubt. Nothing comes in any more by a ticket of before.
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
