public import CairnStore

/// What takes long, off the threads that tasks run on.
extension DiskCache {
  /// Opens the cache at a path; as `init(path:configuration:keyCoder:valueCoder:costing:)`.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try DiskCache(
        path: path, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Opens the cache of a name; as `init(name:configuration:keyCoder:valueCoder:costing:)`.
  public static func open(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try DiskCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Does work that throws errors of the cache only on one of its own threads, so that none of those that tasks
  /// run on waits for the disk. Where the closure does not say so, it may throw any. As many
  /// run at once as `concurrentCallLimit` in the configuration says; the others wait in line.
  ///
  ///     let pages = try await cache.perform { (cache) throws(CacheError) in
  ///       try cache.values(forKeys: urls)
  ///     }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `cancelled` where the task was cancelled before the work began: nothing was
  ///   done then. Once begun, the work goes on to its end.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(CacheError) in try body(self) }
  }
}

// Forms of what takes long.
extension DiskCache {
  /// Does any work with the cache off the threads that tasks run on.
  ///
  ///     let pages = try await cache.perform { try $0.values(forKeys: urls) }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `CacheError.cancelled` where the task was cancelled before the work began:
  ///   nothing was done then. Once begun, the work goes on to its end.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws -> Result
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

  /// As `sync()`. It waits in line as all work does. A cancelled task does it too: a program that syncs on its way out
  /// means to keep what was written.
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

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens the cache at a path with the standard coders.
  public static func open(
    path: String, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coders.
  public static func open(
    name: String, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}

extension DiskCache where Key: Codable {
  /// Opens the cache at a path with the standard coder for keys.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coder for keys.
  public static func open(
    name: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }
}
