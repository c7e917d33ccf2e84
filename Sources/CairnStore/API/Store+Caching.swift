// Calls that the caches need beyond the public interface.
extension Store {
  /// The record of a key, without copying it. See `Engine.pinnedEntry`.
  package func pinnedEntry(
    forKey key: RawSpan, part: Record.Part = .all, isAccess: Bool = true
  ) throws(StoreError) -> PinnedEntry? {
    guard let follower else {
      return try reader.pinnedEntry(forKey: key, part: part, isAccess: isAccess)
    }
    return try follower.read { (reader) throws(StoreError) in
      try reader.pinnedEntry(forKey: key, part: part, isAccess: false)
    }
  }

  package func info(of entry: borrowing PinnedEntry) -> EntryInfo {
    // Access times belong to the reader's index.
    (follower?.lastReader ?? reader).info(of: entry)
  }

  /// Whether this store follows another process. If so, every write throws `readOnly`.
  package var isFollowing: Bool { follower != nil }

  /// Makes the hashes of keys in the index, unless the store follows another process.
  package var keyHash: SipHash { reader.lookup.hash }

  /// The hash of a key in the index, whose entry it prefetches. If the store follows another process,
  /// a hash that stays the same even if another store appears at the path.
  package func hash(ofKey key: RawSpan) -> UInt64 {
    if let follower { return follower.keyHash.hash(key) }
    return reader.prefetchingHash(ofKey: key)
  }

  /// Whether the index names this record for the key with this hash. See `Lookup.isCurrent`.
  /// `false` if the store follows another process.
  package func isCurrent(
    _ place: RecordPlace, ofHash hash: UInt64, now: Timestamp, isAccess: Bool
  ) -> Bool {
    follower == nil && reader.isCurrent(place, ofHash: hash, now: now, isAccess: isAccess)
  }

  /// Information about a key, and the place of its record. If the store follows another process,
  /// the place stands for the history that the key's version belongs to: within one history, a
  /// version always has the same value.
  package func look(
    at key: RawSpan, isAccess: Bool
  ) throws(StoreError) -> (info: EntryInfo, place: RecordPlace)? {
    guard let follower else { return try reader.look(at: key, touch: isAccess) }
    return try follower.look(at: key)
  }

  /// The history of a followed store, as `look` returns it.
  package func history() throws(StoreError) -> RecordPlace {
    try follower?.history() ?? .unknown
  }

  /// Counts a key as just read, without reading its value. Never writes to disk.
  ///
  /// - Returns: whether the key has a value. A damaged record counts as no value.
  /// - Complexity: O(key), including a read of the record's head.
  package func touch(_ key: RawSpan) throws(StoreError) -> Bool {
    do throws(StoreError) {
      if follower != nil { return try contains(key) }
      return try reader.touch(key)
    } catch {
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  /// Removes the value of a key if it is damaged. A value written in the meantime stays.
  ///
  /// - Returns: whether the value was damaged and is now removed.
  package func removeDamagedValue(
    forKey key: RawSpan, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    try engine.removeDamagedValue(forKey: key, &pending)
  }

  // A cache writes in two steps. The first enters the write and reports the removed entries, even
  // if it throws, without calling the observer. `PendingWrite.replaced` has the value that a write
  // of one key replaced. The second step finishes the write.

  /// Enters the value of a key.
  ///
  /// - Parameter removals: receives the removals of the write.
  package func enter(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: durability, expecting: .anything,
      removals: &removals)
  }

  /// Enters the value of a key if that requires no waiting. Otherwise sets `pending.isLeft`.
  ///
  /// - Parameter version: the version that the key must have. `nil` accepts any version or none. An
  ///   inner `nil` requires an absent key.
  package func enterAtOnce(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64??, options: EntryOptions,
    durability: Durability?, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enterAtOnce(
      value, forKey: key, options: options, durability: durability,
      expecting: version.map { $0.map { .version($0) } ?? .absent } ?? .anything,
      removals: &removals)
  }

  /// Enters the value of a key if its version is the expected one.
  package func enter(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64?,
    options: EntryOptions, durability: Durability?, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: durability,
      expecting: version.map { .version($0) } ?? .absent, removals: &removals)
  }

  /// Enters a batch.
  ///
  /// - Returns: the version of the first operation. The others follow in order.
  package func enter(
    _ batch: consuming Batch, durability: Durability?, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (first: UInt64, pending: PendingWrite) {
    try engine.enter(batch.records, durability: durability, removals: &removals)
  }

  /// Removes the value of a key, if it has the version or if that is `nil`.
  package func enterRemoval(
    ofKey key: RawSpan, expecting version: UInt64? = nil, durability: Durability?,
    _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    try engine.enterRemoval(
      ofKey: key, expecting: version.map { .version($0) } ?? .anything, durability: durability,
      &pending)
  }

  /// Removes the values of many keys, and returns how many there were.
  package func enterRemovals(
    ofKeys keys: some Sequence<some ByteSource>, durability: Durability?,
    _ pending: inout PendingWrite
  ) throws(StoreError) -> Int {
    try count(keys) { (key, isOneOfMany) throws(StoreError) in
      try engine.enterRemoval(
        ofKey: key, expecting: .anything, durability: durability, isOneOfMany: isOneOfMany,
        &pending)
    }
  }

  /// For how many of the keys a write returns `true`.
  private func count(
    _ keys: some Sequence<some ByteSource>,
    _ write: (_ key: RawSpan, _ isOneOfMany: Bool) throws(StoreError) -> Bool
  ) throws(StoreError) -> Int {
    try engine.session.checkWritable()
    let isOneOfMany = keys.underestimatedCount > 1
    var count = 0
    for key in keys {
      try key.withBytes { (key) throws(StoreError) in
        if try write(key, isOneOfMany) { count += 1 }
      }
    }
    return count
  }

  /// Removes many entries at once.
  package var trimmer: Trimmer { engine.trimmer }

  /// Gives a write its promised durability. If the call throws, the write may still be on disk.
  package func finish(_ pending: PendingWrite) throws(StoreError) { try engine.finish(pending) }

  /// Waits for compaction, if the write must, on the thread that entered the write.
  package func slowed(_ pending: PendingWrite) -> PendingWrite { engine.slowed(pending) }

  /// Throws in a forked child of the process that opened the store, where the store's threads do
  /// not exist.
  package func checkProcess() throws(StoreError) { try engine.session.checkProcess() }

  @usableFromInline
  package func makeBatch() throws(StoreError) -> Batch {
    Batch(on: self, try engine.makeRecords())
  }

  /// The store's usage.
  ///
  /// - Complexity: O(segments), without a system call.
  package func usage() throws(StoreError) -> StoreUsage { try currentEngine.usage() }

  /// The clock that decides expiry. A memory tier must use the same clock.
  package var clock: StoreClock { engine.session.clock }
}
