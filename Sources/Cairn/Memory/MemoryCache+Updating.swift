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
  ///   - cost: as with `setValue`; `nil`: the one that the entry was given. One that had what `costing` says of
  ///     the old value has what it says of the new one.
  ///   - lifetime: how long the entry lives from now on; `nil`: until the end that it has. One that is not
  ///     there gets what the configuration says.
  ///   - idleLimit: as with `setValue`; `nil`: the one that the entry has. One that is not there gets what the
  ///     configuration says.
  ///   - change: makes the new value of the one that is there; of `nil` where there is none. `nil` removes it.
  /// - Returns: the new value; `nil` where there is none now.
  /// - Throws: what `change` throws, unchanged: nothing was set then.
  /// - Complexity: as that of a read and of `setValue`, for each round. Of those who write a key at once, one
  ///   gets on with each.
  @inlinable
  @discardableResult
  public func update<Failure: Error>(
    forKey key: Key, cost: Int? = nil, lifetime: Lifetime? = nil, idleLimit: Duration? = nil,
    _ change: (_ value: Value?) throws(Failure) -> Value?
  ) throws(Failure) -> Value? {
    while true {
      let entry = entry(forKey: key)
      guard let value = try change(entry?.value) else {
        guard let version = entry?.info.version else { return nil }
        if removeValue(forKey: key, expecting: version) { return nil }
        continue
      }
      var newCost = cost ?? defaultCost(of: value, forKey: key)
      if cost == nil, let entry,
        entry.info.cost != max(0, defaultCost(of: entry.value, forKey: key))
      {
        newCost = entry.info.cost
      }
      let isSet = replaceValue(
        value, forKey: key, expecting: entry?.info.version, cost: newCost, lifetime: lifetime,
        idleLimit: idleLimit)
      if isSet { return value }
    }
  }

  /// Sets the value of a key if it has the version still, or none where that is `nil`. What is not said is
  /// as the entry has it.
  ///
  /// - Returns: whether it was so.
  @inlinable
  func replaceValue(
    _ value: Value, forKey key: Key, expecting version: UInt64?, cost: Int, lifetime: Lifetime?,
    idleLimit: Duration?
  ) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    var times = clock.times(lifetime ?? .standard, idleLimit: idleLimit)
    flights.noteWrite(key)
    var removed = RemovedEntries<Key, Value>()
    let (isExpected, isInserted, observers, schedules) = lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard state.version(slot, at: times.now) == version else {
        return (false, false, state.observers, false)
      }
      if version != nil {
        if lifetime == nil { times.expires = state.table.nodes[Int(slot)].expires }
        if idleLimit == nil { times.idleLimit = state.table.nodes[Int(slot)].idleLimit }
      }
      let isInserted = state.put(
        value, forKey: key, hash: hash, times, cost: cost, version: nil, &removed)
      return (
        true, isInserted, state.observers, schedulesTrims && state.schedulesTrim()
      )
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return isExpected
  }

  /// Removes the value of a key if it has the version still.
  ///
  /// - Returns: whether it was so.
  @inlinable
  func removeValue(forKey key: Key, expecting version: UInt64) -> Bool {
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
