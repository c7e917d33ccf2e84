/// Removing many entries at once.
///
/// All of these may be called from any thread, beside readers and writers, and let them go on: no
/// lock is held for longer than some dozens of removals take. Each entry that goes is one write, a
/// tombstone in the log, and takes effect at one moment. An entry that was written anew since it was
/// chosen stays; so does one that was read since, where it was chosen for not having been read. When
/// nobody else uses the store meanwhile, what is left is exact.
///
/// They share one sync: `durability` counts for all the removals of a call together, and after a
/// crash the first of them may be found without the others. Where a call throws, what it had removed
/// by then stays removed, and survives the death of the process. On a full disk removals have a
/// reserve.
///
/// The space of what was removed is given back by compaction, in the background or by `compact()`; until
/// then its bytes count as dead, and the tombstones take some more. `removeAll` gives it back at once.
///
/// When entries were accessed is kept by a close, and by checkpoints: after a crash it is what it was at
/// the last of these, and what was written since is the most recent. A summary's `damagedCount` tells of entries that
/// could not be removed, since a damaged record does not tell its key.
extension Store {
  /// Has other limits hold from now on, and removes the least recently used entries that are too much then.
  ///
  /// The next open goes by its configuration again.
  ///
  /// - Parameters:
  ///   - countLimit: how many entries there may be; `nil`: any number.
  ///   - byteLimit: how many live bytes; `nil`: any number.
  /// - Throws: `invalidConfiguration` for a limit of 0 or less: nothing has changed then. Else as `trim(toCount:)`: the
  ///   limits are set, and the next write tries to keep them again.
  /// - Complexity: as `trim(toCount:)`; O(1) where nothing is too much.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try engine.session.checkWritable()
    var configuration = engine.session.configuration
    (configuration.countLimit, configuration.byteLimit) = (countLimit, byteLimit)
    try configuration.check()
    try engine.evictor.setLimits(countLimit: countLimit, byteLimit: byteLimit)
  }

  /// How long an entry lives that is written from now on without a lifetime; `nil`: for ever. Entries that are there
  /// keep theirs.
  ///
  /// The next open goes by its configuration again.
  public var lifetime: Duration? {
    get { engine.session.limits.lifetime.value }
    set { engine.session.limits.lifetime.value = newValue }
  }

  /// How long an entry may go unread and unwritten that is written from now on without an idle limit; `nil`: for
  /// ever. Otherwise as `lifetime`.
  public var idleLimit: Duration? {
    get { engine.session.limits.idleLimit.value }
    set { engine.session.limits.idleLimit.value = newValue }
  }

  /// Removes entries until at most so many keys are left.
  ///
  /// What has expired goes first.
  ///
  /// - Parameters:
  ///   - count: how many may stay. Below 0 is as 0, which removes everything; `removeAll` is faster
  ///     and gives the space back.
  ///   - order: which go first.
  ///   - durability: of the removals; `nil`: the configuration's.
  /// - Returns: what was removed.
  /// - Throws: `noSpace`, `durabilityUnknown`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`,
  ///   `system`.
  /// - Complexity: O(keys) for a look at the index, and O(removed × log removed); with
  ///   `largestFirst`, and for entries that can expire, also a look at the head of each record.
  @inlinable
  @discardableResult
  public func trim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(toCount: count, order: order, durability: durability)
  }

  /// Removes entries until the live bytes, as `statistics().liveByteCount` has them, are at most so
  /// many. They are the bytes that records take: keys, values, metadata and at least 24 for each.
  ///
  /// What has expired goes first; then no more goes than is needed in the order asked for.
  ///
  /// - Parameters:
  ///   - byteCount: how many may stay. Below 0 is as 0.
  ///   - order: which go first.
  ///   - durability: of the removals; `nil`: the configuration's.
  /// - Returns: what was removed.
  /// - Throws: as `trim(toCount:order:durability:)`.
  /// - Complexity: as `trim(toCount:order:durability:)`. Where the least recently used entries are
  ///   far smaller than others, the index is looked at more than once.
  @inlinable
  @discardableResult
  public func trim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(toBytes: byteCount, order: order, durability: durability)
  }

  /// Gives space back, and removes the least recently used entries, until so many bytes are free on
  /// the filesystem, or nothing is left to be removed.
  ///
  /// Dead space is given back first, by compaction. What others write to the same filesystem counts
  /// too: the store makes room for them, as a cache should.
  ///
  /// - Parameters:
  ///   - byteCount: how many are to be free for a process without privileges. Bytes that readers still
  ///     hold of what was given back count as free.
  ///   - durability: of the removals; `nil`: the configuration's.
  /// - Returns: what was removed.
  /// - Throws: as `trim(toCount:order:durability:)`, and as `compact()`, but for `noSpace`.
  /// - Complexity: that of compactions of the store, and of trims to a size.
  @inlinable
  @discardableResult
  public func trim(
    toFreeDiskSpace byteCount: Int, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(toFreeDiskSpace: byteCount, durability: durability)
  }

  /// Removes the entries that were last accessed, or written, longer ago than `age`.
  ///
  /// - Parameters:
  ///   - age: below zero is as zero, which removes everything from before this very moment.
  ///   - basis: `.access` goes by the last read or write, within 1 % of how long ago that is;
  ///     `.write` by the write, which is known to the second.
  ///   - durability: of the removals; `nil`: the configuration's.
  /// - Returns: what was removed.
  /// - Throws: as `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys) for a look at the index; by write also for a look at the heads of the
  ///   records in segments that are that old.
  @inlinable
  @discardableResult
  public func trim(
    olderThan age: Duration, by basis: AgeBasis = .access, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(olderThan: age, by: basis, durability: durability)
  }

  /// Removes the entries whose lifetime has ended or that were idle for too long. No read finds them
  /// anyway; they take memory and count as live bytes.
  ///
  /// - Returns: what this call removed; a round of maintenance may have removed others just before.
  /// - Throws: as `trim(toCount:order:durability:)`.
  /// - Complexity: O(1) where no entry can expire, else O(removed entries), beside what `count()` looks at.
  @inlinable
  @discardableResult
  public func removeExpired(durability: Durability? = nil) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.removeExpired(durability: durability)
  }

  /// Removes the values of many keys, each as a write of its own, in the order given, with one sync for all of
  /// them. A crash may leave the first of these removals without the others; `write` has one that is whole or not
  /// at all. This takes any number of keys, no memory, and the reserve on a full disk.
  ///
  /// - Parameters:
  ///   - keys: those of absent and expired values are no error.
  ///   - durability: of the removals, and of the absence of what was not there; `nil`: the configuration's.
  /// - Returns: how many there were. Keys that are absent or have expired do not count.
  /// - Throws: `invalidKey` at the first key that is none; else as `trim(toCount:order:durability:)`. What was
  ///   removed by then stays so.
  /// - Complexity: O(keys given).
  @inlinable
  @discardableResult
  public func removeValues(
    forKeys keys: some Sequence<some ByteSource>, durability: Durability? = nil
  ) throws(StoreError) -> Int {
    var removal = try engine.makeKeyRemoval()
    for key in keys {
      try key.withBytes { (key) throws(StoreError) in try engine.remove(key, in: &removal) }
    }
    return try engine.finish(removal, durability: durability)
  }

  /// Removes the entries that `isRemoved` says so of: by size, age, cost, key.
  ///
  ///     try store.remove { key, info in info.valueByteCount > 1 << 20 }
  ///
  /// The closure is called once with each entry that has not expired, in no particular order, with no lock
  /// held; it may use the store, and its calls are no accesses. Nothing is removed before it was
  /// asked about all of them. An entry that was written anew since it was asked about stays.
  ///
  /// - Returns: what was removed.
  /// - Throws: what `isRemoved` throws, unchanged: nothing was removed then. Else as
  ///   `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys), with a look at the head of each record. Takes memory for what is to be
  ///   removed, 40 bytes each.
  @inlinable
  @discardableResult
  public func remove(
    durability: Durability? = nil,
    where isRemoved: (_ key: RawSpan, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    try engine.trimmer.remove(where: isRemoved, durability: durability)
  }
}
