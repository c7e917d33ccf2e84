/// What a snapshot keeps of the shards that have changed since it was made.
///
/// The first change of a shard keeps a copy for all snapshots that see the shard as it was.
final class SnapshotParts: Sendable {
  enum Part {
    /// The shard has not changed yet.
    case live
    case kept(FrozenShard)
    /// There was no memory for a copy of so many entries when the shard changed.
    case lost(entryCount: Int)
    /// Nobody will ask for it any more.
    case released
  }

  /// The snapshots' number in the order in which they were made.
  let epoch: UInt64
  private let parts: Lock<[Part]>

  init(epoch: UInt64, shardCount: Int) {
    self.epoch = epoch
    parts = Lock(Array(repeating: .live, count: shardCount))
  }

  /// Whether a copy of a shard that is about to change is of use.
  func needs(shard: Int) -> Bool {
    parts.withLock { if case .live = $0[shard] { true } else { false } }
  }

  /// - Parameter frozen: `nil`: there was no memory for a copy of so many entries.
  func keep(_ frozen: FrozenShard?, shard: Int, count: Int) {
    parts.withLock { $0[shard] = frozen.map { .kept($0) } ?? .lost(entryCount: count) }
  }

  /// Gives up one shard, which is not asked for any more.
  func release(shard: Int) {
    let old = parts.withLock { parts in
      defer { parts[shard] = .released }
      return parts[shard]
    }
    withExtendedLifetime(old) {}
  }

  /// Gives up all. They are freed after the lock is given up, since they take much memory.
  func releaseAll() {
    let old = parts.withLock { parts in
      defer { parts = Array(repeating: .released, count: parts.count) }
      return parts
    }
    withExtendedLifetime(old) {}
  }

  /// A shard that has changed, as it was.
  func frozen(shard: Int) throws(StoreError) -> FrozenShard {
    let part = parts.withLock { $0[shard] }
    if case .lost(let count) = part {
      throw .outOfMemory(neededByteCount: count * MemoryLayout<IndexEntry>.stride)
    }
    guard case .kept(let frozen) = part else {
      preconditionFailure("a snapshot is asked for a shard that it gave up")
    }
    return frozen
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
