// Removals by tag in the memory tier, which does not know the tags of its entries.
extension MemoryCache {
  /// Puts entries with tags in doubt if their version is below this one. Only the tier below knows
  /// whether such entries are removed. 0 ends the doubt.
  func doubt(before version: UInt64) { lock.withLock { $0.doubtful = version } }

  /// Drops the entries in doubt, and makes all earlier tickets void.
  ///
  /// - Parameter isCurrent: whether the tier below has this version of the key's entry. Runs
  ///   outside the lock.
  func dropDoubtful(unless isCurrent: (_ key: Key, _ version: UInt64) -> Bool) {
    let isDoubting = lock.withLock { state in
      if state.doubtful == 0 { return false }
      state.clears &+= 1
      return true
    }
    if !isDoubting { return }
    forEachSlotGroup { state, slots in
      var doubtful: [(key: Key, version: UInt64)] = []
      for slot in slots where state.isDoubtful(UInt32(slot)) {
        guard let key = state.table.key(UInt32(slot)) else { continue }
        doubtful.append((key, state.table.nodes[slot].version))
      }
      return doubtful
    } then: { found in
      let doubtful = found.filter { !isCurrent($0.key, $0.version) }
        .map { (key: $0.key, hash: MemoryTable<Key, Value>.hash($0.key), version: $0.version) }
      var removed = RemovedEntries<Key, Value>()
      let observers = lock.withLock { state in
        // The entry may be in another slot by now. A newer entry is not in doubt.
        for (key, hash, version) in doubtful {
          let slot = state.table.find(key, hash: hash)
          guard slot != noSlot, state.table.nodes[Int(slot)].version == version,
            state.isDoubtful(slot)
          else { continue }
          state.remove(slot, .evicted(.trim), &removed)
        }
        return state.observers
      }
      deliver(removed, to: observers)
    }
  }
}

extension MemoryState {
  /// Records that the entry of a key has tags.
  @usableFromInline
  mutating func noteTags(_ key: Key, hash: UInt32) {
    let slot = table.find(key, hash: hash)
    if slot != noSlot { table.nodes[Int(slot)].hasTags = true }
  }
}
