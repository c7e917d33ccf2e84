/// The index at one moment.
///
/// Making a snapshot copies nothing. Before a shard changes, a copy of it is kept for all snapshots
/// that see its state. Until then, a snapshot reads the shard itself. Access times are not part of
/// a snapshot and keep changing.
package final class IndexSnapshot: Sendable {
  private let index: HashIndex
  private let parts: SnapshotParts
  /// The number of entries.
  package let count: Int
  /// The number of entries that can expire.
  package let expirableCount: Int

  init(of index: HashIndex, _ parts: SnapshotParts) {
    self.index = index
    self.parts = parts
    count = index.count
    expirableCount = index.expirableCount
  }

  /// Releases the copies and keeps no new ones. No call may follow this one.
  package func end() {
    index.endSnapshot(parts)
    parts.releaseAll()
    Reclamation.reclaimIfDue()
  }

  /// Releases one shard that is no longer needed.
  package func release(shard: Int) { parts.release(shard: shard) }

  /// Calls `body` under the shard's lock with the entry with this hash that follows the entry at
  /// `location`, or with the first. Returns whether such an entry exists. Does not count as an
  /// access.
  package func find(
    _ hash: UInt64, after location: Location = .none, _ body: (IndexEntry) -> Void
  ) throws(StoreError) -> Bool {
    let stored = HashIndex.stored(hash)
    return try withShard(HashIndex.shard(of: hash)) { shard in
      var slot = shard.slot(of: stored)
      if location != .none {
        // Entries in a snapshot never move, so this one is still there.
        slot = shard.slot(of: stored, location: location).flatMap {
          shard.slot(of: stored, after: $0)
        }
      }
      guard let slot else { return false }
      body(shard[slot])
      return true
    }
  }

  /// The entries of one shard.
  package func entries(inShard shard: Int) throws(StoreError) -> [IndexEntry] {
    try withShard(shard) { $0.allEntries() }
  }

  /// The entries of one shard, without loading it.
  package func peekEntries(inShard shard: Int) throws(StoreError) -> [IndexEntry] {
    if let unloaded = try index.peekUnloaded(shard) { return unloaded }
    return try entries(inShard: shard)
  }

  private func withShard<Value>(
    _ shard: Int, _ body: (borrowing IndexShard) -> Value
  ) throws(StoreError) -> Value {
    if let value = try index.withShard(shard, before: parts.epoch, body) { return value }
    return try parts.frozen(shard: shard).withShard(body)
  }
}

extension HashIndex {
  /// A snapshot of the current index. Call under the log's lock, while nothing changes the index.
  /// The caller must eventually call the snapshot's `end`.
  ///
  /// - Complexity: O(1).
  package func snapshot() -> IndexSnapshot { IndexSnapshot(of: self, beginSnapshot()) }
}
