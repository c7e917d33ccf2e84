internal import Synchronization

/// Shards that load when they are first needed.
extension HashIndex {
  /// Attaches `source`, which provides the entries of all shards. Each shard loads when it is first
  /// needed.
  ///
  /// - Parameter counts: for each shard, the number of its entries and how many of them can expire.
  package func attach(
    _ source: any ShardSource, counts: [(entries: Int, expirable: Int)]
  ) {
    self.source.withLock { $0 = source }
    // Count one shard more than there are, so that the source is not released early.
    unloadedShardCount.store(1, ordering: .relaxed)
    for (number, counts) in counts.enumerated() where counts.entries > 0 {
      shards[number].withLock { shard in
        let (count, expirableCount) = (shard.count, shard.expirableCount)
        changing(&shard, number) {
          $0.unload(count: counts.entries, expirableCount: counts.expirable)
        }
        note(count, expirableCount, before: shard)
      }
      unloadedShardCount.wrappingAdd(1, ordering: .relaxed)
    }
    noteLoaded()
  }

  /// Whether all shards are loaded.
  package var isLoaded: Bool { unloadedShardCount.load(ordering: .relaxed) == 0 }

  /// Loads all shards that are not loaded yet.
  package func loadAll() throws(StoreError) {
    if isLoaded { return }
    for number in 0..<Self.shardCount { try load(shard: number) }
  }

  /// Loads the shard of a hash, so that an entry can be added without a lookup.
  @inline(__always)
  package func load(shardOf hash: UInt64) throws(StoreError) {
    if isLoaded { return }
    try load(shard: Self.shard(of: hash))
  }

  @inline(never)
  func load(shard number: Int) throws(StoreError) {
    try shards[number].withLock { (shard) throws(StoreError) in
      if shard.isUnloaded { try load(&shard, number) }
    }
  }

  @inline(never)
  func load(_ shard: inout IndexShard, _ number: Int) throws(StoreError) {
    guard let source = source.withLock({ $0 }) else {
      preconditionFailure("an unloaded shard has a source")
    }
    let entries = try source.entries(ofShard: number)
    let (count, expirableCount) = (shard.count, shard.expirableCount)
    // Loading is not a change: a snapshot sees the loaded entries.
    try changing(&shard, number) { (shard) throws(StoreError) in try shard.load(entries) }
    note(count, expirableCount, before: shard)
    noteLoaded()
  }

  func noteLoaded() {
    guard unloadedShardCount.wrappingSubtract(1, ordering: .relaxed).newValue == 0 else { return }
    let old = source.withLock { source in
      defer { source = nil }
      return source
    }
    withExtendedLifetime(old) {}
  }

  /// The entries of an unloaded shard, without loading it, or `nil` if it is loaded.
  func peekUnloaded(_ number: Int) throws(StoreError) -> [IndexEntry]? {
    try shards[number].withLock { (shard) throws(StoreError) -> [IndexEntry]? in
      guard shard.isUnloaded, let source = source.withLock({ $0 }) else { return nil }
      return try source.entries(ofShard: number)
    }
  }
}
