public import CairnStore

/// What takes long, done on threads of the tier on disk, so that none of those that tasks run on is blocked;
/// as with the same methods of ``DiskCache``. A task that is cancelled before its turn gets `cancelled`; what
/// was begun goes on to its end.
extension TieredCache {
  /// Opens the cache at a path; as `init(path:)`.
  public static func open(
    path: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await WorkQueue.opening.perform { () throws(CacheError) in
      try TieredCache(
        path: path, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Opens the cache of a name; as `init(name:)`.
  public static func open(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await WorkQueue.opening.perform { () throws(CacheError) in
      try TieredCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Runs `body` with the cache.
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (TieredCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await disk.workers.perform { () throws(CacheError) in try body(self) }
  }

  /// As `trim(toCount:order:)`.
  @discardableResult
  public func performTrim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> TrimSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(toCount: count, order: order) }
  }

  /// As `trim(toBytes:order:)`.
  @discardableResult
  public func performTrim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed
  ) async throws(CacheError) -> TrimSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toBytes: byteCount, order: order)
    }
  }

  /// As `trim(toFreeDiskSpace:)`.
  @discardableResult
  public func performTrim(
    toFreeDiskSpace byteCount: Int
  ) async throws(CacheError) -> TrimSummary {
    try await perform { (cache) throws(CacheError) in
      try cache.trim(toFreeDiskSpace: byteCount)
    }
  }

  /// As `trim(olderThan:by:)`.
  @discardableResult
  public func performTrim(
    olderThan age: Duration, by basis: AgeBasis = .access
  ) async throws(CacheError) -> TrimSummary {
    try await perform { (cache) throws(CacheError) in try cache.trim(olderThan: age, by: basis) }
  }

  /// As `removeExpired()`.
  @discardableResult
  public func performRemoveExpired() async throws(CacheError) -> TrimSummary {
    try await perform { (cache) throws(CacheError) in try cache.removeExpired() }
  }

  /// As `removeAll()`.
  public func performRemoveAll() async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.removeAll() }
  }

  /// Removes everything, and tells how far it has come; as `DiskCache.removingAll`.
  public func removingAll() -> RemovalUpdates { disk.removingAll() }

  /// As `sync()`.
  public func performSync() async throws(CacheError) { try await disk.performSync() }

  /// As `compact()`.
  @discardableResult
  public func performCompact() async throws(CacheError) -> CompactionReport {
    try await disk.performCompact()
  }

  /// As `backup(to:progress:)`.
  @discardableResult
  public func performBackup(
    to destination: String, progress: @escaping @Sendable (BackupProgress) -> Void = { _ in }
  ) async throws(CacheError) -> BackupReport {
    try await disk.performBackup(to: destination, progress: progress)
  }

  /// As `close()`.
  public func performClose() async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.close() }
  }
}

// What concerns the tier on disk alone.
extension TieredCache {
  /// Makes every write durable that was acknowledged before the call.
  public func sync() throws(CacheError) { try disk.sync() }

  /// Gives back all space of what was overwritten or removed.
  @discardableResult
  public func compact() throws(CacheError) -> CompactionReport { try disk.compact() }

  /// Does at once all that the tier on disk does for itself now and then.
  public func maintain() throws(CacheError) {
    recency.tell()
    try disk.maintain()
  }

  /// Copies all that it holds into a new store, while writes go on; as `DiskCache.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (BackupProgress) -> Void = { _ in }
  ) throws(CacheError) -> BackupReport {
    recency.tell()
    return try disk.backup(to: destination, progress: progress)
  }

  /// Writes the bytes of a value into a file; as `DiskCache.export`.
  ///
  /// - Returns: whether there was a value.
  @discardableResult
  public func export(_ key: Key, to path: String) throws(CacheError) -> Bool {
    let tierKey = try tierKey(key)
    guard let version = try disk.exportedVersion(of: key, to: path) else {
      noteShownAbsent(tierKey)
      return false
    }
    noteSeen(version, of: tierKey)
    held.noteAccess(tierKey)
    return true
  }
}

extension TieredCache where Key: Codable, Value: Codable {
  /// Opens the cache at a path with the standard coders.
  public static func open(
    path: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coders.
  public static func open(
    name: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}
