// Removals by tag in the memory tier, which does not know the tags of its entries.
extension MemoryCache {
  /// The number of slots checked in one hold of the lock.
  private static var doubtGroupCount: Int { 4096 }

  /// Puts entries with tags in doubt if their version is below this one. Only the tier below knows
  /// whether they are removed. 0 ends the doubt.
  func doubt(before version: UInt64) { lock.withLock { $0.doubtful = version } }

  /// Drops the entries in doubt, and makes all earlier tickets void.
  ///
  /// - Parameter isCurrent: whether the tier below has an entry in this version. Runs without the lock.
  func dropDoubtful(unless isCurrent: (_ key: Key, _ version: UInt64) -> Bool) {
    let isDoubting = lock.withLock { state in
      if state.doubtful == 0 { return false }
      state.clears &+= 1
      return true
    }
    if !isDoubting { return }
    var next = 0
    var isDone = false
    while !isDone {
      var doubtful: [(slot: Int, key: Key, version: UInt64)] = []
      lock.withLock { state in
        let end = min(next + Self.doubtGroupCount, state.table.nodes.count)
        for slot in next..<max(next, end) where state.isDoubtful(UInt32(slot)) {
          guard let payload = state.table.payloads[slot] else { continue }
          doubtful.append((slot, payload.key, state.table.nodes[slot].version))
        }
        next += Self.doubtGroupCount
        isDone = next >= state.table.nodes.count
      }
      doubtful.removeAll { isCurrent($0.key, $0.version) }
      var removed = RemovedEntries<Key, Value>()
      let observers = lock.withLock { state in
        // The slot may now have another entry. A newer one is not in doubt.
        for (slot, _, version) in doubtful
        where slot < state.table.nodes.count && state.table.payloads[slot] != nil
          && state.table.nodes[slot].version == version && state.isDoubtful(UInt32(slot))
        {
          state.remove(UInt32(slot), .evicted(.trim), &removed)
        }
        return state.observers
      }
      deliver(removed, to: observers)
      lock.giveWay()
    }
  }
}
