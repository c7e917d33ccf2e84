extension DiskCache {
  /// The one cache of a name in this process: the live one, or else one that is opened now.
  ///
  /// The process holds it weakly: keep a reference for as long as it should stay open. The first caller's configuration,
  /// coders and costing count; those of later callers are ignored while it lives. After a `close`, the next call opens it
  /// anew. Names in different namespaces are different caches.
  ///
  /// - Throws: `otherType` where the live cache of that name has keys or values of another type;
  ///   else as `init`: `locked` where another process has it open, or this one does by `init`, or
  ///   where the caller is just opening it, as its log may be.
  public static func shared(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    try shared(
      name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      costing: costing, variables: CacheLocation.variables)
  }

  /// Gives the cache of a name, as `shared` does, and opens it on a thread that the caches share, so that none of
  /// those that tasks run on waits for the disk.
  ///
  /// - Throws: as `shared`; `cancelled` where the task was cancelled before the work began.
  public static func openShared(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await openShared(
      name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      costing: costing, variables: CacheLocation.variables)
  }

  /// The same with other variables of the environment: for tests.
  package static func openShared(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    variables: [String: String]
  ) async throws(CacheError) -> DiskCache {
    try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(CacheError) in
      try shared(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing, variables: variables)
    }
  }

  /// The same with other variables of the environment: for tests.
  package static func shared(
    name: String, configuration: DiskCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil,
    variables: [String: String]
  ) throws(CacheError) -> DiskCache {
    let path = try CacheLocation.path(
      name: name, namespace: configuration.namespace, variables: variables)
    return try SharedCaches.cache(at: path) { () throws(CacheError) in
      try DiskCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing, variables: variables)
    }
  }
}

extension DiskCache where Key: Codable, Value: Codable {
  /// The one cache of a name in this process, with the standard coders.
  public static func shared(
    name: String, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    try shared(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }

  /// The same, on a thread of the caches.
  public static func openShared(
    name: String, configuration: DiskCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await openShared(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}

extension DiskCache where Key: Codable {
  /// The one cache of a name in this process, with the standard coder for keys.
  public static func shared(
    name: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache {
    try shared(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }

  /// The same, on a thread of the caches.
  public static func openShared(
    name: String, configuration: DiskCacheConfiguration, valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> Int)? = nil
  ) async throws(CacheError) -> DiskCache {
    try await openShared(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: valueCoder,
      costing: costing)
  }
}
