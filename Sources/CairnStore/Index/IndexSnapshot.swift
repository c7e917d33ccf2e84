/// The index as it was at one moment.
///
/// Making one copies nothing. The first change of a shard after that keeps a copy for all snapshots
/// that see the shard as it was; until then a snapshot looks at the shard itself. When an entry was
/// last read is not part of it: that goes on changing.
package final class IndexSnapshot: Sendable {
  private enum Part {
    /// The shard has not changed yet.
    case live
    case kept(FrozenShard)
    /// There was no memory for a copy of so many entries when the shard changed.
    case lost(entryCount: Int)
    /// Nobody will ask for it any more.
    case released
  }

  private let index: HashIndex
  let epoch: UInt64
  private let parts: Lock<[Part]>
  /// How many entries there are.
  package let count: Int
  /// How many of them can expire.
  package let expirableCount: Int

  init(of index: HashIndex, epoch: UInt64) {
    self.index = index
    self.epoch = epoch
    parts = Lock(Array(repeating: .live, count: HashIndex.shardCount))
    count = index.count
    expirableCount = index.expirableCount
  }

  /// Gives up the copies, and keeps no more. It must not be asked for anything after that.
  package func end() {
    index.forget(self)
    replace(with: Array(repeating: .released, count: HashIndex.shardCount))
    Reclamation.reclaimIfDue()
  }

  /// Gives up one shard, which is not asked for any more.
  package func release(shard: Int) {
    let old = parts.withLock { parts in
      defer { parts[shard] = .released }
      return parts[shard]
    }
    withExtendedLifetime(old) {}
  }

  /// Frees the old parts after the lock is given up, since they take much memory.
  private func replace(with new: [Part]) {
    let old = parts.withLock { parts in
      defer { parts = new }
      return parts
    }
    withExtendedLifetime(old) {}
  }

  /// Whether a copy of a shard that is about to change is of use.
  func needs(shard: Int) -> Bool {
    parts.withLock { if case .live = $0[shard] { true } else { false } }
  }

  /// - Parameter frozen: `nil`: there was no memory for a copy of so many entries.
  func keep(_ frozen: FrozenShard?, shard: Int, count: Int) {
    parts.withLock { $0[shard] = frozen.map { .kept($0) } ?? .lost(entryCount: count) }
  }

  /// Calls `body` under the shard's lock with the entry with this hash that follows the one at
  /// `location`, or with the first; returns whether there is one. This is no access.
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

  /// The entries of one shard in the order of their hashes, in an array that is used again.
  package func copyEntries(
    ofShard shard: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    entries.removeAll(keepingCapacity: true)
    try withShard(shard) { $0.appendEntries(to: &entries) }
  }

  /// The ends of lifetimes that were extended, by the location of the put.
  package func extensions(ofShard shard: Int) throws(StoreError) -> [Location: LifetimeExtension] {
    try withShard(shard) { $0.extensions }
  }

  /// To when the lifetime of an entry was extended; `Int64.min`: it was not.
  package func end(of entry: IndexEntry, inShard shard: Int) throws(StoreError) -> Int64 {
    guard entry.flags.contains(.extended) else { return .min }
    return try withShard(shard) { $0.extensions[entry.location]?.expires ?? .min }
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
    if let value = try index.withShard(shard, before: epoch, body) { return value }
    let part = parts.withLock { $0[shard] }
    if case .lost(let count) = part {
      throw .outOfMemory(neededByteCount: count * MemoryLayout<IndexEntry>.stride)
    }
    guard case .kept(let frozen) = part else {
      preconditionFailure("a snapshot is asked for a shard that it gave up")
    }
    return try frozen.withShard(body)
  }
}

/// A shard as it was before a change, shared by the snapshots that see it so.
final class FrozenShard: Sendable {
  private let shard: Lock<IndexShard>
  private let number: Int
  /// Where the entries are to come from, if they were not loaded.
  private let source: (any ShardSource)?

  init(_ shard: consuming IndexShard, number: Int, source: (any ShardSource)?) {
    self.shard = Lock(shard)
    self.number = number
    self.source = source
  }

  func withShard<Value>(
    _ body: (borrowing IndexShard) -> Value
  ) throws(StoreError) -> Value {
    try shard.withLock { (shard) throws(StoreError) -> Value in
      if shard.isUnloaded, let source { try shard.load(try source.contents(ofShard: number)) }
      return body(shard)
    }
  }
}
