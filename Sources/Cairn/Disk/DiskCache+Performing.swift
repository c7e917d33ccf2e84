public import CairnStore

/// What takes long, off the threads that tasks run on.
///
/// Where the task is cancelled before the work began, `cancelled` is thrown: nothing was done then. Once begun, the work
/// goes on to its end. As many run at once as `concurrentCallLimit` in the configuration says; the others wait in line.
extension DiskCache {
  /// Does work that throws errors of the cache only on one of the cache's own threads: reads of what is not in the page
  /// cache, say, which block a thread until the disk has read it.
  ///
  ///     let pages = try await cache.perform { (cache) throws(CacheError) in
  ///       try cache.values(forKeys: urls)
  ///     }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `cancelled`.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(CacheError) in try body(self) }
  }

  /// Does any work with the cache on one of the cache's own threads.
  ///
  ///     let pages = try await cache.perform { try $0.values(forKeys: urls) }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `CacheError.cancelled`.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws -> Result
  ) async throws -> Result {
    try await perform { (cache) throws(CacheError) in Swift.Result { try body(cache) } }.get()
  }

  /// Calls the synchronous forms in async code.
  ///
  ///     try cache.synchronous { try $0.setValue(page, forKey: url) }
  ///
  /// They block the thread for as long as the memory or the disk takes; a durable write blocks it for a sync.
  @inlinable
  @discardableResult
  public func synchronous<Result: ~Copyable, Failure: Error>(
    _ body: (DiskCache) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(self)
  }

  /// Removes entries until at most `count` are left.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> RemovalSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(toCount: count, order: order) }
  }

  /// Has other limits hold from now on, and removes what is too much then.
  public nonisolated(nonsending) func setLimits(
    countLimit: Int?, byteLimit: Int?
  ) async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in
      try cache.setLimits(countLimit: countLimit, byteLimit: byteLimit)
    }
  }

  /// Removes entries until at most so many bytes are live.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toCost cost: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> RemovalSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toCost: cost, order: order)
    }
  }

  /// Removes entries until so much of the disk is free.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toFreeDiskSpace byteCount: Int
  ) async throws(CacheError) -> RemovalSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toFreeDiskSpace: byteCount)
    }
  }

  /// Removes the entries of an age.
  @discardableResult
  public nonisolated(nonsending) func trim(
    olderThan age: Duration, by basis: AgeBasis = .access
  ) async throws(CacheError) -> RemovalSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(olderThan: age, by: basis) }
  }

  /// Removes what has expired.
  @discardableResult
  public nonisolated(nonsending) func removeExpired() async throws(CacheError)
    -> RemovalSummary
  {
    try await perform { (cache) throws(CacheError) in try cache.removeExpired() }
  }

  /// Removes every entry for which `shouldRemove` returns true. It runs on one of the cache's own threads.
  @discardableResult
  public nonisolated(nonsending) func remove(
    where shouldRemove: @escaping @Sendable (_ key: Key, _ info: CacheEntryInfo) throws -> Bool
  ) async throws -> RemovalSummary {
    try await perform { try $0.remove(where: shouldRemove) }
  }

  /// Gives the space of dead records back.
  @discardableResult
  public nonisolated(nonsending) func compact() async throws(CacheError) -> CompactionReport {
    try await perform { (cache) throws(CacheError) in try cache.compact() }
  }

  /// Does now what the cache does by itself in the background.
  public nonisolated(nonsending) func maintain() async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.maintain() }
  }

  /// Copies the cache as it is at this moment.
  ///
  /// - Parameters:
  ///   - destination: as with the synchronous form.
  ///   - progress: called now and then, on the thread that does the work.
  @discardableResult
  public nonisolated(nonsending) func backup(
    to destination: String, progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(CacheError) -> BackupReport {
    try await perform { (cache) throws(CacheError) in
      try cache.backup(to: destination, progress: progress)
    }
  }

  /// Reads everything that is sealed, to find damage, on a thread of its own.
  ///
  /// - Returns: what was found; `isComplete` is `false` where the task was cancelled meanwhile.
  /// - Throws: as the synchronous form; never `cancelled`.
  @discardableResult
  public nonisolated(nonsending) func scrub(
    bytesPerSecond: Int? = nil,
    progress: @escaping @Sendable (WorkProgress) -> Visit = { _ in .next }
  ) async throws(CacheError) -> ScrubReport {
    do throws(StoreError) {
      return try await store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    } catch {
      guard case .vanished = error else { throw .store(error) }
    }
    return try await afterRecreating { (cache) throws(CacheError) in
      try cache.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    }
  }

  /// Makes every write durable, marks the store clean and gives its lock up. It waits in no line behind a compaction or
  /// a backup. A close is never given up.
  ///
  /// - Throws: as the synchronous form; never `cancelled`.
  public nonisolated(nonsending) func close() async throws(CacheError) {
    try await WorkQueue.performAlone { () throws(CacheError) in try self.close() }
  }
}
