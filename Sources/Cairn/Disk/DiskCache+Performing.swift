public import CairnStore

/// Long operations for async code. They run on threads of their own, not on Swift's cooperative
/// threads.
///
/// If the task is cancelled before the work begins, the call throws `cancelled` and does nothing.
/// Once begun, the work finishes. At most `concurrentCallLimit` calls run at once. Other calls
/// queue.
extension DiskCache {
  /// Runs any work with the cache on one of the cache's own threads. Use it, for example, to read
  /// values that are not in the page cache, because such reads block their thread until the disk
  /// delivers the values.
  ///
  ///     let pages = try await cache.perform { try $0.values(forKeys: urls) }
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, or `StoreError.cancelled`.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws -> Result
  ) async throws -> Result {
    try await perform { (cache) throws(StoreError) in Swift.Result { try body(cache) } }.get()
  }

  @discardableResult
  package nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(StoreError) in try body(self) }
  }

  /// Calls the synchronous forms in async code.
  ///
  ///     try cache.synchronous { try $0.setValue(page, forKey: url) }
  ///
  /// These forms block the thread while they wait for memory or the disk. A durable write waits for
  /// a sync.
  @inlinable
  @discardableResult
  public func synchronous<Result: ~Copyable, Failure: Error>(
    _ body: (DiskCache) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(self)
  }

  /// Removes entries by count, size, age or expiry.
  @discardableResult
  public nonisolated(nonsending) func trim(
    _ trim: Trim
  ) async throws(StoreError) -> RemovalSummary {
    try await finishing(nil, isLong: true) { [self] (entered) throws(StoreError) in
      try enter(trim, &entered)
    }
  }

  /// Sets new limits, and removes the least recently used entries until the limits hold.
  public nonisolated(nonsending) func setLimits(
    countLimit: Int?, byteLimit: Int?
  ) async throws(StoreError) {
    try await perform { (cache) throws(StoreError) in
      try cache.setLimits(countLimit: countLimit, byteLimit: byteLimit)
    }
  }

  /// Removes every entry for which `shouldRemove` returns `true`. The closure runs on one of the
  /// cache's own threads.
  @discardableResult
  public nonisolated(nonsending) func remove(
    where shouldRemove: @escaping @Sendable (_ key: Key, _ info: EntryInfo) throws -> Bool
  ) async throws -> RemovalSummary {
    try await finishing(nil, isLong: true) { [self] (entered) throws(StoreError) in
      Swift.Result { try enterRemoval(where: shouldRemove, &entered) }
    }.get()
  }

  /// Reclaims the space of dead records.
  @discardableResult
  public nonisolated(nonsending) func compact() async throws(StoreError) -> CompactionReport {
    try await perform { (cache) throws(StoreError) in try cache.compact() }
  }

  /// Runs maintenance now, not in the background.
  public nonisolated(nonsending) func maintain() async throws(StoreError) {
    try await perform { (cache) throws(StoreError) in try cache.maintain() }
  }

  /// Lets later reads see every write acknowledged before this call, on one of the cache's own
  /// threads. See the synchronous form.
  public nonisolated(nonsending) func catchUp() async throws(StoreError) {
    try await perform { (cache) throws(StoreError) in try cache.catchUp() }
  }

  /// Writes a value to a file, on one of the cache's own threads. See the synchronous form.
  @discardableResult
  public nonisolated(nonsending) func exportValue(
    forKey key: Key, to path: String
  ) async throws(StoreError) -> Bool {
    try await perform { (cache) throws(StoreError) in
      try cache.exportValue(forKey: key, to: path)
    }
  }

  /// Copies the current state of the cache.
  ///
  /// - Parameters:
  ///   - destination: see the synchronous form.
  ///   - progress: called occasionally, on the thread that does the work.
  @discardableResult
  public nonisolated(nonsending) func backup(
    to destination: String, progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) -> BackupReport {
    try await perform { (cache) throws(StoreError) in
      try cache.backup(to: destination, progress: progress)
    }
  }

  /// Reads and checks all of the cache's data on disk once, on a thread of its own.
  ///
  /// - Returns: the amount of data read, and the damage found. `isComplete` is `false` if the task
  ///   was cancelled during the scrub.
  /// - Throws: see the synchronous form. Never `cancelled`.
  @discardableResult
  public nonisolated(nonsending) func scrub(
    bytesPerSecond: Int? = nil,
    progress: @escaping @Sendable (WorkProgress) -> Visit = { _ in .next }
  ) async throws(StoreError) -> CheckReport {
    return try await store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
  }

  /// Makes every write durable, marks the store clean and releases its lock, like the synchronous
  /// form. Does not queue behind other calls to the cache. Cancellation does not stop it.
  ///
  /// - Throws: see the synchronous form. Never `cancelled`.
  public nonisolated(nonsending) func close() async throws(StoreError) {
    try await WorkQueue.performAlone { () throws(StoreError) in try self.close() }
  }
}
