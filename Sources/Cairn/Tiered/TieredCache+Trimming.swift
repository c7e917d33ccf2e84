public import CairnStore

/// Removing many entries at once, from both tiers: what goes from the disk goes from memory. They go by the
/// order of use of both tiers together, and sizes are those on disk. To make memory alone smaller, trim
/// `memory`.
extension TieredCache: Trimming {
  /// Removes entries until at most so many are left; as `DiskCache.trim(toCount:order:)`.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func trim(toCount count: Int, order: TrimOrder) throws(CacheError) -> CacheRemovalSummary {
    recency.tell()
    return try disk.trim(toCount: count, order: order)
  }

  /// Removes entries until the live bytes on disk are at most so many.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func trim(toCost cost: Int, order: TrimOrder) throws(CacheError) -> CacheRemovalSummary {
    recency.tell()
    return try disk.trim(toCost: cost, order: order)
  }

  /// Removes entries until the live bytes on disk are at most so many; `trim(toCost:)` by another name.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func trim(
    toBytes byteCount: Int, order: TrimOrder
  ) throws(CacheError) -> CacheRemovalSummary {
    recency.tell()
    return try disk.trim(toBytes: byteCount, order: order)
  }

  /// Gives space back, and removes the least recently used entries, until so many bytes are free on the
  /// filesystem, or nothing is left to be removed.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func trim(toFreeDiskSpace byteCount: Int) throws(CacheError) -> CacheRemovalSummary {
    recency.tell()
    return try disk.trim(toFreeDiskSpace: byteCount)
  }

  /// Removes the entries that were last accessed, or written, longer ago than `age`. Of one that was read from
  /// memory, the time of that is known within `recencyInterval`.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func trim(olderThan age: Duration, by basis: AgeBasis) throws(CacheError)
    -> CacheRemovalSummary
  {
    recency.tell()
    return try disk.trim(olderThan: age, by: basis)
  }

  /// Removes the entries whose lifetime has ended or that were idle for too long; as
  /// `DiskCache.removeExpired`.
  ///
  /// - Throws: as the disk's: what was removed by then stays so.
  @discardableResult
  public func removeExpired() throws(CacheError) -> CacheRemovalSummary {
    held.removeExpired()
    return try disk.removeExpired()
  }

  /// Removes the entries that `isRemoved` says so of; as `DiskCache.remove(where:)`.
  @discardableResult
  public func remove(
    where isRemoved: (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) throws -> CacheRemovalSummary {
    recency.tell()
    return try disk.remove { key, info in
      try noteShown(info, of: key)
      return try isRemoved(key, info)
    }
  }

  /// Removes everything, and gives the space back. It is as durable as the class of the cache on disk. Observers get
  /// one event of each tier.
  public func removeAll() throws(CacheError) { try disk.removeAll() }

  /// Removes everything; as `DiskCache.removeAll(progress:)`.
  public func removeAll(progress: (RemoveAllProgress) -> Void) throws(CacheError) {
    try disk.removeAll(progress: progress)
  }

  /// To be called when the program goes to the background: clears memory where its configuration's
  /// `clearsInBackground` says so. Observers are told in any case. The disk keeps everything.
  public func enterBackground() {
    recency.tell()
    held.enterBackground()
  }
}

extension TieredCache: PressureResponder {
  /// Makes memory smaller; the disk keeps everything.
  package func respond(to pressure: MemoryPressure) {
    // What is freed is freed first: telling looks at records on disk, and takes long where memory is short.
    recency.tell { held.respond(to: pressure) }
  }
}
