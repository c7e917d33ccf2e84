public import CairnStore

/// Reading a cache while another process writes to it.
extension DiskCache {
  /// Opens a cache for reading, even while another process writes to it, and follows that process's
  /// changes.
  ///
  ///     let pages = try DiskCache<String, Page>.open(
  ///       following: .name("pages"), configuration: DiskCacheConfiguration(
  ///         memory: MemoryConfiguration(countLimit: 10_000)))
  ///     let page = try pages.value(forKey: url)
  ///
  /// Reads behave like those of `Store.init(following:freshness:configuration:)`. With
  /// `.everyRead`, a read sees every write acknowledged before the read began, and never an older
  /// value than a previous read saw. Following changes nothing in the directory. Reads do not count
  /// as accesses on disk.
  ///
  /// With a memory tier, each value is decoded only once, until the writer changes it. Each read
  /// looks up the version of its key in the store's index, so memory never returns anything but the
  /// version on disk. Values that the writer has replaced or removed leave memory at the next read
  /// of their key, or when memory needs room.
  ///
  /// - Writes, trims and changes of the limits throw `readOnly`.
  /// - A load returns its value to all waiting callers but does not keep it, so the next call loads
  ///   it again. `loads.unkept` of `statistics()` counts these loads. Let the writing process load
  ///   values that should stay.
  /// - Values that cannot be decoded stay on disk. With `dropsUnreadableValues`, the read is a miss.
  /// - Observers of the cache do not receive the writer's changes. Observers of `memory` are called
  ///   when values enter or leave memory.
  ///
  /// - Parameters:
  ///   - place: see `open(_:configuration:keyCoder:valueCoder:costing:)`. For a `shared` place,
  ///     only the name counts: each call opens a separate cache.
  ///   - freshness: when reads see new writes.
  ///   - configuration: the memory tier, the policies, the namespace, and how the store is read.
  ///     Limits on disk have no effect: those of the writer apply.
  ///   - keyCoder: the key coder of the writer.
  ///   - valueCoder: the value coder of the writer.
  ///   - costing: see `open(_:configuration:keyCoder:valueCoder:costing:)`.
  /// - Throws: the errors of `Store.init(following:freshness:configuration:)`, such as
  ///   `noStore` if the cache does not exist yet.
  /// - Complexity: the same as `Store.init(following:freshness:configuration:)`.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .init(), keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache {
    let path: String
    var known: String?
    switch place.kind {
    case .elsewhere(let url): throw .notAFile(url)
    case .path(let given): path = given
    case .name(let name), .shared(let name):
      path = try Self.path(of: name, configuration, CacheLocation.variables)
      known = name
    }
    return try DiskCache(
      path: path, name: known, configuration: configuration, keyCoder: keyCoder,
      valueCoder: valueCoder, costing: costing, following: freshness, environment: .system())
  }

  /// Opens a cache for reading while another process writes to it, on one of a few threads that all
  /// opens share.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public static nonisolated(nonsending) func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .init(), keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(StoreError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
      try open(
        following: place, freshness: freshness, configuration: configuration, keyCoder: keyCoder,
        valueCoder: valueCoder, costing: costing)
    }
  }

  /// Lets later reads see every write acknowledged before this call. Does nothing unless the cache
  /// follows another process.
  ///
  /// - Throws: the errors of `Store.catchUp`, such as `outdated` if data that reads
  ///   have seen is gone.
  public func catchUp() throws(StoreError) {
    try store.catchUp()
  }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens a cache for reading while another process writes to it, with the standard coders.
  public static func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .init(),
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache {
    try open(
      following: place, freshness: freshness, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard, costing: costing)
  }

  /// Opens a cache for reading while another process writes to it, with the standard coders, on one
  /// of a few threads that all opens share.
  public static nonisolated(nonsending) func open(
    following place: CachePlace, freshness: Freshness = .everyRead,
    configuration: DiskCacheConfiguration = .init(),
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(StoreError) -> DiskCache {
    try await open(
      following: place, freshness: freshness, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard, costing: costing)
  }
}
