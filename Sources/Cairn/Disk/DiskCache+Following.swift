public import CairnStore

/// Reading a cache while another process writes to it: one writes, and all that were forked, or started, beside it read.
extension DiskCache {
  /// Opens a cache to read it beside the process that has it open for writing, if there is one, and to see it change.
  ///
  ///     let pages = try DiskCache<String, Page>.open(
  ///       following: .name("pages"), configuration: DiskCacheConfiguration(
  ///         countLimit: nil, byteLimit: nil, memory: MemoryTierConfiguration(countLimit: 10_000, costLimit: nil)))
  ///     let page = try pages.value(forKey: url)
  ///
  /// What a read finds, and when, is as with `Store.init(following:freshness:configuration:)`: with `.everyRead`, all that
  /// was acknowledged before it began, and never an older value than a read before it has found. Nothing in the directory is
  /// changed. No read counts as an access on disk.
  ///
  /// With a tier in memory, a value that did not change is decoded once. Each read asks the index on disk for the version
  /// of its key, so memory is never ahead of the disk, nor behind it; it keeps its values over a compaction. What the writer
  /// has replaced or removed goes with the next read of its key, or when the room is needed.
  ///
  /// - A write throws `store` with `readOnly`, a trim and a change of the limits as well.
  /// - A call that loads a value gives it to all who wait for it, and keeps it nowhere: the next call loads it again.
  ///   `loadStatistics.unkeptCount` counts them. Let the writer load what is to stay.
  /// - Values that cannot be made sense of stay, whatever the policies of the configuration say. With `.drop`, the read
  ///   is a miss.
  /// - Observers of the cache are told nothing of what the writer does; those of `memory` are told what comes to memory and
  ///   goes from it.
  ///
  /// - Parameters:
  ///   - place: as with `open(_:configuration:keyCoder:valueCoder:costing:)`. One that is `shared` is taken by its name: each
  ///     call opens a cache of its own.
  ///   - freshness: when new writes are seen.
  ///   - configuration: the memory tier, the policies, the namespace, and how the store is read. Limits on disk are the
  ///     writer's concern.
  ///   - keyCoder: that of the writer.
  ///   - valueCoder: that of the writer.
  ///   - costing: as with `open(_:configuration:keyCoder:valueCoder:costing:)`.
  /// - Throws: `store` with what `Store.init(following:freshness:configuration:)` throws: `noStore` where there is no cache
  ///   yet; `invalidName`, `noCacheDirectory`.
  /// - Complexity: as `Store.init(following:freshness:configuration:)`.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    let path: String
    var known: String?
    switch place.kind {
    case .elsewhere(let url): throw .invalidName(reason: "\(url) is no file's URL")
    case .path(let given): path = given
    case .name(let name), .shared(let name):
      path = try Self.path(of: name, configuration, CacheLocation.variables)
      known = name
    }
    return try DiskCache(
      path: path, name: known, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, costing: costing, following: freshness, environment: .system())
  }

  /// Opens a cache to read it beside the process that writes to it, on a thread that the caches share.
  ///
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began.
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

  /// Has reads find everything that was acknowledged before this call. Does nothing in a cache that follows no other
  /// process.
  ///
  /// - Throws: `store` with what `Store.catchUp` throws: `outdated` where something is gone that reads have found.
  public func catchUp() throws(CacheError) {
    try storing { () throws(StoreError) in try store.catchUp() }
  }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens a cache to read it beside the process that writes to it, with the standard coders.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .unlimited,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    try open(
      following: place, freshness: freshness, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard, costing: costing)
  }

  /// Opens a cache to read it beside the process that writes to it, with the standard coders, on a thread that the caches
  /// share.
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
