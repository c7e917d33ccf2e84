import Cairn

/// A cache of values that many machines share. Looks in memory, on the local disk, in Redis or
/// Valkey, and at the origin.
///
///     let pages = try await NearCache<String, String>.open(at: "pages.cairn", configuration, coder: .string)
///     let page = try await pages.value(forKey: url, lifetime: .seconds(3600)) { try await fetch(url) }
///     try await pages.setValue(page, forKey: url, lifetime: .seconds(3600))   // all machines see it
///
/// The README lists the promises.
public final class NearCache<Key: Hashable & Sendable & LosslessStringConvertible, Value: Sendable>:
  Sendable
{
  public typealias Origin = @Sendable () async throws -> Value

  /// The near copies. Only read them: changing them breaks the promises.
  public let near: DiskCache<Key, NearCopy<Value>>
  /// The client that calls the engine.
  public let client: EngineClient
  let configuration: NearCacheConfiguration
  let coder: NearCoder<Value>
  @usableFromInline let freshness: Freshness
  let tickets: Tickets<Key>
  private let feed: InvalidationFeed
  /// Whether all reads use the load policy, which may load values early while they are fresh.
  @usableFromInline let loadsEarly: Bool
  /// Whether to ask the engine first, without a load of the near cache.
  private let asksAtOnce: Bool
  private let prefix: [UInt8]

  /// Opens the near copies in a directory, and begins to connect. Does not wait for the engine.
  ///
  /// - Throws: `NearCacheError` if the configuration cannot keep its promise; `StoreError`.
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
    loadsEarly = configuration.loadPolicy.refreshAhead != nil
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

  /// Ends the threads and closes the near copies.
  public func close() async throws(StoreError) {
    feed.close()
    client.close()
    try await near.close()
  }

  // MARK: Reading

  /// The value of a key; `nil` if the engine has none.
  ///
  /// - Throws: `EngineError` if the engine does not answer and no near copy may be returned;
  ///   `StoreError`.
  @inlinable
  public func value(forKey key: Key) async throws -> Value? {
    try await answer(forKey: key)?.value
  }

  /// The value of a key. If the engine has none, one caller on one machine loads it from the
  /// origin. The others wait or get a stale value, depending on the load policy.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the engine keeps a loaded value; `nil` means forever.
  ///   - origin: loads the value.
  /// - Throws: the errors of `origin`; `EngineError`; `StoreError`.
  public func value(
    forKey key: Key, lifetime: Duration?, orLoad origin: @escaping Origin
  ) async throws -> Value {
    while true {
      if let answer = try await answer(forKey: key, lifetime: lifetime, orLoad: origin) {
        return answer.value
      }
      // This call joined a load of a caller without an origin.
    }
  }

  /// The values of keys. Requests for keys without a near copy go out in one write.
  ///
  /// - Throws: the first error, as `value(forKey:)` does.
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

  /// The value of a key, and its source. Otherwise like `value(forKey:lifetime:orLoad:)`.
  // Inlinable, so that callers specialise it for their types.
  @inlinable
  public func answer(
    forKey key: Key, lifetime: Duration? = nil, orLoad origin: Origin? = nil
  ) async throws -> NearAnswer<Value>? {
    // Treat an unreadable copy as missing. The load replaces it.
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
    let earliest = bootTime().adding(-freshness.limit)
    // Without a session, no copy would be kept, and the engine may be down. The load policy decides
    // when to try again.
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
        // The copy may be older than a `catchUp`. Without it, the load throws.
        try await near.removeValue(forKey: key)
        continue
      }
      if loaded.age == .zero {
        // The call may have joined a load that asked too long ago.
        if loaded.value.moment < earliest { continue }
        return NearAnswer(value: loaded.value.value, source: .loaded)
      }
      // There was a near copy after all. Its session may have ended meanwhile.
      if freshness.isFresh(loaded.value.session) {
        return NearAnswer(value: loaded.value.value, source: .near)
      }
    }
    // The copy could not be marked on disk. The engine's value is right in any case.
    let found = try await EngineKey(client, bytes(of: key)).value()
    guard case .value(let bytes, _) = found else { return nil }
    return NearAnswer(value: try decode(bytes, key), source: .loaded)
  }

  /// Makes a near copy of an ended session expire at the moment when it was last known to be right.
  /// Then the load policy decides how to use the copy.
  private func markSuspect(_ key: Key) async throws {
    guard let entry = try? near.entry(forKey: key), !freshness.isFresh(entry.value.session) else {
      return
    }
    let end = freshness.lastKnownRight(entry.value.session, asked: entry.value.asked)
    _ = try await near.compareAndSet(
      entry.value, forKey: key, expecting: entry.version, lifetime: .until(end))
  }

  /// Waits until this machine's reads reflect all writes, from any machine, that were acknowledged
  /// before the call.
  ///
  /// - Throws: `notFollowing` if no invalidations arrive. `value(forKey:)` still keeps its promise.
  public func catchUp() async throws(EngineError) { try await feed.catchUp() }

  /// Why no invalidations arrive, so that each read asks the engine; `nil` if they arrive.
  public var invalidationOutage: String? { feed.outage }

  // MARK: Keys

  func bytes(of key: Key) -> [UInt8] { prefix + Array(key.description.utf8) }

  func decode(_ bytes: [UInt8], _ key: Key) throws(EngineError) -> Value {
    do { return try coder.decode(bytes) } catch {
      throw EngineKey(client, self.bytes(of: key)).error(.undecodable("\(error)"), "GET")
    }
  }

  /// Stops returning near copies until a new session begins. Call if a near copy cannot be removed.
  func distrustNear() { feed.restart() }

  private static var keyCoder: KeyCoder<Key> {
    if let coder = KeyCoder<String>.standard as? KeyCoder<Key> { return coder }
    if let coder = KeyCoder<Int>.standard as? KeyCoder<Key> { return coder }
    return .custom {
      Array($0.description.utf8)
    } decode: { bytes in
      guard let text = String(copying: bytes), let key = Key(text) else {
        throw CodingFailure("it is not a valid key")
      }
      return key
    }
  }
}
