public import CairnStore

/// Reading a cache while another process writes to it.
extension DiskCache {
  /// Opens a cache for reading while another process may have it open for writing, and follows
  /// its changes.
  ///
  ///     let pages = try DiskCache<String, Page>.open(
  ///       following: .name("pages"), configuration: DiskCacheConfiguration(
  ///         countLimit: nil, byteLimit: nil, memory: MemoryTierConfiguration(countLimit: 10_000, costLimit: nil)))
  ///     let page = try pages.value(forKey: url)
  ///
  /// Reads behave as with `Store.init(following:freshness:configuration:)`. With `.everyRead`, they
  /// see every write acknowledged before they began, and never an older value than a previous read.
  /// Following changes nothing in the directory. Reads do not count as accesses on disk.
  ///
  /// With a memory tier, an unchanged value is decoded once. Each read asks the store's index for
  /// the version of its key, so memory is never ahead of the disk or behind it. Memory keeps its
  /// values across a compaction. Values that the writer has replaced or removed leave memory at the
  /// next read of their key, or when memory needs room.
  ///
  /// - Writes, trims and changes of the limits throw `store` with `readOnly`.
  /// - A call that loads a value returns it to all its waiters but does not keep it, so the next
  ///   call loads it again. `loadStatistics.unkeptCount` counts these loads. Let the writer load
  ///   values that should stay.
  /// - Unreadable values stay, whatever the configured policies. With `.drop`, the read is a miss.
  /// - Observers of the cache do not receive the writer's changes. Observers of `memory` are called
  ///   when values enter or leave memory.
  ///
  /// - Parameters:
  ///   - place: see `open(_:configuration:keyCoder:valueCoder:costing:)`. For a `shared` place,
  ///     only the name matters, because each call opens a separate cache.
  ///   - freshness: when reads see new writes.
  ///   - configuration: the memory tier, the policies, the namespace, and how the store is read.
  ///     Limits on disk are the writer's.
  ///   - keyCoder: the writer's.
  ///   - valueCoder: the writer's.
  ///   - costing: see `open(_:configuration:keyCoder:valueCoder:costing:)`.
  /// - Throws: `store` with the errors of `Store.init(following:freshness:configuration:)`, such as
  ///   `noStore` if the cache does not exist yet; `invalidName`, `noCacheDirectory`.
  /// - Complexity: the same as `Store.init(following:freshness:configuration:)`.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    let path: String
    var known: String?
    switch place.kind {
    case .elsewhere(let url): throw .invalidName(reason: "\(url) is not a file URL")
    case .path(let given): path = given
    case .name(let name), .shared(let name):
      path = try Self.path(of: name, configuration, CacheLocation.variables)
      known = name
    }
    return try DiskCache(
      path: path, name: known, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, costing: costing, following: freshness, environment: .system())
  }

  /// Opens a cache for reading while another process writes to it, on a thread that the caches
  /// share.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public static nonisolated(nonsending) func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try open(
        following: place, freshness: freshness, configuration: configuration, keyCoder: keyCoder,
        valueCoder: valueCoder, costing: costing)
    }
  }

  /// Lets reads see every write acknowledged before this call. Does nothing unless the cache
  /// follows another process.
  ///
  /// - Throws: `store` with the errors of `Store.catchUp`, such as `outdated` if data that reads
  ///   have seen is gone.
  public func catchUp() throws(CacheError) {
    try storing { () throws(StoreError) in try store.catchUp() }
  }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens a cache for reading while another process writes to it, with the standard coders.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    try open(
      following: place, freshness: freshness, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard, costing: costing)
  }

  /// Opens a cache for reading while another process writes to it, with the standard coders, on a
  /// thread that the caches share.
  public static nonisolated(nonsending) func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await open(
      following: place, freshness: freshness, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard, costing: costing)
  }
}
