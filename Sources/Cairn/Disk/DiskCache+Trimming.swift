public import CairnStore

/// Removing many entries at once, from both tiers. For details, see the same methods of ``Store``.
/// Trims use the sizes on disk, and the access order of both tiers together. To shrink only memory,
/// trim `memory`. A trim to a count, cost or age of zero removes every entry.
///
/// Compaction reclaims the space in the background. To reclaim it at once, for example on a full
/// disk, call `trim(toFreeDiskSpace:)`, or `compact()` after the trim.
extension DiskCache {
  /// Sets new limits, and removes the least recently used entries until the cache is within them.
  /// The memory tier has its own limits: set them on `memory`.
  ///
  /// Each call sets both limits, and `nil` removes a limit. The next open uses its configuration
  /// again.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - byteLimit: the maximum bytes of all entries, including keys and metadata, or `nil` for no
  ///     limit. The limit that follows from `diskByteLimit` applies in any case.
  /// - Throws: `invalidConfiguration` for a limit of 0 or less; nothing is then
  ///   changed. Otherwise see `trim(toCount:)`.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    try store.setLimits(countLimit: countLimit, byteLimit: byteLimit)
  }
}

extension DiskCache: Trimming {
  /// Removes entries until at most `count` are left. Expired entries go first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes every entry, but `removeAll` is faster and reclaims the space
  ///     at once.
  ///   - order: which entries go first.
  /// - Returns: a summary of the removed entries. Their cost is in bytes.
  /// - Throws: see the same method of the store. Earlier removals stay.
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) throws(StoreError) -> RemovalSummary {
    try run(.toCount(count, order))
  }

  /// Removes entries until the live bytes on disk are at most `cost`. Expired entries go first.
  ///
  /// - Parameters:
  ///   - cost: in bytes. Zero or less removes every entry.
  ///   - order: which entries go first.
  /// - Throws: see the same method of the store. Earlier removals stay.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) throws(StoreError) -> RemovalSummary {
    try run(.toBytes(cost, order))
  }

  /// Frees space on the filesystem until `byteCount` bytes are free, or nothing is left to remove.
  /// The call reclaims dead space first, then removes the least recently used entries.
  ///
  /// - Parameter byteCount: the number of bytes that must be free. Zero or less removes nothing.
  /// - Throws: see the same method of the store. Earlier removals stay.
  @discardableResult
  public func trim(toFreeDiskSpace byteCount: Int) throws(StoreError) -> RemovalSummary {
    try run(.toFreeDiskSpace(byteCount))
  }

  /// Removes entries whose last access (with `.write`, whose write) was more than `age` ago.
  ///
  /// - Parameters:
  ///   - age: zero or less removes every entry.
  ///   - basis: `.access` counts from the last read or write, accurate to 1 % of the age and 100 ms,
  ///     and never too early; `.write` counts from the write, accurate to the second.
  /// - Throws: see the same method of the store. Earlier removals stay.
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) throws(StoreError)
    -> RemovalSummary
  {
    try run(.olderThan(age, basis))
  }

  /// Removes expired entries: those whose lifetime has ended or that have been idle for too long.
  /// No read finds them, but until they are removed they count towards the limits. Maintenance also
  /// removes them.
  ///
  /// - Throws: see the same method of the store. Earlier removals stay.
  @discardableResult
  public func removeExpired() throws(StoreError) -> RemovalSummary {
    try run(.expired)
  }

  /// Removes every entry for which `shouldRemove` returns `true`. The closure can decide by key,
  /// size, cost or age.
  ///
  ///     try cache.remove { key, info in info.valueByteCount ?? 0 > 1 << 20 }
  ///
  /// The closure is called once for each unexpired entry on disk, in no particular order, with no
  /// lock held. Removal begins after the closure has seen every entry. An entry that has been
  /// rewritten since then stays. So does an entry whose key cannot be decoded, which the log
  /// reports.
  ///
  /// - Throws: any error of `shouldRemove`, unchanged; nothing is then removed. Otherwise a
  ///   ``/CairnStore/StoreError``.
  /// - Complexity: O(keys), with a read of each record's head.
  @discardableResult
  public func remove(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    try finishing(nil) { (entered) throws(StoreError) in
      Result { try enterRemoval(where: shouldRemove, &entered) }
    }.get()
  }

  func enterRemoval(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool,
    _ entered: inout PendingWrite
  ) throws -> RemovalSummary {
    dropAnyKept()
    var failure: (any Error)?
    // Read before the iteration, because a mark is removed only after the entries it hides.
    let table = try removedTags()
    var isFirst = true
    do {
      let summary = try store.trimmer.remove(durability: nil, &entered) {
        key, metadata, info in
        if ReservedKey.contains(key) || table.hides(metadata, info.version) { return false }
        guard let decoded = decodableKey(key, isFirst: isFirst) else {
          isFirst = false
          return false
        }
        do {
          guard try shouldRemove(decoded, CacheEntryInfo(info)) else { return false }
        } catch {
          failure = error
          throw error
        }
        try noteWrite(key)
        return true
      }
      // The closure was not called for expired entries. No later call may return them.
      if flights.retained > 0 { _ = try enter(.expired, &entered) }
      flights.history.forgetAll()
      return summary
    } catch {
      throw failure ?? error
    }
  }

  /// Removes every entry, and reclaims the space. The removal is on disk when the call returns.
  /// Observers receive a single event.
  ///
  /// - Complexity: O(segments), whatever the number of keys.
  public func removeAll() throws(StoreError) { try removeAll { _ in } }

  /// Removes every entry. See `removeAll()`.
  ///
  /// - Parameter progress: called after each file is removed, on this thread, with no lock held. By
  ///   then, reads find no entry.
  public func removeAll(progress: (WorkProgress) -> Void) throws(StoreError) {
    try removeAll(callStart(), progress: progress)
  }

  func removeAll(
    _ start: CallStart, progress: (WorkProgress) -> Void
  ) throws(StoreError) {
    defer { note(.removal, since: start) }
    flights.noteRemovalOfAll()
    do throws(StoreError) { try store.removeAll(progress: progress) } catch {
      noteFailedRemoval(error)
      throw error
    }
  }

  private func run(_ trim: Trim) throws(StoreError) -> RemovalSummary {
    try finishing(nil) { (entered) throws(StoreError) in try enter(trim, &entered) }
  }

  func enter(
    _ trim: Trim, _ entered: inout PendingWrite
  ) throws(StoreError) -> RemovalSummary {
    var trim = trim
    var removesAll = false
    switch trim {
    case .toCount(let count, let order):
      removesAll = count <= 0
      let recordCount = try marks.recordCount()
      trim = .toCount(min(count, .max - 1) + recordCount, order)
    case .toBytes(let cost, _): removesAll = cost <= 0
    case .olderThan(let age, _): removesAll = age <= .zero
    case .toFreeDiskSpace, .expired: break
    }
    if removesAll {
      trim = .toCount(0, .leastRecentlyUsed)
      dropAnyKept()
    }
    if case .expired = trim { held?.removeExpired() }
    return try store.trimmer.run(trim, durability: nil, &entered)
  }
}
