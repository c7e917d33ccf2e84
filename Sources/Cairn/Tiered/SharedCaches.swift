internal import CairnStore

/// The caches of a process that are known by name: one live one for each directory.
enum SharedCaches {
  private enum Place: Sendable {
    /// Somebody opens it.
    case opening
    case open(Weak)
  }

  private struct Weak: Sendable {
    weak var cache: (any AnyObject & Sendable)?
    /// What it is known by, so that no other reference is taken to it, which could be the last one.
    let id: ObjectIdentifier

    init(_ cache: some AnyObject & Sendable) {
      self.cache = cache
      id = ObjectIdentifier(cache)
    }
  }

  /// By the bytes of the path: names that are equal texts may be two directories.
  private static let places = Lock<[[UInt8]: Place]>([:], waits: true)

  /// The live cache at a path, or the one that `open` makes. Of several that ask at once, one opens it and
  /// the others wait.
  ///
  /// - Throws: `otherType` where the live one is of another type; what `open` throws.
  static func cache<Cache: AnyObject & Sendable>(
    at path: String, open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let path = Array(path.utf8)
    let (live, isReplacement) = places.waitUntil { places -> ((any AnyObject & Sendable)?, Bool)? in
      switch places[path] {
      case .opening: return nil
      case .open(let weak):
        if let cache = weak.cache { return (cache, false) }
        places[path] = .opening
        return (nil, true)
      case nil:
        places[path] = .opening
        return (nil, false)
      }
    }
    if let live {
      guard let cache = live as? Cache else {
        throw .otherType(found: "\(type(of: live))", expected: "\(Cache.self)")
      }
      return cache
    }
    do throws(CacheError) {
      let cache = try opened(isReplacement: isReplacement, open)
      enter(.open(Weak(cache)), at: path)
      return cache
    } catch {
      enter(nil, at: path)
      throw error
    }
  }

  /// Opens a cache. One that was there before may still be closing its store, on another thread.
  private static func opened<Cache>(
    isReplacement: Bool, _ open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let end = ContinuousClock.now.advanced(by: .seconds(10))
    while true {
      do throws(CacheError) { return try open() } catch {
        guard isReplacement, case .store(.locked) = error, ContinuousClock.now < end else {
          throw error
        }
        pause(for: .milliseconds(1))
      }
    }
  }

  private static func enter(_ place: Place?, at path: [UInt8]) {
    places.withLock { $0[path] = place }
    places.wakeAll()
  }

  /// Forgets a cache that was closed, so that the next one who asks opens it anew.
  static func remove(_ cache: AnyObject) {
    places.withLock { places in
      for (path, place) in places {
        if case .open(let weak) = place, weak.id == ObjectIdentifier(cache) { places[path] = nil }
      }
    }
  }
}

extension TieredCache {
  /// The one cache of a name in this process: the live one, or else one that is opened now.
  ///
  /// It is held weakly: who wants it to stay open keeps it. The configuration, the coders and the costing of
  /// the first who asks count; those of the others are not looked at while it lives. After a `close`, the next
  /// who asks opens it anew. Names in different namespaces are different caches.
  ///
  /// - Throws: `otherType` where the live cache of that name has keys or values of another type; else as
  ///   `init(name:)`: `locked` where another process has it open, or this one does by `init`.
  public static func shared(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) throws(CacheError) -> TieredCache {
    try shared(
      name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
      costing: costing, variables: CacheLocation.variables)
  }

  /// The same with other variables of the environment: for tests.
  package static func shared(
    name: String, configuration: TieredCacheConfiguration, keyCoder: KeyCoder<Key>,
    valueCoder: ValueCoder<Value>,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil,
    variables: [String: String]
  ) throws(CacheError) -> TieredCache {
    let path = try CacheLocation.path(
      name: name, namespace: configuration.disk.namespace, variables: variables)
    return try SharedCaches.cache(at: path) { () throws(CacheError) in
      try TieredCache(
        name: name, configuration: configuration, keyCoder: keyCoder, valueCoder: valueCoder,
        costing: costing, variables: variables)
    }
  }
}

extension TieredCache where Key: Codable, Value: Codable {
  /// The one cache of a name in this process, with the standard coders.
  public static func shared(
    name: String, configuration: TieredCacheConfiguration,
    costing: (@Sendable (_ key: Key, _ value: Value) -> UInt64)? = nil
  ) throws(CacheError) -> TieredCache {
    try shared(
      name: name, configuration: configuration, keyCoder: .standard, valueCoder: .standard,
      costing: costing)
  }
}
