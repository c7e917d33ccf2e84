/// A snapshot's copies of the shards that have changed since it was made.
///
/// Before a shard's first change after a snapshot, a copy is kept for all snapshots that see its
/// state.
final class SnapshotParts: Sendable {
  enum Part {
    /// The shard has not changed yet.
    case live
    case kept(FrozenShard)
    /// The shard changed when there was no memory for a copy of this many entries.
    case lost(entryCount: Int)
    /// The shard is no longer needed.
    case released
  }

  /// The snapshot's epoch: its number in the order of creation.
  let epoch: UInt64
  private let parts: Lock<[Part]>

  init(epoch: UInt64, shardCount: Int) {
    self.epoch = epoch
    parts = Lock(Array(repeating: .live, count: shardCount))
  }

  /// Whether the snapshot needs a copy of a shard before the shard changes.
  func needs(shard: Int) -> Bool {
    parts.withLock { if case .live = $0[shard] { true } else { false } }
  }

  /// - Parameter frozen: the copy, or `nil` if there was no memory for a copy of this many entries.
  func keep(_ frozen: FrozenShard?, shard: Int, count: Int) {
    parts.withLock { $0[shard] = frozen.map { .kept($0) } ?? .lost(entryCount: count) }
  }

  /// Releases one shard that is no longer needed.
  func release(shard: Int) {
    let old = parts.withLock { parts in
      defer { parts[shard] = .released }
      return parts[shard]
    }
    withExtendedLifetime(old) {}
  }

  /// Releases everything. The memory, which may be large, is freed after the lock is released.
  func releaseAll() {
    let old = parts.withLock { parts in
      defer { parts = Array(repeating: .released, count: parts.count) }
      return parts
    }
    withExtendedLifetime(old) {}
  }

  /// The earlier state of a shard that has changed.
  func frozen(shard: Int) throws(StoreError) -> FrozenShard {
    let part = parts.withLock { $0[shard] }
    if case .lost(let count) = part {
      throw .outOfMemory(neededByteCount: count * MemoryLayout<IndexEntry>.stride)
    }
    guard case .kept(let frozen) = part else {
      preconditionFailure("the snapshot has released this shard")
    }
    return frozen
  }
}

/// A shard's state before a change, shared by the snapshots that see it.
final class FrozenShard: Sendable {
  private let shard: Lock<IndexShard>
  private let number: Int
  /// The source of the entries, if they were not loaded.
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
      if shard.isUnloaded, let source { try shard.load(try source.entries(ofShard: number)) }
      return body(shard)
    }
  }
}
