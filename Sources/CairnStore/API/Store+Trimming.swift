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
  ///   see `trim`. The new limits then apply anyway, and the next write tries again to
  ///   enforce them.
  /// - Complexity: that of `trim`; O(1) if the store is within the limits.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try engine.session.checkWritable()
    var configuration = engine.session.configuration
    (configuration.countLimit, configuration.byteLimit) = (countLimit, byteLimit)
    try configuration.check()
    // A limit on disk space implies one on live bytes.
    try engine.evictor.setLimits(
      countLimit: countLimit, byteLimit: configuration.resolved.byteLimit)
  }

  /// Removes entries by count, size, age or expiry.
  ///
  ///     try store.trim(.toCount(10_000))
  ///     try store.trim(.unused(for: .seconds(86_400)))
  ///
  /// - Parameters:
  ///   - trim: which entries to remove.
  ///   - durability: the class of the removals, or `nil` for the configured one.
  /// - Returns: a summary of the removed entries.
  /// - Throws: `noSpace` (never with `.toFreeDiskSpace`), `durabilityUnknown`, `poisoned`,
  ///   `readOnly`, `closed`, `usedAfterFork`, `system`.
  /// - Complexity: O(keys) to scan the index, plus O(removed × log removed). With `.largestFirst`,
  ///   `.older`, or entries that can expire, also reads heads of records. With `.expired`, O(1) if no
  ///   entry can expire, otherwise O(removed entries), plus the cost of `count()`. With
  ///   `.toFreeDiskSpace`, that of the compactions and trims that the call needs.
  @discardableResult
  public func trim(
    _ trim: Trim, durability: Durability? = nil
  ) throws(StoreError) -> RemovalSummary {
    try engine.finishing { (pending) throws(StoreError) in
      try trimmer.run(trim, durability: durability, &pending)
    }
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
  /// - Throws: `invalidKey` at the first invalid key. Otherwise see `trim`. Earlier removals stay.
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
  /// - Throws: any error of `isRemoved`, unchanged; nothing is then removed. Otherwise see `trim`.
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
}
