public import CairnStore

extension MemoryCache {
  /// Changes the value of a key, without losing concurrent changes.
  ///
  ///     cache.update(forKey: page) { ($0 ?? 0) + 1 }
  ///
  /// The call reads the value, calls `change`, and sets the result unless another caller has
  /// written the key in the meantime. In that case it starts over, so `change` may run more than
  /// once and must have no side effects. `change` runs outside the lock and may use the cache, but
  /// must not write this key: the call would never end.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: if an option is `nil`, an existing entry keeps its value for the option, and a
  ///     new entry gets the configured value. A lifetime counts from now. If the cache computed the
  ///     old value's cost, it also computes the new value's.
  ///   - change: makes the new value from the current value, or from `nil` if the key has none.
  ///     Returning `nil` removes the value.
  /// - Returns: the new value and its version, or `nil` if the key now has no value.
  /// - Throws: any error of `change`, unchanged; nothing is then set.
  /// - Complexity: a read and a `setValue` for each attempt. If several callers change a key at
  ///   once, one of them always succeeds.
  @inlinable
  @discardableResult
  public func update<Failure: Error>(
    forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard,
    _ change: (_ value: Value?) throws(Failure) -> Value?
  ) throws(Failure) -> (value: Value, version: UInt64)? {
    let options = options.with(lifetime)
    while true {
      let entry = entry(forKey: key)
      guard let value = try change(entry?.value) else {
        guard let version = entry?.info.version else { return nil }
        if compareAndRemove(forKey: key, expecting: version) { return nil }
        continue
      }
      var newCost = options.cost ?? defaultCost(of: value, forKey: key)
      if options.cost == nil, let entry,
        entry.info.cost != max(0, defaultCost(of: entry.value, forKey: key))
      {
        newCost = entry.info.cost
      }
      let result = compareAndWrite(
        value, forKey: key, expecting: entry?.info.version, cost: newCost, options: options,
        keepsTimes: true)
      if case .stored(let version) = result { return (value, version) }
    }
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - version: the version that the key must have, as returned by `info(forKey:)` and
  ///     `entry(forKey:)`, or `nil` if the key must be absent or expired.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: see `setValue`.
  /// - Returns: the new version or, on a mismatch, the current one.
  /// - Complexity: the same as `setValue`.
  @inlinable
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) -> CompareAndSetResult {
    compareAndWrite(
      value, forKey: key, expecting: version,
      cost: options.cost ?? defaultCost(of: value, forKey: key), options: options.with(lifetime),
      keepsTimes: false)
  }

  /// Like `compareAndSet`.
  ///
  /// - Parameter keepsTimes: whether an existing entry keeps its value for each option that is
  ///   `nil`.
  @inlinable
  func compareAndWrite(
    _ value: Value, forKey key: Key, expecting version: UInt64?, cost: Int,
    options: EntryOptions, keepsTimes: Bool
  ) -> CompareAndSetResult {
    let hash = MemoryTable<Key, Value>.hash(key)
    var times = clock.times(options.lifetime ?? .standard, idleLimit: options.idleLimit)
    var outdated: SingleFlight<Key, Loaded<Value>?>.Outdated?
    var removed = RemovedEntries<Key, Value>()
    let (result, isInserted, observers, schedules) = lock.withLock { state in
      outdated = flights.outdate(key)
      let slot = state.table.find(key, hash: hash)
      let current = state.version(slot, at: times.now)
      guard current == version else {
        return (CompareAndSetResult.mismatch(current: current), false, state.observers, false)
      }
      if version != nil && keepsTimes {
        if options.lifetime == nil { times.expires = state.table.nodes[Int(slot)].expires }
        if options.idleLimit == nil { times.idleLimit = state.table.nodes[Int(slot)].idleLimit }
      }
      let isInserted = state.put(
        value, forKey: key, hash: hash, at: slot, times, cost: cost, version: nil, &removed)
      return (
        .stored(version: state.lastVersion), isInserted, state.observers,
        schedulesMaintenance && state.schedulesTrim()
      )
    }
    if let outdated { flights.finish(outdated, key) }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return result
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether the version matched and the value was removed.
  /// - Complexity: O(1).
  @inlinable
  public func compareAndRemove(forKey key: Key, expecting version: UInt64) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var outdated: SingleFlight<Key, Loaded<Value>?>.Outdated?
    var removed = RemovedEntries<Key, Value>()
    let (isExpected, observers) = lock.withLock { state in
      outdated = flights.outdate(key)
      let slot = state.table.find(key, hash: hash)
      guard state.version(slot, at: now) == version else { return (false, state.observers) }
      state.remove(slot, .removed, &removed)
      return (true, state.observers)
    }
    if let outdated { flights.finish(outdated, key) }
    deliver(removed, to: observers)
    return isExpected
  }
}

extension MemoryState {
  /// The version of the entry in a slot, or `nil` if the slot has no unexpired entry.
  @inlinable
  func version(_ slot: UInt32, at now: Int64) -> UInt64? {
    if slot == noSlot || table.nodes[Int(slot)].hasExpired(at: now) { return nil }
    return table.nodes[Int(slot)].version
  }
}
