public import CairnStore

/// Loading missing values on demand.
extension MemoryCache {
  /// The value of a key. If the key has none, loads and keeps it.
  ///
  ///     let page = try await cache.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// If several callers request a key at once, its value is loaded only once, and all of them get
  /// the value or the error of that load. Errors are not kept: the next caller begins a new load.
  ///
  /// The load runs in its own task, with the priority and the task-local values of the first
  /// caller. If a caller's task is cancelled, its call throws `CancellationError` at once. The load
  /// continues while any caller waits, and is cancelled when none does. If the key is written or
  /// removed during the load, only callers that are already waiting get the loaded value, and the
  /// cache does not keep it. Later callers get the new value.
  ///
  /// `load` runs with no lock held and may use the cache. If it requests its own key, or a key
  /// whose load waits for this one, that call throws `StoreError.circularLoad`, because the load
  /// would wait for itself. Calls in child tasks of the loader count too. But the cache does not
  /// detect a cycle through a `Task` or `Task.detached` that the loader awaits. Such a load never
  /// ends.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: see `setValue`. A lifetime begins at the end of the load.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value.
  /// - Throws: any error of `load`; `CancellationError`; `StoreError.circularLoad` and
  ///   `loadTimedOut`.
  @inlinable
  public func value(
    forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard,
    policy: LoadPolicy? = nil, orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let options = options.with(lifetime)
    if policy == nil && loadPolicy == nil {
      if let value = value(forKey: key) { return value }
      return try await loadValue(forKey: key) {
        Loaded(try await load(), options: options)
      }
    }
    if let value = calmValue(forKey: key, by: policy) { return value }
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
      if let value = value(forKey: key) { return value }
      return try await loadValue(forKey: key, load)
    }
    if let value = calmValue(forKey: key, by: policy) { return value }
    return try await value(forKey: key, by: policy, load)
  }

  /// The values of many keys, in the order of the keys. Loads those that are missing with one call of
  /// a loader.
  ///
  ///     let pages = try await cache.values(forKeys: urls) { missing in
  ///       try await fetch(missing)
  ///     }
  ///
  /// A key that another call is already loading is not loaded again: this call waits for that load.
  /// Other calls wait for this one in the same way. Keys that a loader of `loaded` has reported as
  /// absent are not loaded while that report holds. If the loader returns only some of the keys,
  /// those are kept, and the others have no value, which is not remembered. If a load fails, the
  /// others are kept before the call throws. The call takes no stale values, whatever the
  /// configured policy says. Otherwise like `value(forKey:orLoad:)`.
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
    let found = keys.map { (key: $0, value: value(forKey: $0)) }
    let now = clock.now()
    let missing = found.filter { $0.value == nil && !flights.history.isAbsent($0.key, at: now) }
      .map(\.key)
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

  /// The value of a key, with its age. If the policy does not allow the cached value, calls a
  /// loader that sees the old value. Otherwise like `value(forKey:orLoad:)`.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - policy: how fresh the value must be, and how long to wait. `nil` means the configured
  ///     policy.
  ///   - load: makes the value, or reports that the old one is still valid or that none exists. Its
  ///     argument is the key's value, fresh or stale, or `nil` if the key has none.
  /// - Returns: `nil` if this load, or an earlier one, reported that no value exists.
  /// - Throws: see `value(forKey:orLoad:)`.
  public func loaded(
    forKey key: Key, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable (_ prior: PriorValue<Value>?) async throws -> LoadResult<Value>
  ) async throws -> Loaded<Value>? {
    try await policyLoad(forKey: key, policy, acceptsAbsence: true, load).run()
  }

  /// The value of a key, if a call with the policy would return it without a load. Otherwise counts
  /// and changes nothing.
  @inlinable
  func calmValue(forKey key: Key, by policy: LoadPolicy?) -> Value? {
    guard let share = (policy ?? loadPolicy)?.calmShare else { return nil }
    // The first call with a policy makes the cache retain stale values for it.
    if let policy, flights.lacksRetention(for: policy) { return nil }
    return calmValue(forKey: key, share: share)
  }

  /// The value of a key, if less than `share` of its lifetime has passed. Counts as an access.
  @inlinable
  @inline(__always)
  func calmValue(forKey key: Key, share: Double) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    let query = SharedQuery(hash: hash, at: now, calmShare: share)
    if let value = lock.sharedFind(key, query) { return value }
    return lock.withLock(forReading: true) { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, !state.table.nodes[Int(slot)].hasExpired(at: now),
        state.table.nodes[Int(slot)].isCalm(at: now, share: share)
      else { return nil }
      state.statistics.hitCount &+= 1
      state.touch(slot, at: now)
      return state.table.value(slot)
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
  ) -> PolicyLoad<Key, Value> {
    let policy = policy ?? loadPolicy ?? .standard
    retain(policy)
    return PolicyLoad(
      key: key, policy: policy, acceptsAbsence: acceptsAbsence, flights: flights,
      now: { [self] in clock.now() }, loader: load, store: MemoryLoadStore(cache: self, key: key))
  }

  /// Keeps expired entries for as long as a policy may return them.
  func retain(_ policy: LoadPolicy) {
    guard let retention = flights.retain(policy) else { return }
    lock.withLock { $0.retention = max($0.retention, retention) }
  }

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
    forKey key: Key, _ load: SingleFlight<Key, Loaded<Value>?>.Load
  ) async throws -> Loaded<Value>? {
    while true {
      // A call with a policy may have begun the load and received a stale value.
      let loaded = try await flights.value(forKey: key, load)
      if loaded?.isStale != true { return loaded }
    }
  }

  private func newLoad(
    of key: Key, noteJoined: @escaping @Sendable () -> Void = {},
    _ load: @escaping @Sendable (Flight<Loaded<Value>?>) async throws -> Loaded<Value>?
  ) -> SingleFlight<Key, Loaded<Value>?>.Load {
    SingleFlight<Key, Loaded<Value>?>.Load(
      found: { [self] in peekValue(forKey: key).map { .some(Loaded($0)) } },
      load: { [self] flight in
        guard let loaded = try await load(flight) else { return nil }
        keep(loaded, forKey: key, replacing: nil, flight)
        flights.history.forget(key)
        flights.count { $0.freshCount += 1 }
        return loaded
      }, noteJoined: noteJoined)
  }

  /// Inserts a loaded value, unless its key has been written or removed since the load began, or
  /// has a value of another version.
  func keep(
    _ loaded: Loaded<Value>, forKey key: Key, replacing version: UInt64?,
    _ flight: Flight<Loaded<Value>?>
  ) {
    let cost = loaded.options.cost ?? defaultCost(of: loaded.value, forKey: key)
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(
      loaded.options.lifetime ?? .standard, idleLimit: loaded.options.idleLimit)
    var removed = RemovedEntries<Key, Value>()
    let (isUpToDate, isInserted, observers, schedules) = lock.withLock { state in
      // A write outdates the flight under this lock, so it is either seen here or happens later.
      let found = state.table.find(key, hash: hash)
      let current = state.version(found, at: times.now)
      let isUpToDate = !flight.isOutdated && (current == nil || current == version)
      var isInserted = false
      if isUpToDate {
        isInserted = state.put(
          loaded.value, forKey: key, hash: hash, at: found, times, cost: cost, version: nil,
          &removed)
      }
      return (
        isUpToDate, isInserted, state.observers, schedulesMaintenance && state.schedulesTrim()
      )
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, loaded.value) : nil, to: observers)
    if !isUpToDate { flights.noteOutdated() }
  }
}
