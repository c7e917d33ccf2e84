/// The index as it was at one moment.
///
/// Making one copies nothing. The first change of a shard after that keeps a copy for all snapshots
/// that see the shard as it was; until then a snapshot looks at the shard itself. When an entry was
/// last read is not part of it: that goes on changing.
package final class IndexSnapshot: Sendable {
  private let index: HashIndex
  private let parts: SnapshotParts
  /// How many entries there are.
  package let count: Int
  /// How many of them can expire.
  package let expirableCount: Int

  init(of index: HashIndex, _ parts: SnapshotParts) {
    self.index = index
    self.parts = parts
    count = index.count
    expirableCount = index.expirableCount
  }

  /// Gives up the copies, and keeps no more. It must not be asked for anything after that.
  package func end() {
    index.endSnapshot(parts)
    parts.releaseAll()
    Reclamation.reclaimIfDue()
  }

  /// Gives up one shard, which is not asked for any more.
  package func release(shard: Int) { parts.release(shard: shard) }

  /// Calls `body` under the shard's lock with the entry with this hash that follows the one at
  /// `location`, or with the first; returns whether there is one. This does not count as an access.
  package func find(
    _ hash: UInt64, after location: Location = .none, _ body: (IndexEntry) -> Void
  ) throws(StoreError) -> Bool {
    let stored = HashIndex.stored(hash)
    return try withShard(HashIndex.shard(of: hash)) { shard in
      var slot = shard.slot(of: stored)
      if location != .none {
        // Nothing moves here: the entry is where it was.
        slot = shard.slot(of: stored, location: location).flatMap {
          shard.slot(of: stored, after: $0)
        }
      }
      guard let slot else { return false }
      body(shard[slot])
      return true
    }
  }

  /// The entries of one shard, and to when their lifetimes were extended; `Int64.min`: they were not.
  package func entries(
    inShard shard: Int
  ) throws(StoreError) -> [(entry: IndexEntry, end: Int64)] {
    try withShard(shard) { shard in shard.allEntries().map { ($0, shard.end(of: $0)) } }
  }

  /// The ends of lifetimes that were extended, by the location of the put.
  package func extensions(ofShard shard: Int) throws(StoreError) -> [Location: LifetimeExtension] {
    try withShard(shard) { $0.extensions }
  }

  /// To when the lifetime of an entry was extended; `Int64.min`: it was not.
  package func end(of entry: IndexEntry, inShard shard: Int) throws(StoreError) -> Int64 {
    guard entry.flags.contains(.extended) else { return .min }
    return try withShard(shard) { $0.end(of: entry) }
  }

  /// All that one shard holds; where it was not loaded it stays so.
  package func peekContents(ofShard shard: Int) throws(StoreError) -> ShardContents {
    if let unloaded = try index.peekUnloaded(shard) { return unloaded }
    return try withShard(shard) {
      ShardContents(entries: $0.allEntries(), extensions: $0.extensions)
    }
  }

  private func withShard<Value>(
    _ shard: Int, _ body: (borrowing IndexShard) -> Value
  ) throws(StoreError) -> Value {
    if let value = try index.withShard(shard, before: parts.epoch, body) { return value }
    return try parts.frozen(shard: shard).withShard(body)
  }
}

extension HashIndex {
  /// The index as it is now. Called where nothing changes it, under the log's lock; whoever
  /// gets it calls its `end` at last.
  ///
  /// - Complexity: O(1).
  package func snapshot() -> IndexSnapshot { IndexSnapshot(of: self, beginSnapshot()) }
}
