public import CairnStore

extension MemoryCache {
  /// Changes the value of a key in one call, so that no change is lost that others make at the same time.
  ///
  ///     cache.update(forKey: page) { ($0 ?? 0) + 1 }
  ///
  /// The new value is set only if nobody has written the key since the old one was read; else all of it begins
  /// again. So `change` may be called more than once, and must have no side effects. It is called outside the
  /// lock, and may use the cache.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: what is not given is as the entry has it; the configuration decides for an entry that is not there.
  ///     A lifetime counts from now on. A cost that `costing` gave the old value is the one that it gives the new one.
  ///   - change: makes the new value of the one that is there; of `nil` where there is none. `nil` removes it.
  /// - Returns: the new value and its version; `nil` where there is none now.
  /// - Throws: what `change` throws, unchanged; nothing is set in that case.
  /// - Complexity: as that of a read and of `setValue`, for each round. Of those who write a key at once, one
  ///   gets on with each.
  @inlinable
  @discardableResult
  public func update<Failure: Error>(
    forKey key: Key, options: EntryOptions = .standard,
    _ change: (_ value: Value?) throws(Failure) -> Value?
  ) throws(Failure) -> (value: Value, version: UInt64)? {
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
  ///   - version: the version that the key must have, as `info(forKey:)` and `entry(forKey:)` tell it; `nil`:
  ///     it must be absent or expired.
  ///   - options: as with `setValue`.
  /// - Returns: the new version, or the one that was found instead.
  /// - Complexity: as `setValue`.
  @inlinable
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    options: EntryOptions = .standard
  ) -> CompareAndSetResult {
    compareAndWrite(
      value, forKey: key, expecting: version,
      cost: options.cost ?? defaultCost(of: value, forKey: key), options: options,
      keepsTimes: false)
  }

  /// As `compareAndSet`.
  ///
  /// - Parameter keepsTimes: whether what is not said is as the entry has it.
  @inlinable
  func compareAndWrite(
    _ value: Value, forKey key: Key, expecting version: UInt64?, cost: Int,
    options: EntryOptions, keepsTimes: Bool
  ) -> CompareAndSetResult {
    let hash = MemoryTable<Key, Value>.hash(key)
    var times = clock.times(options.lifetime ?? .standard, idleLimit: options.idleLimit)
    flights.noteWrite(key)
    var removed = RemovedEntries<Key, Value>()
    let (result, isInserted, observers, schedules) = lock.withLock { state in
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
        value, forKey: key, hash: hash, times, cost: cost, version: nil, &removed)
      return (
        .stored(version: state.lastVersion), isInserted, state.observers,
        schedulesMaintenance && state.schedulesTrim()
      )
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return result
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether it was, and is removed.
  /// - Complexity: O(1).
  @inlinable
  public func compareAndRemove(forKey key: Key, expecting version: UInt64) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    flights.noteWrite(key)
    var removed = RemovedEntries<Key, Value>()
    let (isExpected, observers) = lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard state.version(slot, at: now) == version else { return (false, state.observers) }
      state.noteWrite(hash: hash)
      state.remove(slot, .removed, &removed)
      return (true, state.observers)
    }
    deliver(removed, to: observers)
    return isExpected
  }
}

extension MemoryState {
  /// The version of the entry in a slot; `nil` where there is none or it has expired.
  @inlinable
  func version(_ slot: UInt32, at now: Int64) -> UInt64? {
    if slot == noSlot || table.nodes[Int(slot)].hasExpired(at: now) { return nil }
    return table.nodes[Int(slot)].version
  }
}
