// What the caches need beside what everybody uses.
extension Store {
  /// The record of a key where it lies; as `Engine.pinnedEntry`.
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

  /// Whether the value of a key has expired and was not removed yet; `nil` where there is none. Is no access.
  package func hasExpired(_ key: RawSpan) throws(StoreError) -> Bool? {
    guard let follower else { return try reader.hasExpired(key) }
    return try follower.read { (reader) throws(StoreError) in try reader.hasExpired(key) }
  }

  package func info(of entry: borrowing PinnedEntry) -> EntryInfo {
    // Times of access are those of the reader's index.
    (follower?.lastReader ?? reader).info(of: entry)
  }

  /// Whether it follows another process. Every write throws `readOnly` then.
  package var isFollowing: Bool { follower != nil }

  /// What the store knows about a key, and the history that the version belongs to. Within one history, a version always
  /// has the same value. The history is 0 in a store that follows no other.
  package func look(
    at key: RawSpan
  ) throws(StoreError) -> (info: EntryInfo?, history: UInt64) {
    guard let follower else { return (try reader.info(forKey: key), 0) }
    return try follower.look(at: key)
  }

  /// Counts a key as just read, without reading its value. Never writes to disk.
  ///
  /// - Parameter unlessIdleLimited: leaves an entry as it is that has an idle limit.
  /// - Returns: whether it has a value. One whose record is damaged counts as having none.
  /// - Complexity: O(key), with a look at the head of the record.
  package func touch(
    _ key: RawSpan, unlessIdleLimited sparesIdle: Bool = false
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      if follower != nil { return try contains(key) }
      return try reader.touch(key, sparesIdle ? .unlessIdle : .yes)
    } catch {
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  /// Removes the value of a key if it is damaged: that one alone, and none that was written meanwhile.
  ///
  /// - Returns: whether it was, and is removed.
  package func removeDamagedValue(forKey key: RawSpan) throws(StoreError) -> Bool {
    try engine.removeDamagedValue(forKey: key)
  }

  // The writes of a cache come in two steps: they are entered, and give back what they removed, also where they throw,
  // of which the observer is not told; then they are finished.

  /// Enters the value of a key.
  ///
  /// - Parameter removals: what the write removed is added.
  package func enter(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: durability, expecting: .anything,
      removals: &removals)
  }

  /// Enters the value of a key, if nothing has to be waited for; else `pending.isLeft`.
  ///
  /// - Parameter version: the version that the key must have; `nil`: any or none; `nil` in it: it must be absent.
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
  /// - Returns: the version of the first operation; those of the others follow in order.
  package func enter(
    _ batch: consuming Batch, durability: Durability?, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (first: UInt64, pending: PendingWrite) {
    try engine.enter(batch.records, durability: durability, removals: &removals)
  }

  /// Gives a write the durability that it was promised. What throws here is on disk as far as anybody can tell.
  package func finish(_ pending: PendingWrite) throws(StoreError) { try engine.finish(pending) }

  /// Lets a write wait for compaction that was entered on one of the store's own threads.
  package func slowed(_ pending: PendingWrite) -> PendingWrite { engine.slowed(pending) }

  /// Throws in a child of the process that opened the store, where none of its threads are.
  package func checkProcess() throws(StoreError) { try engine.session.checkProcess() }

  @usableFromInline
  package func makeBatch() throws(StoreError) -> Batch { Batch(try engine.makeRecords()) }

  /// Whether a write of so many entries and bytes may make others go, to keep the limits.
  package func isNearLimit(adding count: Int, byteCount: Int) -> Bool {
    engine.evictor.isNearLimit(adding: count, byteCount: byteCount)
  }

  /// What the store holds.
  ///
  /// - Complexity: O(segments), without a system call.
  package func usage() throws(StoreError) -> StoreUsage { try currentEngine.usage() }

  /// The limits that hold now.
  package var limits: (countLimit: Int?, byteLimit: Int?) {
    let held = engine.session.limits
    return (
      held.givenCountLimit == .max ? nil : held.givenCountLimit,
      held.byteLimit == .max ? nil : held.byteLimit
    )
  }

  /// The clock that expiry goes by, for a tier in front that is to agree.
  package var clock: StoreClock { engine.session.clock }
}
