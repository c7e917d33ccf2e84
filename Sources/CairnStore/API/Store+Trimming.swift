/// Removing many entries at once.
///
/// All of these calls are safe from any thread. Reads and writes continue meanwhile, because no
/// lock is held for longer than a few dozen removals. Each removal is one write, a tombstone in the
/// log. A call first chooses entries, then removes them. An entry that is rewritten in between
/// stays. So does an entry that was chosen as least recently used and is then read. If no other
/// call uses the store at the same time, the result is exact.
///
/// The removals of one call share one sync. A crash during the call may lose the later removals. If
/// a call throws, the entries that it has removed stay removed, even if the process then dies. On a
/// full disk, removals use reserved space.
///
/// Compaction reclaims the space of removed entries, in the background or when you call
/// `compact()`. Until then their bytes count as dead, and the tombstones take some space too.
/// `removeAll` reclaims the space at once.
///
/// Checkpoints save access times. The store makes checkpoints as the log grows, and usually at a
/// close. After a crash, entries have the access times of the last checkpoint, and entries written
/// since then count as the most recently used. `damagedCount` in a summary counts entries that
/// could not be removed because a damaged record does not reveal its key.
extension Store {
  /// Sets new limits, and removes the least recently used entries until the limits hold.
  ///
  /// Each call sets both limits, and `nil` removes a limit. The next open uses its configuration
  /// again.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum number of live bytes, or `nil` for no limit. The limit that follows
  ///     from `diskByteLimit` applies in any case.
  /// - Throws: `invalidConfiguration` for a limit of 0 or less, which changes nothing. Otherwise
  ///   see `trim(toCount:)`. The new limits then apply anyway, and the next write tries again to
  ///   enforce them.
  /// - Complexity: the same as `trim(toCount:)`; O(1) if the store is within the limits.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try engine.session.checkWritable()
    var configuration = engine.session.configuration
    (configuration.countLimit, configuration.byteLimit) = (countLimit, byteLimit)
    try configuration.check()
    // A limit on disk space implies one on live bytes.
    try engine.evictor.setLimits(
      countLimit: countLimit, byteLimit: configuration.resolved.byteLimit)
  }

  /// The default lifetime, for entries written from now on without one of their own. `nil` means
  /// forever. Existing entries keep their lifetimes.
  ///
  /// The next open uses its configuration again.
  public var lifetime: Duration? {
    get { engine.session.limits.lifetime.value }
    set { engine.session.limits.lifetime.value = newValue }
  }

  /// The default idle limit, for entries written from now on without one of their own: how long
  /// they may go without a read or write. `nil` means no limit. Otherwise like `lifetime`.
  public var idleLimit: Duration? {
    get { engine.session.limits.idleLimit.value }
    set { engine.session.limits.idleLimit.value = newValue }
  }

  /// Removes entries until at most `count` are left.
  ///
  /// Expired entries go first.
  ///
  /// - Parameters:
  ///   - count: the number to keep. 0 or less removes every entry, but `removeAll` is faster and
  ///     reclaims the space at once.
  ///   - order: which entries go first.
  ///   - durability: the class of the removals, or `nil` for the configured one.
  /// - Returns: a summary of the removed entries.
  /// - Throws: `noSpace`, `durabilityUnknown`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`,
  ///   `system`.
  /// - Complexity: O(keys) to scan the index, plus O(removed × log removed). Also reads the record
  ///   heads of entries that can expire or, with `.largestFirst`, of all entries.
  @discardableResult
  public func trim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try run(.toCount(count, order), durability)
  }

  /// Removes entries until `statistics().liveByteCount` is at most `byteCount`. Live bytes are
  /// those of whole records: keys, values, metadata and at least 24 bytes each.
  ///
  /// Expired entries go first, then as many others as needed, in the requested order.
  ///
  /// - Parameters:
  ///   - byteCount: the number of bytes to keep. 0 or less removes every entry.
  ///   - order: which entries go first.
  ///   - durability: the class of the removals, or `nil` for the configured one.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: the same as `trim(toCount:order:durability:)`. If the least recently used
  ///   entries are far smaller than others, the call scans the index more than once.
  @discardableResult
  public func trim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try run(.toBytes(byteCount, order), durability)
  }

  /// Makes space on the filesystem until `byteCount` bytes are free, or nothing is left to remove.
  /// The call reclaims dead space first, then removes the least recently used entries.
  ///
  /// Free space depends on all files in the filesystem: if other programs fill the disk, the store
  /// gives up its own entries. Use this for data that you can recreate.
  ///
  /// - Parameters:
  ///   - byteCount: the number of bytes that must be free for an unprivileged process. Space that
  ///     is reclaimed, but still held by reads in progress, counts as free.
  ///   - durability: the class of the removals, or `nil` for the configured one.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)` and `compact()`, except `noSpace`.
  /// - Complexity: that of the compactions and trims that the call needs.
  @discardableResult
  public func trim(
    toFreeDiskSpace byteCount: Int, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try run(.toFreeDiskSpace(byteCount), durability)
  }

  /// Removes the entries that were last accessed, or with `.write` written, more than `age` ago.
  ///
  /// - Parameters:
  ///   - age: zero or less removes everything accessed or written before this moment.
  ///   - basis: `.access` counts from the last read or write, accurate to 1 % of the age and 100 ms,
  ///     and never too early; `.write` counts from the write, accurate to the second.
  ///   - durability: the class of the removals, or `nil` for the configured one.
  /// - Returns: a summary of the removed entries.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys) to scan the index. With `.write`, also reads the record heads in
  ///   segments of that age.
  @discardableResult
  public func trim(
    olderThan age: Duration, by basis: AgeBasis = .access, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try run(.olderThan(age, basis), durability)
  }

  /// Removes expired entries: those whose lifetime has ended or that have been idle for too long.
  /// No read finds them, but until they are removed they take memory and count as live bytes.
  ///
  /// - Returns: a summary of the entries that this call removed.
  /// - Throws: see `trim(toCount:order:durability:)`.
  /// - Complexity: O(1) if no entry can expire, otherwise O(removed entries), plus the cost of
  ///   `count()`.
  @discardableResult
  public func removeExpired(durability: Durability? = nil) throws(StoreError) -> RemovalSummary {
    try run(.expired, durability)
  }

  /// Removes the values of many keys, in the given order. Each removal is a separate write, and one
  /// sync covers all of them. A crash during the call may lose the later removals. To remove all
  /// keys or none, use `write`. Unlike a batch, this call takes no memory for the keys, however
  /// many they are, and works on a full disk.
  ///
  /// - Parameters:
  ///   - keys: the keys, which may be absent or expired.
  ///   - durability: the class of the removals, or `nil` for the configured one. For keys without a
  ///     value, their absence gets the same durability.
  /// - Returns: the number of removed values. Absent and expired keys do not count.
  /// - Throws: `invalidKey` at the first invalid key. Otherwise see
  ///   `trim(toCount:order:durability:)`. Earlier removals stay.
  /// - Complexity: O(number of keys given).
  @discardableResult
  public func removeValues(
    forKeys keys: some Sequence<some ByteSource>, durability: Durability? = nil
  ) throws(StoreError) -> Int {
    try engine.finishing { (pending) throws(StoreError) in
      try enterRemovals(ofKeys: keys, durability: durability, &pending)
    }
  }

  /// Removes every entry for which `isRemoved` returns `true`. The closure can decide by key, size,
  /// age or cost.
  ///
  ///     try store.remove { key, info in info.valueByteCount > 1 << 20 }
  ///
  /// The closure is called once for each unexpired entry, in no particular order, with no lock
  /// held. These calls do not count as accesses, and the closure may use the store. Removal begins
  /// after the closure has seen every entry. An entry that was rewritten after the closure saw it
  /// stays.
  ///
  /// - Returns: a summary of the removed entries.
  /// - Throws: any error of `isRemoved`, unchanged; nothing is then removed. Otherwise see
  ///   `trim(toCount:order:durability:)`.
  /// - Complexity: O(keys), with a read of each record's head. Takes 40 bytes of memory for each
  ///   entry to remove.
  @discardableResult
  public func remove(
    durability: Durability? = nil,
    where isRemoved: (_ key: RawSpan, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    var pending = PendingWrite()
    let summary = try engine.trimmer.remove(durability: durability, &pending) { key, _, info in
      try isRemoved(key, info)
    }
    try engine.finish(pending)
    return summary
  }

  private func run(_ trim: Trim, _ durability: Durability?) throws(StoreError) -> RemovalSummary {
    try engine.finishing { (pending) throws(StoreError) in
      try trimmer.run(trim, durability: durability, &pending)
    }
  }
}
