internal import CairnStore

/// What takes long, off the threads that tasks run on.
extension DiskCache: DiskCaching {
  /// Opens the cache at a path; as `init(path:configuration:keyCoder:valueCoder:)`.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try DiskCache(
        path: path, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder)
    }
  }

  /// Opens the cache of a name; as `init(name:configuration:keyCoder:valueCoder:)`.
  public static func open(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try DiskCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder)
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

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens the cache at a path with the standard coders.
  public static func open(
    path: String, configuration: DiskCacheConfiguration
  ) async throws(CacheError) -> DiskCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: .standard)
  }

  /// Opens the cache of a name with the standard coders.
  public static func open(
    name: String, configuration: DiskCacheConfiguration
  ) async throws(CacheError) -> DiskCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard)
  }
}

extension DiskCache where Key: Codable {
  /// Opens the cache at a path with the standard coder for keys.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await open(
      path: path, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder)
  }

  /// Opens the cache of a name with the standard coder for keys.
  public static func open(
    name: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await open(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder)
  }
}
