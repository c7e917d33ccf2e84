internal import CairnStore
internal import Synchronization

/// Loading missing values on demand.
extension DiskCache {
  /// The value of a key. If the key has none, loads and keeps it.
  ///
  ///     let page = try await cache.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// However many callers ask for a key at once, its value is loaded once. The description of
  /// `MemoryCache.value(forKey:orLoad:)` applies here too. If the value on disk cannot be decoded
  /// or has another tag, the call removes it and loads it again, whatever the configured policies
  /// for reads. If the value on disk is damaged, the loaded value replaces it, and the log reports
  /// this. If the load fails, the damaged value stays. If the loaded value cannot be written to
  /// disk, callers still get it. The log says why, and `loads.unkept` of `statistics()` counts such
  /// values.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: see `setValue`. A lifetime begins at the end of the load.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value.
  /// - Throws: any error of `load` or `value(forKey:)`; `CancellationError`;
  ///   `StoreError.circularLoad` and `loadTimedOut`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard,
    policy: LoadPolicy? = nil, orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let options = options.with(lifetime)
    if policy == nil && loadPolicy == nil {
      if let value = try readableValue(forKey: key) { return value }
      return try await loadValue(forKey: key) {
        Loaded(try await load(), options: options)
      }
    }
    if let value = try calmValue(forKey: key, by: policy) { return value }
    return try await value(forKey: key, by: policy) { Loaded(try await load(), options: options) }
  }

  /// The value of a key. If the key has none, loads it and keeps it with the options that the
  /// loader returns. Otherwise like `value(forKey:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, policy: LoadPolicy? = nil,
    orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    if policy == nil && loadPolicy == nil {
      if let value = try readableValue(forKey: key) { return value }
      return try await loadValue(forKey: key, load)
    }
    if let value = try calmValue(forKey: key, by: policy) { return value }
    return try await value(forKey: key, by: policy, load)
  }

  /// The values of many keys, in the order of the keys. Loads those that are missing with one call of
  /// a loader. See `MemoryCache.values(forKeys:orLoad:)`.
  ///
  /// - Parameters:
  ///   - keys: the keys.
  ///   - lifetime: how long the entries live. `nil` means that of the options.
  ///   - options: see `setValue`.
  ///   - load: makes the values of the missing keys.
  /// - Returns: `nil` for each key without a value that the loader did not return.
  /// - Throws: see `value(forKey:orLoad:)`.
  public nonisolated(nonsending) func values(
    forKeys keys: some Collection<Key>, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard,
    orLoad load: @escaping @Sendable (_ missing: [Key]) async throws -> [Key: Value]
  ) async throws -> [Value?] {
    let options = options.with(lifetime)
    let found = try keys.map { (key: $0, value: try readableValue(forKey: $0)) }
    let now = store.clock.now().millisecondsSinceEpoch
    let knowsNoAbsence = flights.history.isEmpty
    let missing = try found.filter {
      try $0.value == nil
        && (knowsNoAbsence || !flights.history.isAbsent(bytes(of: $0.key), at: now))
    }.map(\.key)
    if missing.isEmpty { return found.map(\.value) }
    let loaded = try await BulkLoad.values(of: missing, load) { [self] key, bulk in
      var load = newLoad(of: key, noteJoined: { bulk.decide(key) }) { flight in
        try await bulk.value(of: key, for: flight.node).map { Loaded($0, options: options) }
      }
      load.timeLimit = loadPolicy?.timeLimit
      return try await freshValue(forKey: key, load)?.value
    }
    return found.map { $0.value ?? loaded[$0.key] }
  }

  /// The value of a key with its age. If the policy does not allow the cached value, calls a loader
  /// that sees the old value. Otherwise like `value(forKey:orLoad:)`.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value, or reports that the old one is still valid or that none exists. Its
  ///     argument is the key's value, fresh or stale, or `nil` if the key has none.
  /// - Returns: `nil` if the loader reports, or has reported, that no value exists.
  /// - Throws: see `value(forKey:orLoad:)`.
  public func loaded(
    forKey key: Key, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>? {
    try await policyLoad(forKey: key, policy, acceptsAbsence: true, load).run()
  }

  package var loadCounts: LoadCounts { flights.counts }

  /// The value of a key, if memory has it, and a call with the policy returns it and loads nothing.
  /// Otherwise counts nothing.
  @inlinable
  func calmValue(forKey key: Key, by policy: LoadPolicy?) throws(StoreError) -> Value? {
    guard held != nil, let share = (policy ?? loadPolicy)?.calmShare else { return nil }
    // The first call with a policy retains stale values for it.
    if let policy, flights.lacksRetention(for: policy) { return nil }
    let key = try tierKey(key)
    // Without a value, the call goes on, counts itself, and replaces a damaged value.
    do throws(StoreError) {
      return try currentValue(ofKey: key, countsMiss: false) { held, _ in
        held.calmValue(forKey: key, share: share)
      }
    } catch {
      if case .corrupt = error { return nil }
      throw error
    }
  }

  @usableFromInline
  func value(
    forKey key: Key, by policy: LoadPolicy?,
    _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let loaded = try await policyLoad(forKey: key, policy, acceptsAbsence: false) { _ in
      LoadResult(kind: .loaded(try await load()))
    }.run()
    guard let loaded else { preconditionFailure("this load may not report absence") }
    return loaded.value
  }

  private func policyLoad(
    forKey key: Key, _ policy: LoadPolicy?, acceptsAbsence: Bool,
    _ load: @escaping @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value>
  ) throws(StoreError) -> PolicyLoad<[UInt8], Value> {
    let policy = policy ?? loadPolicy ?? .standard
    retain(policy)
    let bytes = try bytes(of: key)
    return PolicyLoad(
      key: bytes, policy: policy, acceptsAbsence: acceptsAbsence, flights: flights,
      now: { [self] in store.clock.now().millisecondsSinceEpoch }, loader: load,
      store: DiskLoadStore(cache: self, key: key))
  }

  /// Keeps expired entries for as long as a policy may return them.
  func retain(_ policy: LoadPolicy) {
    guard let retention = flights.retain(policy) else { return }
    store.retainExpired(for: retention)
  }

  /// The value of a key. Removes an undecodable value and returns `nil`. Also returns `nil` for a
  /// damaged value.
  @inlinable
  func readableValue(forKey key: Key) throws(StoreError) -> Value? {
    do throws(StoreError) { return try value(forKey: key) } catch {
      return try orDropped(key) { () throws(StoreError) in throw error }
    }
  }

  /// Waits for a value that is being loaded.
  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let load = newLoad(of: key) { _ in try await load() }
    while true {
      // A call with a policy may have begun the load and received no value.
      if let loaded = try await freshValue(forKey: key, load) { return loaded.value }
    }
  }

  private func freshValue(
    forKey key: Key, _ load: SingleFlight<[UInt8], Loaded<Value>?>.Load
  ) async throws -> Loaded<Value>? {
    let bytes = try bytes(of: key)
    while true {
      // A call with a policy may have begun the load and received a stale value.
      let loaded = try await flights.value(forKey: bytes, load)
      if loaded?.isStale != true { return loaded }
    }
  }

  private func newLoad(
    of key: Key, noteJoined: @escaping @Sendable () -> Void = {},
    _ load: @escaping @Sendable (Flight<Loaded<Value>?>) async throws -> Loaded<Value>?
  ) -> SingleFlight<[UInt8], Loaded<Value>?>.Load {
    let damage = Lock<StoreError?>(nil)
    return SingleFlight<[UInt8], Loaded<Value>?>.Load(
      found: { [self] in
        // Check again, because it may have arrived in the meantime.
        try orDropped(key, counts: false) { error in
          damage.withLock { $0 = error }
        } _: { () throws(StoreError) in
          try uncountedValue(forKey: key)
        }.map { .some(Loaded($0)) }
      },
      load: { [self] flight in
        let start = store.lastVersion
        guard let loaded = try await load(flight) else { return nil }
        await keep(
          loaded, forKey: key, replacing: nil, since: start, damage.withLock { $0 }, flight)
        if !flights.history.isEmpty { flights.history.forget(try bytes(of: key)) }
        flights.count { $0.freshCount += 1 }
        return loaded
      }, noteJoined: noteJoined)
  }

  /// Call before a key is written or removed.
  ///
  /// - Returns: whether it is being loaded.
  /// - Throws: `invalidKey`.
  @discardableResult
  func noteWrite(_ key: RawSpan) throws(StoreError) -> Bool {
    try checkKey(key)
    return flights.isNoting && flights.noteWrite([UInt8](copying: key))
  }

  /// Call once a value is written, before observers are told: a load may have begun since
  /// `noteWrite`.
  @inline(__always)
  func noteWritten(_ key: RawSpan) {
    if flights.isNoting { _ = flights.noteWrite([UInt8](copying: key)) }
  }
}
