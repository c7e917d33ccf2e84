/// Replay's operations on many entries of one shard at a time, while the shard is in the
/// processor's caches.
extension HashIndex {
  /// Calls `body` with each entry that has one of the given hashes, and with the number of the
  /// hash.
  @inline(__always)
  package func find(
    _ count: Int, inShard number: Int, hash: (Int) -> UInt64, _ body: (Int, IndexEntry) -> Void
  ) throws(StoreError) {
    try load(shard: number)
    shards[number].withLock { shard in
      for index in 0..<count {
        let stored = Self.stored(hash(index))
        var slot = shard.slot(of: stored)
        while let found = slot {
          body(index, shard[found])
          slot = shard.slot(of: stored, after: found)
        }
      }
    }
  }

  /// An entry, and the one it replaces, if any.
  package struct Change {
    var entry: IndexEntry
    var old: Location

    package init(_ entry: IndexEntry, replacing old: Location) {
      self.entry = entry
      self.old = old
    }
  }

  /// Makes the given changes to a shard. Skips `nil`.
  ///
  /// - Parameter newCount: the number of changes that replace nothing.
  /// - Throws: `outOfMemory`.
  @inline(__always)
  package func enter(
    _ count: Int, inShard number: Int, newCount: Int, _ next: (Int) -> Change?
  ) throws(StoreError) {
    defer { Reclamation.reclaimIfDue() }
    try change(number) { (shard) throws(StoreError) in
      try shard.reserve(newCount)
      for index in 0..<count {
        guard let change = next(index) else { continue }
        if change.old == .none {
          try shard.add(change.entry, deadline: nil)
        } else if let slot = shard.slot(of: change.entry.hash, location: change.old) {
          shard.replace(at: slot, with: change.entry, deadline: nil)
        }
      }
    }
  }
}
