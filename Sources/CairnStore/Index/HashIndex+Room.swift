/// Makes room for entries before their records are appended: once a record is in the log, adding
/// its entry must not fail for lack of memory.
extension HashIndex {
  /// Makes room for an entry with this hash. Call under the log's lock, so that no other entry
  /// takes the room.
  ///
  /// - Throws: `outOfMemory`.
  @inline(__always)
  package func makeRoom(_ hash: UInt64) throws(StoreError) {
    let number = Self.shard(of: hash)
    if !versions.note(number) { try makeRoom(inShard: number, for: Self.stored(hash)) }
  }

  @inline(never)
  private func makeRoom(inShard number: Int, for hash: UInt64) throws(StoreError) {
    try shards[number].withLock { (shard) throws(StoreError) in
      if !shard.hasRoom(for: 1) { try makeRoom(in: &shard, number, for: [hash]) }
    }
  }

  /// Makes room for entries with these hashes.
  ///
  /// - Throws: `outOfMemory`. There may then be room for some of the entries.
  package func makeRoom(for hashes: some Collection<UInt64>) throws(StoreError) {
    var counts = [Int](repeating: 0, count: Self.shardCount)
    for hash in hashes { counts[Self.shard(of: hash)] += 1 }
    for (number, count) in counts.enumerated() where count > 0 {
      try shards[number].withLock { (shard) throws(StoreError) in
        if shard.hasRoom(for: count) { return }
        let own = hashes.filter { Self.shard(of: $0) == number }
        try makeRoom(in: &shard, number, for: own.map(Self.stored))
      }
    }
  }

  @inline(never)
  private func makeRoom(
    in shard: inout IndexShard, _ number: Int, for hashes: [UInt64]
  ) throws(StoreError) {
    if shard.isUnloaded { try load(&shard, number) }
    try changing(&shard, number) { (shard) throws(StoreError) in try shard.makeRoom(for: hashes) }
  }
}
