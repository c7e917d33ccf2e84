internal import CairnStore
internal import Synchronization

/// Values that are made when they are asked for and not there.
extension DiskCache: Loading {
  /// The value of a key; where there is none, it is loaded, and kept.
  ///
  ///     let page = try await cache.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// However many ask for a key at the same time, it is loaded once; all that is said of
  /// `MemoryCache.value(forKey:orLoad:)` holds here. A value that another version of the program has written,
  /// and this one cannot decode or knows by another tag, is removed and loaded anew, whatever the policies
  /// of the configuration say of a read. One that is damaged on disk is replaced by what was loaded, and the log tells of
  /// it; where the load fails it stays. A value that cannot be written to disk is handed out
  /// all the same; the log tells why, and `loadStatistics` counts it.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value.
  /// - Throws: what `load` throws; what `value(forKey:)` throws; `CancellationError`;
  ///   `CacheError.circularLoad` and `loadTimedOut`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if policy == nil && loadPolicy == nil {
      if let value = try readableValue(forKey: key) { return value }
      return try await loadValue(forKey: key) {
        Loaded(try await load(), options: options)
      }
    }
    return try await value(forKey: key, by: policy) { Loaded(try await load(), options: options) }
  }

  /// The value of a key; where there is none, it is loaded, and kept as the load says. Otherwise as
  /// `value(forKey:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, policy: LoadPolicy? = nil,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    if policy == nil && loadPolicy == nil {
      if let value = try readableValue(forKey: key) { return value }
      return try await loadValue(forKey: key, load)
    }
    return try await value(forKey: key, by: policy, load)
  }

  /// The value of a key with its age; where there is none that the policy allows, it is loaded by a loader that sees the
  /// old one. Otherwise as `value(forKey:orLoad:)`.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value, or says that the old one is still right, or that there is none. It is given the value that
  ///     the key has, fresh or stale; `nil` where it has none.
  /// - Returns: `nil` where the loader says that there is none, or has said so.
  /// - Throws: as `value(forKey:orLoad:)`.
  public func loaded(
    forKey key: Key, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>? {
    try await policyLoad(forKey: key, policy, acceptsAbsence: true, load).run()
  }

  /// What was loaded by `value(forKey:orLoad:)`.
  public var loadStatistics: LoadStatistics { flights.statistics }

  @usableFromInline
  func value(
    forKey key: Key, by policy: LoadPolicy?,
    _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let loaded = try await policyLoad(forKey: key, policy, acceptsAbsence: false) { _ in
      LoadResult(kind: .loaded(try await load()))
    }.run()
    guard let loaded else { preconditionFailure("absence is no answer here") }
    return loaded.value
  }

  private func policyLoad(
    forKey key: Key, _ policy: LoadPolicy?, acceptsAbsence: Bool,
    _ load: @escaping @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value>
  ) throws(CacheError) -> PolicyLoad<[UInt8], Value> {
    let policy = policy ?? loadPolicy ?? .standard
    retain(policy)
    let bytes = try bytes(of: key)
    return PolicyLoad(
      key: bytes, policy: policy, acceptsAbsence: acceptsAbsence, flights: flights,
      now: { [self] in store.clock.now().millisecondsSinceEpoch }, loader: load,
      store: DiskLoadStore(cache: self, key: key, bytes: bytes))
  }

  /// Has what expires stay for as long as a policy may give it.
  func retain(_ policy: LoadPolicy) {
    guard let retention = flights.retain(policy) else { return }
    store.retainExpired(for: retention)
    held?.retain(policy)
  }

  /// The value of a key; what cannot be made sense of is removed, and what is damaged is none.
  @inlinable
  func readableValue(forKey key: Key) throws(CacheError) -> Value? {
    do throws(CacheError) { return try value(forKey: key) } catch {
      return try orDropped(key) { () throws(CacheError) in throw error }
    }
  }

  /// Waits for a value that is loaded.
  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let damage = Lock<CacheError?>(nil)
    let load = SingleFlight<[UInt8], Loaded<Value>?>.Load { [self] in
      // Once more, since it may have come meanwhile.
      try orDropped(key, counts: false) { error in
        damage.withLock { $0 = error }
      } _: { () throws(CacheError) in
        try uncountedValue(forKey: key)
      }.map { .some(Loaded($0)) }
    } load: { [self] flight in
      let start = store.lastVersion
      let loaded = try await load()
      await keep(
        loaded, forKey: key, replacing: nil, since: start, damage.withLock { $0 }, flight)
      flights.count { $0.freshCount += 1 }
      return loaded
    }
    let bytes = try bytes(of: key)
    while true {
      // A call with a policy may have begun it, and been given a stale value, or none.
      if let loaded = try await flights.value(forKey: bytes, load), !loaded.isStale {
        return loaded.value
      }
    }
  }

  /// For tests: how often somebody was suspended for a load, and how many tasks of loads there are.
  package var loadActivity: (waitCount: UInt64, taskCount: Int) {
    (flights.waitCount.value, flights.taskCount.load(ordering: .relaxed))
  }

  /// To be called before a key is written or removed.
  ///
  /// - Returns: whether it is being loaded.
  /// - Throws: `reservedKey`.
  @discardableResult
  func noteWrite(_ key: RawSpan) throws(CacheError) -> Bool {
    try checkKey(key)
    return flights.isNoting && flights.noteWrite([UInt8](copying: key))
  }
}
