public import CairnStore

/// Values that are made when they are asked for and not there.
extension MemoryCache: Loading {
  /// The value of a key; where there is none, it is loaded, and kept.
  ///
  ///     let page = try await cache.value(forKey: url, lifetime: .seconds(60)) {
  ///       try await fetch(url)
  ///     }
  ///
  /// However many ask for a key at the same time, it is loaded once, and all get that value or the error
  /// of the load. Errors are not kept: who asks next has it loaded anew.
  ///
  /// The load runs in a task of its own with the priority and the task-local values of who came first.
  /// Who is cancelled leaves at once and gets `CancellationError`; the load goes on while anybody waits,
  /// and is cancelled when nobody does. A load whose key is written or removed meanwhile gives its value to
  /// those who wait for it, and to nobody else: it is not kept, and who asks after that gets the new one.
  ///
  /// `load` runs with no lock held and may use the cache. A load that waits for itself, by asking for its
  /// own key or for one whose load waits for it, would never end: `CacheError.circularLoad` is thrown
  /// where it asks, in the task of the load or a child task. A circle through a task made with `Task` or
  /// `Task.detached` that the loader awaits is not seen, and never ends.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - policy: how fresh the value is, and how long it is waited for; `nil`: as the configuration says.
  ///   - load: makes the value.
  /// - Throws: what `load` throws; `CancellationError`; `CacheError.circularLoad` and `loadTimedOut`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard, policy: LoadPolicy? = nil,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if policy == nil && loadPolicy == nil {
      if let value = value(forKey: key) { return value }
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
      if let value = value(forKey: key) { return value }
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
  ) -> PolicyLoad<Key, Value> {
    let policy = policy ?? loadPolicy ?? .standard
    retain(policy)
    return PolicyLoad(
      key: key, policy: policy, acceptsAbsence: acceptsAbsence, flights: flights,
      now: { [self] in clock.now() }, loader: load, store: MemoryLoadStore(cache: self, key: key))
  }

  /// Has what expires stay for as long as a policy may give it.
  func retain(_ policy: LoadPolicy) {
    guard let retention = flights.retain(policy) else { return }
    lock.withLock { $0.retention = max($0.retention, retention) }
  }

  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    let load = SingleFlight<Key, Loaded<Value>?>.Load { [self] in
      peekValue(forKey: key).map { .some(Loaded($0)) }
    } load: { [self] flight in
      let loaded = try await load()
      keep(loaded, forKey: key, replacing: nil, flight)
      flights.count { $0.freshCount += 1 }
      return loaded
    }
    while true {
      // A call with a policy may have begun it, and been given a stale value, or none.
      if let loaded = try await flights.value(forKey: key, load), !loaded.isStale {
        return loaded.value
      }
    }
  }

  /// Puts a value in that was loaded, unless its key was written or removed since the load began, or has
  /// another value than that of a version.
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
      // Who writes notes it before it takes the lock, so that it is seen here or comes after this.
      let found = state.table.find(key, hash: hash)
      let current = state.version(found, at: times.now)
      let isUpToDate = !flight.isOutdated && (current == nil || current == version)
      var isInserted = false
      if isUpToDate {
        isInserted = state.put(
          loaded.value, forKey: key, hash: hash, times, cost: cost, version: nil, &removed)
      }
      return (
        isUpToDate, isInserted, state.observers, schedulesMaintenance && state.schedulesTrim()
      )
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, loaded.value) : nil, to: observers)
    if !isUpToDate { flights.noteOutdated() }
  }

  /// What was loaded by `value(forKey:orLoad:)`.
  public var loadStatistics: LoadStatistics { flights.statistics }
}
