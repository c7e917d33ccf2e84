/// Removing many entries at once.
///
/// All of these calls are safe from any thread. Readers and writers continue, because no lock is
/// held for longer than a few dozen removals. Each removal is one write, a tombstone in the log,
/// and takes effect at one moment. An entry that is rewritten after it was chosen stays. So does an
/// entry that is read after it was chosen as least recently used. If no other call uses the store
/// meanwhile, the result is exact.
///
/// The removals of one call share one sync. `durability` applies to all of them together, and after
/// a crash the store may have only the first removals. If a call throws, the entries
/// it had removed stay removed, and their removal survives the death of the process. On a full
/// disk, removals use a reserve.
///
/// Compaction reclaims the space of removed entries, in the background or by `compact()`. Until
/// then their bytes count as dead, and the tombstones take extra space. `removeAll` reclaims the
/// space at once.
///
/// Closes and checkpoints save access times. After a crash, access times are those of the last
/// save, and entries written since then are the most recent. `damagedCount` in a summary counts
/// entries that could not be removed because a damaged record does not reveal its key.
extension Store {
  /// Sets new limits, and removes the least recently used entries above them.
  ///
  /// Sets both limits: `nil` removes one. The next open uses its configuration again.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum number of live bytes, or `nil` for no limit.
  /// - Throws: `invalidConfiguration` for a limit of 0 or less, which changes nothing. Otherwise
  ///   see `trim(toCount:)`. The limits are then set, and the next write tries again to keep them.
  /// - Complexity: the same as `trim(toCount:)`; O(1) if nothing exceeds the limits.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try engine.session.checkWritable()
    var configuration = engine.session.configuration
    (configuration.countLimit, configuration.byteLimit) = (countLimit, byteLimit)
    try configuration.check()
    try engine.evictor.setLimits(countLimit: countLimit, byteLimit: byteLimit)
  }

  /// The lifetime of entries written from now on without one, or `nil` for no end. Existing entries
  /// keep theirs.
  ///
  /// The next open uses its configuration again.
  public var lifetime: Duration? {
    get { engine.session.limits.lifetime.value }
    set { engine.session.limits.lifetime.value = newValue }
  }

  /// The idle limit of entries written from now on without one: how long they may go without a read
  /// or write, or `nil` for no limit. Otherwise like `lifetime`.
  public var idleLimit: Duration? {
    get { engine.session.limits.idleLimit.value }
    set { engine.session.limits.idleLimit.value = newValue }
  }

  /// Removes entries until at most this many keys are left.
  ///
  /// Expired entries go first.
  ///
  /// - Parameters:
  ///   - count: the number to keep. A negative number means 0, which removes every entry, but
  ///     `removeAll` is faster and reclaims the space.
  ///   - order: which entries go first.
  ///   - durability: of the removals, or `nil` for the configured class.
  /// - Returns: a summary of the removed entries.
  /// - Throws: `noSpace`, `durabilityUnknown`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`,
  ///   `system`.
  /// - Complexity: O(keys) to scan the index, and O(removed × log removed). With `largestFirst`,
  ///   and for entries that can expire, also a read of each record's head.
  @inlinable
  @discardableResult
  public func trim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(toCount: count, order: order, durability: durability)
  }

  /// Removes entries until the live bytes, as in `statistics().liveByteCount`, are at most this
  /// many. Live bytes count whole records: keys, values, metadata and at least 24 bytes each.
  ///
  /// Expired entries go first, then only as many others as needed, in the requested order.
  ///
  /// - Parameters:
  ///   - byteCount: the number of bytes to keep. A negative number means 0.
  ///   - order: which entries go first.
  ///   - durability: of the removals, or `nil` for the configured class.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: the same as `trim(toCount:order:durability:)`. Scans the index more than once if
  ///   the least recently used entries are far smaller than others.
  @inlinable
  @discardableResult
  public func trim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(toBytes: byteCount, order: order, durability: durability)
  }

  /// Reclaims space and removes the least recently used entries until this many bytes are free on
  /// the filesystem, or nothing is left to remove.
  ///
  /// Compaction reclaims dead space first. Other files on the same filesystem count too: the
  /// store makes room for them, as a cache should.
  ///
  /// - Parameters:
  ///   - byteCount: the number of bytes that must be free for an unprivileged process. Reclaimed
  ///     bytes that readers still hold count as free.
  ///   - durability: of the removals, or `nil` for the configured class.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)` and `compact()`, except `noSpace`.
  /// - Complexity: the same as compactions of the store and trims to a size.
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
  ///   - age: a negative age means zero, which removes everything accessed or written before this
  ///     moment.
  ///   - basis: `.access` uses the last read or write, accurate to 1 % of the age; `.write` uses
  ///     the write, accurate to the second.
  ///   - durability: of the removals, or `nil` for the configured class.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys) to scan the index. With `.write`, also a read of the record heads in
  ///   segments of that age.
  @inlinable
  @discardableResult
  public func trim(
    olderThan age: Duration, by basis: AgeBasis = .access, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.trim(olderThan: age, by: basis, durability: durability)
  }

  /// Removes the entries whose lifetime has ended or that were idle for too long. No read finds
  /// these entries, but they take memory and count as live bytes.
  ///
  /// - Returns: a summary of the entries that this call removed. Maintenance may have removed
  ///   others just before.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: O(1) if no entry can expire, otherwise O(removed entries) and the scan of
  ///   `count()`.
  @inlinable
  @discardableResult
  public func removeExpired(durability: Durability? = nil) throws(StoreError) -> RemovalSummary {
    try engine.trimmer.removeExpired(durability: durability)
  }

  /// Removes the values of many keys, in the given order. Each removal is a separate write. One
  /// sync covers all of them. After a crash, the store may have only the first of these removals.
  /// For all or nothing, use `write`. This call accepts any number of keys, needs no memory, and
  /// uses the reserve on a full disk.
  ///
  /// - Parameters:
  ///   - keys: may include absent and expired keys.
  ///   - durability: of the removals, and of the absence of keys without a value, or `nil` for the
  ///     configured class.
  /// - Returns: the number removed. Absent and expired keys do not count.
  /// - Throws: `invalidKey` at the first invalid key. Otherwise see
  ///   `trim(toCount:order:durability:)`. Earlier removals stay.
  /// - Complexity: O(number of keys given).
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

  /// Removes every entry for which `isRemoved` returns `true`: by size, age, cost or key.
  ///
  ///     try store.remove { key, info in info.valueByteCount > 1 << 20 }
  ///
  /// Calls the closure once with each unexpired entry, in no particular order, with no lock held.
  /// The closure may use the store; its calls do not count as accesses. Removal begins after the
  /// closure has seen every entry. An entry that was rewritten since then stays.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Throws: any error of `isRemoved`, unchanged, in which case nothing was removed. Otherwise
  ///   see `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys), with a read of each record's head. Uses 40 bytes of memory for each
  ///   entry to remove.
  @inlinable
  @discardableResult
  public func remove(
    durability: Durability? = nil,
    where isRemoved: (_ key: RawSpan, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    try engine.trimmer.remove(where: isRemoved, durability: durability)
  }
}
