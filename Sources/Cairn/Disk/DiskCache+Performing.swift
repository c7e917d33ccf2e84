public import CairnStore

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
  public func perform<Result: Sendable>(
    _ body: @escaping @Sendable (DiskCache) throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(CacheError) in try body(self) }
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
  /// How far the removal has come.
  public typealias Element = RemoveAllProgress
  /// What the removal throws where it fails.
  public typealias Failure = CacheError

  fileprivate let stream: AsyncStream<Result<RemoveAllProgress, CacheError>>

  /// Hands the steps of the removal out, one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var base: AsyncStream<Result<RemoveAllProgress, CacheError>>.AsyncIterator

    /// The next step; `nil` when all is done.
    ///
    /// - Throws: as `DiskCache.removeAll`.
    public mutating func next() async throws(CacheError) -> RemoveAllProgress? {
      try await next(isolation: nil)
    }

    /// The next step, awaited on the given actor; `nil` when all is done.
    ///
    /// - Throws: as `DiskCache.removeAll`.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(CacheError) -> RemoveAllProgress? {
      try await base.next(isolation: actor)?.get()
    }
  }

  /// An iterator over the steps. There is one stream: of two iterators, each step goes to one.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: stream.makeAsyncIterator())
  }
}
