public import CairnStore

extension MemoryCache {
  /// Sets the value of a key, and evicts entries if the cache exceeds its limits.
  ///
  /// When the call returns, the cache is within its limits, and no read finds an older value. A
  /// value is not kept if it expires at once or alone costs more than the cost limit. Observers
  /// then receive its insertion and its removal.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: the cost, in the unit of the cost limit (by default, the cache computes it), the
  ///     lifetime and the idle limit.
  /// - Returns: the entry's version.
  /// - Complexity: amortised O(1), or O(log n) if this entry is one of n that can expire.
  @inlinable
  @inline(__always)
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) -> UInt64 {
    // Take the options apart here, so that the compiler need not create options that it knows.
    write(
      value, forKey: key, cost: options.cost, lifetime ?? options.lifetime ?? .standard,
      idleLimit: options.idleLimit)
  }

  /// Sets the value of a key.
  ///
  /// - Returns: the entry's version.
  @inlinable
  func write(
    _ value: Value, forKey key: Key, cost: Int?, _ lifetime: Lifetime, idleLimit: Duration?
  ) -> UInt64 {
    let cost = cost ?? defaultCost(of: value, forKey: key)
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(lifetime, idleLimit: idleLimit)
    var outdated: SingleFlight<Key, Loaded<Value>?>.Outdated?
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, version, observers, schedules) = lock.withLock { state in
      outdated = flights.outdate(key)
      let found = state.table.findToWrite(key, hash: hash)
      let isInserted = state.put(
        value, forKey: key, hash: hash, at: found, times, cost: cost, version: nil, &removed)
      return (
        isInserted, state.lastVersion, state.observers,
        schedulesMaintenance && state.schedulesTrim()
      )
    }
    if let outdated { flights.finish(outdated, key) }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return version
  }

  /// Sets the values of many keys, each as a separate write. If a key occurs twice, its last value
  /// counts.
  @inlinable
  public func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard
  ) {
    for (key, value) in pairs {
      setValue(value, forKey: key, lifetime: lifetime, options: options)
    }
  }

  /// Removes the value of a key.
  ///
  /// - Returns: whether the key had a value.
  /// - Complexity: O(1).
  @inlinable
  @discardableResult
  public func removeValue(forKey key: Key) -> Bool { takeValue(forKey: key) != nil }

  /// Removes the value of a key and returns it. If several callers take a value at once, only one
  /// gets it.
  ///
  /// - Returns: the value, or `nil` if the key had no unexpired value.
  /// - Complexity: O(1).
  @inlinable
  public func takeValue(forKey key: Key) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var outdated: SingleFlight<Key, Loaded<Value>?>.Outdated?
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      outdated = flights.outdate(key)
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot {
        let hasExpired = state.table.nodes[Int(slot)].hasExpired(at: now)
        state.remove(slot, hasExpired ? .expired : .removed, &removed)
      }
      return state.observers
    }
    if let outdated { flights.finish(outdated, key) }
    let value = removed.first?.cause == .removed ? removed.first?.value : nil
    deliver(removed, to: observers)
    return value
  }

  /// Removes every entry. Observers receive a single event.
  ///
  /// - Complexity: O(1), whatever the number of entries. The values are destroyed afterwards, where
  ///   the configured `release` specifies.
  public func removeAll() {
    flights.noteRemovalOfAll()
    removeAll(cause: .removed)
  }

  /// - Parameter isToldOfNothing: whether to call observers even if the cache was empty.
  func removeAll(cause: RemovalCause, isToldOfNothing: Bool = true) {
    var garbage = MemoryTable<Key, Value>()
    let observers = lock.withLock { state in
      state.statistics.note(cause, count: state.table.count)
      swap(&garbage, &state.table)
      return state.observers
    }
    // A load may have begun since.
    if cause == .removed { flights.noteRemovalOfAll() }
    if garbage.count > 0 || isToldOfNothing {
      for observer in observers { observer.body(.removedAll(count: garbage.count), nil) }
    }
    release(garbage)
  }

  /// Makes a value's lifetime longer or shorter. The call does not change the idle limit, and does
  /// not count as an access. What a load of the key brings that began before is then not kept.
  ///
  /// - Parameters:
  ///   - lifetime: counted from now.
  ///   - key: the key.
  /// - Returns: whether the key had a value.
  /// - Complexity: O(log n) for n entries that can expire.
  @discardableResult
  public func setLifetime(_ lifetime: Lifetime, forKey key: Key) -> Bool {
    let expires = clock.explicitTimes(lifetime, idleLimit: nil).expires
    var outdated: SingleFlight<Key, Loaded<Value>?>.Outdated?
    let schedules = look(key, isRead: false) { state, slot in
      // A load that began earlier must not make the lifetime longer again.
      outdated = flights.outdate(key)
      state.table.nodes[Int(slot)].expires = expires
      state.table.deadlines.update(slot, &state.table.nodes)
      return schedulesMaintenance && state.schedulesTrim()
    }
    if let outdated { flights.finish(outdated, key) }
    if schedules == true { scheduleTrim() }
    return schedules != nil
  }

  /// The value of a key. Setting `nil` removes the value.
  @inlinable
  public subscript(key: Key) -> Value? {
    get { value(forKey: key) }
    set {
      if let newValue { setValue(newValue, forKey: key) } else { removeValue(forKey: key) }
    }
  }
}

extension MemoryState {
  /// Whether to schedule the removal of expired entries. If so, records that it is scheduled.
  @inlinable
  mutating func schedulesTrim() -> Bool {
    if trimScheduler?.isForeign == false || table.deadlines.count == 0 { return false }
    trimScheduler = ProcessMark()
    return true
  }
}
