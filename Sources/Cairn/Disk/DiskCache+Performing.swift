public import CairnStore

/// The asynchronous forms of what takes long: opening, removing and copying much, waiting for the disk.
///
/// Each runs on a thread of the cache's own, so that none of those that tasks run on is blocked; as many at
/// once as the configuration's `asyncWidth` says. A task that is cancelled before the work began gets
/// `cancelled` at once, and nothing was done. Once begun, the work goes on to its end, and the call returns what came
/// of it: it could not be undone.
extension DiskCache {
  /// Opens the cache at a path; as `init(path:configuration:keyCoder:valueCoder:)`.
  public static func open(
    path: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform { () throws(CacheError) in
      try DiskCache(
        path: path, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder)
    }
  }

  /// Opens the cache of a name; as `init(name:configuration:keyCoder:valueCoder:)`.
  public static func open(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform { () throws(CacheError) in
      try DiskCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder)
    }
  }

  /// Does any work with the cache off the threads that tasks run on.
  ///
  ///     let pages = try await cache.perform { cache in try cache.values(forKeys: urls) }
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await workers.perform { () throws(CacheError) in try body(self) }
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

  /// Removes everything, and tells how far it has come.
  ///
  ///     for try await progress in cache.removingAll() { show(progress) }
  ///
  /// The removal begins with the call, whether or not somebody reads what it tells, and goes on to its end.
  ///
  /// - Returns: a sequence that ends when all is done, and throws where `removeAll` would.
  public func removingAll() -> RemovalUpdates {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Result<RemoveAllProgress, CacheError>.self, bufferingPolicy: .bufferingNewest(64))
    workers.run { [self] in
      do throws(CacheError) {
        try removeAll { progress in continuation.yield(.success(progress)) }
      } catch {
        continuation.yield(.failure(error))
      }
      continuation.finish()
    }
    return RemovalUpdates(stream: stream)
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

  /// As `sync()`.
  public func performSync() async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.sync() }
  }

  /// As `close()`, which waits for the disk.
  public func performClose() async throws(CacheError) {
    try await perform { (cache) throws(CacheError) in try cache.close() }
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

/// How far a removal of all has come, file by file. Where nobody reads it in time, the newest 64 stay.
public struct RemovalUpdates: AsyncSequence, Sendable {
  public typealias Element = RemoveAllProgress
  public typealias Failure = CacheError

  fileprivate let stream: AsyncStream<Result<RemoveAllProgress, CacheError>>

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var base: AsyncStream<Result<RemoveAllProgress, CacheError>>.AsyncIterator

    public mutating func next() async throws(CacheError) -> RemoveAllProgress? {
      try await next(isolation: nil)
    }

    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(CacheError) -> RemoveAllProgress? {
      try await base.next(isolation: actor)?.get()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: stream.makeAsyncIterator())
  }
}
