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
  /// `load` runs under no lock and may use the cache. A load that waits for itself, by asking for its
  /// own key or for one whose load waits for it, would never end: `CacheError.circularLoad` is thrown
  /// where it asks, in the task of the load or a child task. A circle through a task made with `Task` or
  /// `Task.detached` that the loader awaits is not seen, and never ends.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: as with `setValue`. A lifetime begins with the end of the load.
  ///   - load: makes the value.
  /// - Throws: what `load` throws; `CancellationError`; `CacheError.circularLoad`.
  @inlinable
  public func value(
    forKey key: Key, options: EntryOptions = .standard,
    orLoad load: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    if let value = value(forKey: key) { return value }
    return try await loadValue(forKey: key) {
      Loaded(try await load(), options: options)
    }
  }

  /// The value of a key; where there is none, it is loaded, and kept as the load says. Otherwise as
  /// `value(forKey:orLoad:)`.
  @inlinable
  public func value(
    forKey key: Key, orLoadEntry load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    if let value = value(forKey: key) { return value }
    return try await loadValue(forKey: key, load)
  }

  @usableFromInline
  func loadValue(
    forKey key: Key, _ load: @escaping @Sendable () async throws -> Loaded<Value>
  ) async throws -> Value {
    try await flights.value(forKey: key) { [self] in
      peekValue(forKey: key)
    } load: { [self] flight in
      let loaded = try await load()
      if !keep(loaded, forKey: key, flight) { flights.noteOutdated() }
      return loaded.value
    }
  }

  /// Puts a value in that was loaded, unless its key was written or removed since the load began, or has
  /// a value.
  ///
  /// - Returns: `false` where not.
  private func keep(_ loaded: Loaded<Value>, forKey key: Key, _ flight: Flight<Value>) -> Bool {
    let cost = loaded.options.cost ?? defaultCost(of: loaded.value, forKey: key)
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(
      loaded.options.lifetime ?? .standard, idleLimit: loaded.options.idleLimit)
    var removed = RemovedEntries<Key, Value>()
    let (isUpToDate, isInserted, observers, schedules) = lock.withLock { state in
      // Who writes notes it before it takes the lock, so that it is seen here or comes after this.
      let found = state.table.find(key, hash: hash)
      let isUpToDate =
        !flight.isOutdated
        && (found == noSlot || state.table.nodes[Int(found)].hasExpired(at: times.now))
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
    return isUpToDate
  }

  /// What was loaded by `value(forKey:orLoad:)`.
  public var loadStatistics: LoadStatistics { flights.statistics }
}
