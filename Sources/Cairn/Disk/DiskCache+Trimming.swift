public import CairnStore

/// Removing many entries at once, from both tiers; as the same methods of ``Store`` have it. They go by the order of use
/// of both tiers together, and sizes are those on disk. To make memory alone smaller, trim `memory`. A trim to a count, a cost
/// or an age of zero leaves nothing.
///
/// Compaction gives the space back in the background. To have it at once, on a full disk say, call
/// `trim(toFreeDiskSpace:)`, or `compact()` after the trim.
extension DiskCache {
  /// Has other limits hold from now on, and removes the least recently used entries that are too much then. Those of
  /// memory are changed at `memory`.
  ///
  /// The next open goes by its configuration again.
  ///
  /// - Parameters:
  ///   - countLimit: how many entries there may be; `nil`: any number.
  ///   - byteLimit: how many bytes they may take, keys and metadata included; `nil`: any number.
  /// - Throws: `store` with `invalidConfiguration` for a limit of 0 or less: nothing has changed then. Else as
  ///   `trim(toCount:)`.
  public func setLimits(countLimit: Int?, byteLimit: Int?) throws(CacheError) {
    recency?.tell()
    try storing { () throws(StoreError) in
      try store.setLimits(countLimit: countLimit, byteLimit: byteLimit)
    }
  }
}

extension DiskCache: Trimming {
  /// Removes entries until at most so many are left. What has expired goes first.
  ///
  /// - Parameters:
  ///   - count: zero or less removes everything; `removeAll` is faster and gives the space back.
  ///   - order: which go first.
  /// - Returns: what was removed; its cost are bytes.
  /// - Throws: as the store's: what was removed by then stays so.
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) throws(CacheError) -> RemovalSummary {
    let summary = try trimming { () throws(StoreError) in
      try store.trim(toCount: count > 0 ? count + marks.recordCount() : 0, order: order)
    }
    // Somebody else may have removed some of it, and memory not know of that yet. Also where nothing is held: what was
    // read on disk before must not be put in.
    if count <= 0 { held?.removeAll(cause: .removed, isToldOfNothing: false) }
    return summary
  }

  /// Removes entries until the live bytes on disk are at most so many. What has expired goes first.
  ///
  /// - Parameters:
  ///   - cost: in bytes; zero or less removes everything.
  ///   - order: which go first.
  /// - Throws: as the store's: what was removed by then stays so.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) throws(CacheError) -> RemovalSummary {
    if cost <= 0 { return try trim(toCount: 0, order: order) }
    return try trimming { () throws(StoreError) in try store.trim(toBytes: cost, order: order) }
  }

  /// Gives space back, and removes the least recently used entries, until so many bytes are free on the
  /// filesystem, or nothing is left to be removed.
  ///
  /// - Parameter byteCount: what is to be free, not what may stay: zero or less removes nothing.
  /// - Throws: as the store's: what was removed by then stays so.
  @discardableResult
  public func trim(toFreeDiskSpace byteCount: Int) throws(CacheError) -> RemovalSummary {
    try trimming { () throws(StoreError) in try store.trim(toFreeDiskSpace: byteCount) }
  }

  /// Removes the entries that were last accessed, or written, longer ago than `age`.
  ///
  /// - Parameters:
  ///   - age: zero or less removes everything.
  ///   - basis: `.access` goes by the last read or write, within 1 % of how long ago that is; `.write` by
  ///     the write, which is known to the second.
  /// - Throws: as the store's: what was removed by then stays so.
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) throws(CacheError)
    -> RemovalSummary
  {
    if age <= .zero { return try trim(toCount: 0) }
    return try trimming { () throws(StoreError) in try store.trim(olderThan: age, by: basis) }
  }

  /// Removes the entries whose lifetime has ended or that were idle for too long. No read finds them anyway;
  /// they count for the limits. The cache does so by itself, as the store's `maintenanceInterval` says.
  ///
  /// - Throws: as the store's: what was removed by then stays so.
  @discardableResult
  public func removeExpired() throws(CacheError) -> RemovalSummary {
    held?.removeExpired()
    return try storing { () throws(StoreError) in try store.removeExpired() }
  }

  /// Removes every entry for which `shouldRemove` returns true: by key, size, cost, age.
  ///
  ///     try cache.remove { key, info in info.valueByteCount ?? 0 > 1 << 20 }
  ///
  /// The closure is called once with each entry that has not expired, in no particular order, with no lock held. Nothing is
  /// removed before it was asked about all of them. An entry that was written anew since stays. One whose
  /// key cannot be decoded is not asked about and stays; the log reports it.
  ///
  /// - Throws: what `shouldRemove` throws, unchanged: nothing was removed then. Else a ``CacheError``.
  /// - Complexity: O(keys), with a look at the head of each record.
  @discardableResult
  public func remove(
    where shouldRemove: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    recency?.tell()
    var failure: (any Error)?
    // As they are before the look: a mark goes only after what it hides.
    let table = try removedTags()
    do {
      let summary = try store.remove { key, metadata, info in
        if ReservedKey.contains(key) || table.hides(metadata, info.version) { return false }
        guard let key = decodableKey(key) else { return false }
        try noteShown(info.version, of: key)
        do { return try shouldRemove(key, CacheEntryInfo(info)) } catch {
          failure = error
          throw error
        }
      }
      // Nobody was asked about what had expired. It must not be given after this.
      if flights.retained > 0 { try removeExpired() }
      flights.history.forgetAll()
      return summary
    } catch {
      throw failure ?? cacheError(error)
    }
  }

  /// Removes everything, and gives the space back. It is as durable as the cache's class. Observers get one event
  /// for all of it.
  ///
  /// - Complexity: O(segments), whatever the number of keys.
  public func removeAll() throws(CacheError) { try removeAll { _ in } }

  /// Removes everything; as `removeAll()`.
  ///
  /// - Parameter progress: told after each file that went, on this thread, with no lock held. The entries are
  ///   gone by then.
  public func removeAll(progress: (RemoveAllProgress) -> Void) throws(CacheError) {
    flights.noteRemovalOfAll()
    try storing { () throws(StoreError) in try store.removeAll(progress: progress) }
  }

  private func trimming(
    _ body: () throws(StoreError) -> RemovalSummary
  ) throws(CacheError) -> RemovalSummary {
    // What goes, goes by the order of use of both tiers.
    recency?.tell()
    return try storing(body)
  }
}

/// What the store throws through a closure that can throw anything.
func cacheError(_ error: any Error) -> any Error {
  (error as? StoreError).map { CacheError.store($0) } ?? error
}
