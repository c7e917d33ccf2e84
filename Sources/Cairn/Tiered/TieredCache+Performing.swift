public import CairnStore

/// What takes long, done on threads of the tier on disk.
extension TieredCache: DiskCaching {
  /// Opens the cache at a path; as `init(path:configuration:keyCoder:valueCoder:costing:)`.
  public static func open(
    path: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try TieredCache(
        path: path, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Opens the cache of a name; as `init(name:configuration:keyCoder:valueCoder:costing:)`.
  public static func open(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try TieredCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Does any work with the cache on a thread of the tier on disk; as `DiskCache.perform`.
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `cancelled` where the task was cancelled before the work began.
  @discardableResult
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (TieredCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await disk.workers.perform(orThrow: .cancelled) { () throws(CacheError) in try body(self) }
  }
}

// What concerns the tier on disk alone.
extension TieredCache {
  /// Makes every write durable that was acknowledged before the call.
  ///
  /// - Throws: as `DiskCache.sync()`.
  public func sync() throws(CacheError) { try disk.sync() }

  /// Gives back all space of what was overwritten or removed.
  ///
  /// - Throws: as `DiskCache.compact()`.
  @discardableResult
  public func compact() throws(CacheError) -> CompactionReport { try disk.compact() }

  /// Does at once all that the tier on disk does for itself now and then.
  ///
  /// - Throws: as `DiskCache.maintain()`.
  public func maintain() throws(CacheError) {
    recency.tell()
    try disk.maintain()
  }

  /// Copies all that it holds into a new store, while writes go on; as `DiskCache.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (BackupProgress) -> Void
  ) throws(CacheError) -> BackupReport {
    recency.tell()
    return try disk.backup(to: destination, progress: progress)
  }

  /// Writes the bytes of a value into a file; as `DiskCache.export`.
  ///
  /// - Returns: whether there was a value.
  @discardableResult
  public func exportValue(forKey key: Key, to path: String) throws(CacheError) -> Bool {
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
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coders.
  public static func open(
    name: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}

extension TieredCache where Key: Codable {
  /// Opens the cache at a path with the standard coder for keys.
  public static func open(
    path: String, configuration: TieredCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }

  /// Opens the cache of a name with the standard coder for keys.
  public static func open(
    name: String, configuration: TieredCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> TieredCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }
}
