internal import CairnStore

extension DiskCache {
  /// Opens or creates a cache. A new directory gets mode 0700, and its files get mode 0600.
  ///
  /// - Parameters:
  ///   - place: where the cache is stored: a path, or a name.
  ///   - configuration: the limits and the other options.
  ///   - keyCoder: encodes keys.
  ///   - valueCoder: encodes values.
  ///   - costing: computes the cost in memory of a value that is set without one. See
  ///     `MemoryCache.init`. With `nil`, the cost is the size of the value on disk, so that a cost
  ///     limit counts bytes. Has no effect without a memory tier.
  /// - Throws: the errors of `Store.init`, such as `locked` if the cache is already
  ///   open, in this process or another, or `corrupt` if it is damaged. A damaged cache stays
  ///   unchanged, unless `quarantinesCorruptStores` is set. Also `unusable` if the place is inside
  ///   another store, or if the shared cache has keys or values of another type.
  /// - Complexity: the same as `Store.init`.
  public static func open(
    _ place: CachePlace, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache {
    try open(
      place, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      costing: costing, variables: CacheLocation.variables)
  }

  /// Opens or creates a cache, on one of a few threads that all opens share.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began.
  public static nonisolated(nonsending) func open(
    _ place: CachePlace, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(StoreError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
      try open(
        place, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing)
    }
  }

  /// Opens a cache at the place that these environment variables give.
  static func open(
    _ place: CachePlace, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    variables: [String: String]
  ) throws(StoreError) -> DiskCache {
    func path(of name: String) throws(StoreError) -> String {
      try self.path(of: name, configuration, variables)
    }
    func cache(at path: String, name: String?) throws(StoreError) -> DiskCache {
      let fileSystem = SystemFileSystem()
      if let store = CacheLocation.store(around: path, fileSystem) {
        throw .inside(store, path)
      }
      try Directory.createParents(of: path, fileSystem: fileSystem)
      return try DiskCache(
        path: path, name: name, configuration: configuration, keyCoder: keyCoder,
        valueCoder: valueCoder, costing: costing, environment: .system())
    }
    switch place.kind {
    case .elsewhere(let url): throw .notAFile(url)
    case .path(let path): return try cache(at: path, name: nil)
    case .name(let name): return try cache(at: path(of: name), name: name)
    case .shared(let name):
      let path = try path(of: name)
      let shared = try SharedCaches.cache(at: path) { () throws(StoreError) in
        try cache(at: path, name: name)
      }
      shared.noteConfiguration(configuration)
      return shared
    }
  }

  /// The directory of a named cache.
  static func path(
    of name: String, _ configuration: DiskCacheConfiguration, _ variables: [String: String]
  ) throws(StoreError) -> String {
    try CacheLocation.path(
      name: name, namespace: configuration.namespace ?? CacheLocation.programName,
      variables: variables)
  }

  /// Logs a message if another caller that shares the cache has different limits.
  private func noteConfiguration(_ other: DiskCacheConfiguration) {
    let mine = configuration
    let differences = [
      ("countLimit", mine.countLimit == other.countLimit),
      ("byteLimit", mine.byteLimit == other.byteLimit),
      ("diskByteLimit", mine.diskByteLimit == other.diskByteLimit),
      ("lifetime", mine.lifetime.or(.unlimited) == other.lifetime.or(.unlimited)),
      ("idleLimit", mine.idleLimit == other.idleLimit),
      ("durability", mine.store.durability == other.store.durability),
      ("memory.countLimit", mine.memory?.countLimit == other.memory?.countLimit),
      ("memory.costLimit", mine.memory?.costLimit == other.memory?.costLimit),
      ("memory", (mine.memory == nil) == (other.memory == nil)),
    ].filter { !$0.1 }.map(\.0)
    if differences.isEmpty { return }
    events.log(
      .warning, .configuration,
      "it is already open with other options, so these are ignored: "
        + differences.joined(separator: ", "))
  }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// Opens or creates a cache with the standard coders. They store `String`, `[UInt8]` and `Data`,
  /// and integers and `UUID` as keys, as their bytes. All other types are stored as JSON.
  public static func open(
    _ place: CachePlace, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache {
    try open(
      place, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// Opens or creates a cache with the standard coders, on one of a few threads that all opens
  /// share.
  public static nonisolated(nonsending) func open(
    _ place: CachePlace, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(StoreError) -> DiskCache {
    try await open(
      place, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}
