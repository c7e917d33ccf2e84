public import CairnStore

/// A cache that keeps its entries on disk: ``DiskCache``, or ``TieredCache`` with one in memory before it.
///
/// Its calls wait for the disk. The forms whose names begin with `perform` run on threads of the cache's own, as
/// many at once as the configuration's `concurrentCallLimit` says, so that none of those that tasks run on is blocked. A task
/// that is cancelled before the work began gets `cancelled` at once, and nothing was done. Once begun, the work
/// goes on to its end, and the call returns what came of it: it could not be undone.
///
/// What ends a program is not given up: ``performSync()`` and ``performClose()`` do their work in a cancelled task too, and
/// the latter waits for no other call.
public protocol DiskCaching<Key, Value>: Loading, Trimming where Failure == CacheError {
  /// Does any work with the cache off the threads that tasks run on, where it throws nothing but errors of the
  /// cache, and says so: `{ (cache) throws(CacheError) in … }`.
  @discardableResult
  func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Self) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result

  /// The value of a key with all that the cache knows of it. Counts as an access; the times in `info` are those
  /// before it.
  func entry(forKey key: Key) throws(CacheError) -> CacheEntry<Key, Value>?

  /// What the cache knows of a key. No value is read, and this is no access.
  func info(forKey key: Key) throws(CacheError) -> CacheEntryInfo?

  /// Removes entries until the live bytes on disk are at most so many.
  ///
  /// - Parameters:
  ///   - byteCount: zero or less removes everything.
  ///   - order: which go first.
  @discardableResult
  func trim(toBytes byteCount: Int, order: TrimOrder) throws(CacheError) -> CacheRemovalSummary

  /// Gives space back, and removes the least recently used entries, until so many bytes are free on the
  /// filesystem, or nothing is left to be removed.
  @discardableResult
  func trim(toFreeDiskSpace byteCount: Int) throws(CacheError) -> CacheRemovalSummary

  /// Removes everything, and tells how far it has come. The entries are gone before the first file is.
  func removeAll(progress: (RemoveAllProgress) -> Void) throws(CacheError)

  /// Makes every write durable that was acknowledged before the call.
  func sync() throws(CacheError)

  /// Gives back all space of what was overwritten or removed.
  @discardableResult
  func compact() throws(CacheError) -> CompactionReport

  /// Copies all that it holds into a new store, while writes go on.
  @discardableResult
  func backup(
    to destination: String, progress: (BackupProgress) -> Void
  ) throws(CacheError) -> BackupReport

  /// Waits for what is under way, and gives the files up.
  func close() throws(CacheError)
}

extension DiskCaching {
  /// The values of many keys with all that the cache knows of them, in the order of the keys; `nil` for each
  /// that has none. Each is a read of its own, as `entry(forKey:)`.
  ///
  /// - Throws: as `entry(forKey:)`, at the first key whose read fails.
  public func entries(
    forKeys keys: some Collection<Key>
  ) throws(CacheError) -> [CacheEntry<Key, Value>?] {
    var entries: [CacheEntry<Key, Value>?] = []
    entries.reserveCapacity(keys.count)
    for key in keys { entries.append(try entry(forKey: key)) }
    return entries
  }

  /// What the cache knows of many keys, in the order of the keys; `nil` for each that has no value. No value
  /// is read, and this is no access.
  ///
  /// - Throws: as `info(forKey:)`, at the first key whose look fails.
  public func infos(forKeys keys: some Collection<Key>) throws(CacheError) -> [CacheEntryInfo?] {
    var infos: [CacheEntryInfo?] = []
    infos.reserveCapacity(keys.count)
    for key in keys { infos.append(try info(forKey: key)) }
    return infos
  }

  /// Removes entries until the live bytes on disk are at most so many, the least recently used first.
  @inlinable
  @discardableResult
  public func trim(toBytes byteCount: Int) throws(CacheError) -> CacheRemovalSummary {
    try trim(toBytes: byteCount, order: .leastRecentlyUsed)
  }

  /// Copies all that it holds into a new store, while writes go on; as `backup(to:progress:)`.
  @inlinable
  @discardableResult
  public func backup(to destination: String) throws(CacheError) -> BackupReport {
    try backup(to: destination) { _ in }
  }

  /// Does any work with the cache off the threads that tasks run on.
  ///
  ///     let pages = try await cache.perform { try $0.values(forKeys: urls) }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `CacheError.cancelled` where the task was cancelled before the work began:
  ///   nothing was done then. Once begun, the work goes on to its end.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Self) throws -> Result
  ) async throws -> Result {
    try await perform { (cache) throws(CacheError) in Swift.Result { try body(cache) } }.get()
  }

  /// As `trim(toCount:order:)`.
  @discardableResult
  public func performTrim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> CacheRemovalSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(toCount: count, order: order) }
  }

  /// As `trim(toBytes:order:)`.
  @discardableResult
  public func performTrim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> CacheRemovalSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toBytes: byteCount, order: order)
    }
  }

  /// As `trim(toFreeDiskSpace:)`.
  @discardableResult
  public func performTrim(
    toFreeDiskSpace byteCount: Int
  ) async throws(CacheError) -> CacheRemovalSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toFreeDiskSpace: byteCount)
    }
  }

  /// As `trim(olderThan:by:)`.
  @discardableResult
  public func performTrim(
    olderThan age: Duration, by basis: AgeBasis = .access
  ) async throws(CacheError) -> CacheRemovalSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(olderThan: age, by: basis) }
  }

  /// As `removeExpired()`.
  @discardableResult
  public func performRemoveExpired() async throws(CacheError) -> CacheRemovalSummary {
    try await perform { (cache) throws(CacheError) in try cache.removeExpired() }
  }

  /// As `removeAll(progress:)`.
  ///
  /// - Parameter progress: called after each file that went, on the thread that does the work.
  public func performRemoveAll(
    progress: @escaping @Sendable (RemoveAllProgress) -> Void = { _ in }
  ) async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.removeAll(progress: progress) }
  }

  /// As `sync()`. It waits in line as all work does, and is done also where the task is cancelled: who asks for it
  /// on the way out means to keep what was written.
  ///
  /// - Throws: as `sync()`; never `cancelled`.
  public func performSync() async throws(CacheError) {
    // Work of a task that is cancelled, as this one may be, is not begun; one of its own is not cancelled with it.
    let result = await Task {
      do throws(CacheError) {
        try await perform { (cache) throws(CacheError) in try cache.sync() }
        return Result<Void, CacheError>.success(())
      } catch { return .failure(error) }
    }.value
    try result.get()
  }

  /// As `compact()`.
  @discardableResult
  public func performCompact() async throws(CacheError) -> CompactionReport {
    try await perform { (cache) throws(CacheError) in try cache.compact() }
  }

  /// As `backup(to:progress:)`.
  @discardableResult
  public func performBackup(
    to destination: String, progress: @escaping @Sendable (BackupProgress) -> Void = { _ in }
  ) async throws(CacheError) -> BackupReport {
    try await perform { (cache) throws(CacheError) in
      try cache.backup(to: destination, progress: progress)
    }
  }

  /// As `close()`, which waits for the disk: on a thread of its own, so it waits in no line behind a compaction or a
  /// backup, and also where the task is cancelled. A close is never given up.
  ///
  /// - Throws: as `close()`; never `cancelled`.
  public func performClose() async throws(CacheError) {
    try await WorkQueue.performAlone { () throws(CacheError) in try self.close() }
  }
}
