import Cairn

/// Values that many machines share, kept near: in memory, on the local disk, in Redis or Valkey, and at their origin.
///
///     let pages = try await NearCache<String, String>.open(at: "pages.cairn", configuration, coder: .string)
///     let page = try await pages.value(forKey: url, lifetime: .seconds(3600)) { try await fetch(url) }
///     try await pages.setValue(page, forKey: url, lifetime: .seconds(3600))   // all machines see it
///
/// What it promises is in the README beside it.
public final class NearCache<Key: Hashable & Sendable & LosslessStringConvertible, Value: Sendable>:
  Sendable
{
  public typealias Origin = @Sendable () async throws -> Value

  /// What is near. To be looked at: who changes it breaks the promises.
  public let near: DiskCache<Key, NearCopy<Value>>
  /// What the engine is called with.
  public let client: EngineClient
  let configuration: NearCacheConfiguration
  let coder: NearCoder<Value>
  @usableFromInline let freshness: Freshness
  let tickets: Tickets<Key>
  private let feed: InvalidationFeed
  /// Whether all reads go by the load policy, which may load early what is fresh.
  @usableFromInline let loadsEarly: Bool
  /// Whether the engine may be asked first, without a load of the near cache.
  private let asksAtOnce: Bool
  private let prefix: [UInt8]

  /// Opens the near copies of a directory, and begins to connect. It need not wait for the engine.
  ///
  /// - Throws: `NearCacheError` where the configuration cannot keep its promise; `CacheError`.
  public static func open(
    at path: String, _ configuration: NearCacheConfiguration, coder: NearCoder<Value>
  ) async throws -> NearCache {
    try configuration.validate()
    var near = configuration.near
    near.loadPolicy = configuration.loadPolicy
    return NearCache(
      near: try await .open(
        .path(path), configuration: near, keyCoder: keyCoder,
        valueCoder: NearCopy.coder(coder)), configuration, coder)
  }

  private init(
    near: DiskCache<Key, NearCopy<Value>>, _ configuration: NearCacheConfiguration,
    _ coder: NearCoder<Value>
  ) {
    let prefix = Array(configuration.prefix.utf8)
    let freshness = Freshness(
      limit: configuration.stalenessLimit, policy: configuration.lossPolicy)
    self.near = near
    self.configuration = configuration
    self.coder = coder
    self.freshness = freshness
    self.prefix = prefix
    let tickets = Tickets<Key>()
    self.tickets = tickets
    let policy = configuration.loadPolicy
    asksAtOnce =
      policy.softTimeLimit == nil && policy.timeLimit == nil
      && policy.staleWhileRevalidating == .zero
    loadsEarly =
      configuration.loadPolicy.refreshAhead != nil || configuration.loadPolicy.earlyRefresh != nil
    client = EngineClient(configuration.engine)
    feed = InvalidationFeed(
      configuration.engine, prefix: configuration.prefix, heartbeat: configuration.heartbeat,
      freshness: freshness
    ) { invalidation in
      switch invalidation {
      case .all:
        tickets.voidAll()
        try near.removeAll()
      case .keys(let keys):
        // Both also outdate a load in progress, whose answer may be older than the write.
        for key in keys {
          guard let text = String(validating: key.dropFirst(prefix.count), as: UTF8.self),
            let key = Key(text)
          else { continue }
          tickets.void(key)
          try near.removeValue(forKey: key)
        }
      }
    }
  }

  /// Ends the threads and closes what is near.
  public func close() async throws(CacheError) {
    feed.close()
    client.close()
    try await near.close()
  }

  // MARK: Reading

  /// The value of a key; `nil` where the engine has none.
  ///
  /// - Throws: `EngineError` where the engine does not answer and there is no near copy that may be given; `CacheError`.
  @inlinable
  public func value(forKey key: Key) async throws -> Value? {
    try await answer(forKey: key)?.value
  }

  /// The value of a key; where the engine has none, it is loaded from the origin: by one caller of one machine. The others
  /// wait, or are given a stale value, as the load policy says.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the engine keeps what is loaded; `nil`: for ever.
  ///   - origin: makes the value.
  /// - Throws: what `origin` throws; `EngineError`; `CacheError`.
  public func value(
    forKey key: Key, lifetime: Duration?, orLoad origin: @escaping Origin
  ) async throws -> Value {
    while true {
      if let answer = try await answer(forKey: key, lifetime: lifetime, orLoad: origin) {
        return answer.value
      }
      // It waited for a load of a caller without an origin.
    }
  }

  /// The values of keys. What is not near is asked for in one write.
  ///
  /// - Throws: as `value(forKey:)`, the first error.
  public func values(forKeys keys: some Sequence<Key>) async throws -> [Key: Value] {
    var values: [Key: Value] = [:]
    var missing: [Key] = []
    for key in keys {
      if !loadsEarly, let copy = try? near.value(forKey: key), freshness.isFresh(copy.session) {
        values[key] = copy.value
      } else {
        missing.append(key)
      }
    }
    if missing.isEmpty { return values }
    return try await withThrowingTaskGroup(of: (Key, Value?).self) { group in
      for key in missing { group.addTask { (key, try await self.value(forKey: key)) } }
      for try await (key, value) in group { values[key] = value }
      return values
    }
  }

  /// The value of a key, and how it came. Otherwise as `value(forKey:lifetime:orLoad:)`.
  // What is inlinable is specialised where it is called, for its types.
  @inlinable
  public func answer(
    forKey key: Key, lifetime: Duration? = nil, orLoad origin: Origin? = nil
  ) async throws -> NearAnswer<Value>? {
    // A copy that cannot be read is as none: the load replaces it.
    let copy = loadsEarly ? nil : try? near.value(forKey: key)
    if let copy, freshness.isFresh(copy.session) {
      return NearAnswer(value: copy.value, source: .near)
    }
    return try await loadedAnswer(forKey: key, lifetime, origin, mayBeSuspect: copy != nil)
  }

  @usableFromInline
  func loadedAnswer(
    forKey key: Key, _ lifetime: Duration?, _ origin: Origin?, mayBeSuspect: Bool
  ) async throws -> NearAnswer<Value>? {
    var failure: EngineError?
    // Without a session nothing would be kept, and the engine may be down: the load policy knows when to try again.
    if asksAtOnce, !loadsEarly, !mayBeSuspect, freshness.current != Freshness.noSession {
      do throws(EngineError) {
        if let value = try await ask(key) { return NearAnswer(value: value, source: .loaded) }
        if origin == nil { return nil }
      } catch {
        // There may be a stale copy, or an origin.
        failure = error
      }
    }
    var mayBeSuspect = mayBeSuspect || loadsEarly
    for _ in 0..<3 {
      if mayBeSuspect { try await markSuspect(key) }
      mayBeSuspect = true
      let loaded = try await near.loaded(forKey: key) { [self, failure] prior in
        try await load(key, lifetime, origin, hasPrior: prior != nil, after: failure)
      }
      guard let loaded else { return nil }
      if loaded.isStale {
        let copy = loaded.value
        if freshness.mayBeStale(copy.session, asked: copy.asked) {
          return NearAnswer(value: copy.value, source: .stale)
        }
        // It may be older than a `catchUp`: without it, the load throws.
        try await near.removeValue(forKey: key)
        continue
      }
      if loaded.age == .zero { return NearAnswer(value: loaded.value.value, source: .loaded) }
      // It was near after all. Its session may have ended by now.
      if freshness.isFresh(loaded.value.session) {
        return NearAnswer(value: loaded.value.value, source: .near)
      }
    }
    // The disk refuses to have it marked. The engine is right whatever the disk does.
    let found = try await EngineKey(client, bytes(of: key)).value()
    guard case .value(let bytes, _) = found else { return nil }
    return NearAnswer(value: try decode(bytes, key), source: .loaded)
  }

  /// Has a near copy whose session has ended expire, at the moment when it was known to be right for the last time. So the
  /// load policy decides what becomes of it.
  private func markSuspect(_ key: Key) async throws {
    guard let entry = try? near.entry(forKey: key), !freshness.isFresh(entry.value.session) else {
      return
    }
    let end = freshness.lastKnownRight(entry.value.session, asked: entry.value.asked)
    _ = try await near.compareAndSet(
      entry.value, forKey: key, expecting: entry.version, options: .lifetime(.until(end)))
  }

  /// Waits until this machine's reads reflect all writes, of any machine, that were acknowledged before the call.
  ///
  /// - Throws: `notFollowing` where no invalidations come. `value(forKey:)` keeps its promise all the same.
  public func catchUp() async throws(EngineError) { try await feed.catchUp() }

  /// Why no invalidations come, so that each read asks the engine; `nil`: they do.
  public var invalidationOutage: String? { feed.outage }

  // MARK: Keys

  func bytes(of key: Key) -> [UInt8] { prefix + Array(key.description.utf8) }

  func decode(_ bytes: [UInt8], _ key: Key) throws(EngineError) -> Value {
    do { return try coder.decode(bytes) } catch {
      throw EngineKey(client, self.bytes(of: key)).error(.undecodable("\(error)"), "GET")
    }
  }

  /// A near copy cannot be removed. None is given any more, until a new session has begun.
  func distrustNear() { feed.restart() }

  private static var keyCoder: KeyCoder<Key> {
    if let coder = KeyCoder<String>.string as? KeyCoder<Key> { return coder }
    if let coder = KeyCoder<Int>.integer as? KeyCoder<Key> { return coder }
    return .custom {
      Array($0.description.utf8)
    } decode: { bytes in
      guard let text = String(copying: bytes), let key = Key(text) else {
        throw CodingFailure("it is no key")
      }
      return key
    }
  }
}
