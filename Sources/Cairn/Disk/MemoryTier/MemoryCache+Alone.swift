internal import CairnStore

// Entries that the tier below does not have. `DiskCache.setAlone` and its neighbours state the
// rules.
extension MemoryCache {
  /// Sets a value that the tier below does not have.
  ///
  /// - Parameter displace: removes the entry of the tier below, and calls `place` with the newest
  ///   version below, before any later write below. If it does not call `place`, nothing is set.
  /// - Returns: the result of `displace`.
  func place<Result>(
    _ value: Value, forKey key: Key, _ times: EntryTimes, cost: Int, hasTags: Bool,
    _ displace: (_ place: (_ version: UInt64) -> Void) throws(CacheError) -> Result
  ) throws(CacheError) -> Result {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    var isInserted = false
    var schedules = false
    let result: Swift.Result<Result, CacheError>
    do throws(CacheError) {
      result = .success(
        try displace { version in
          (isInserted, schedules) = lock.withLock { state in
            let isInserted = state.place(
              value, forKey: key, hash: hash, times, version: version, cost: cost,
              hasTags: hasTags, &removed)
            return (isInserted, schedulesMaintenance && state.schedulesTrim())
          }
        })
    } catch { result = .failure(error) }
    // No observer runs under the lock of the tier below.
    if schedules { scheduleTrim() }
    let observers = lock.withLock { $0.observers }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return try result.get()
  }

  /// The value of a key, with information about the key, if only this tier has the value. Counts as
  /// an access.
  func entryAlone(forKey key: Key) -> (value: Value, info: CacheEntryInfo)? {
    let now = clock.now()
    return look(key, isRead: false) { state, slot in
      guard state.table.nodes[Int(slot)].isAlone, let value = state.table.value(slot)
      else { return nil }
      let info = state.info(slot)
      state.statistics.hitCount &+= 1
      state.touch(slot, at: now)
      return (value, info)
    }
  }

  /// Information about a key, if only this tier has its value.
  func infoAlone(forKey key: Key) -> CacheEntryInfo? {
    look(key, isRead: false) { state, slot in
      state.table.nodes[Int(slot)].isAlone ? state.info(slot) : nil
    }
  }

  /// The value of a key, fresh or retained, if only this tier has the value.
  func heldAlone(forKey key: Key) -> HeldValue<Value>? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let held = lock.withLock { state -> HeldValue<Value>? in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, state.table.nodes[Int(slot)].isAlone else { return nil }
      var held = state.held(slot, at: now, drops: &expired)
      held?.isAlone = true
      return held
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return held
  }

  /// Removes the value of a key that has no value below.
  ///
  /// - Returns: the value, if a read would have found it and only this tier had it.
  func removeAlone(_ key: Key) -> Value? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var removed = RemovedEntries<Key, Value>()
    let (value, observers) = lock.withLock { state in
      state.noteUnknown(hash: hash)
      let slot = state.table.find(key, hash: hash)
      var value: Value?
      if slot != noSlot {
        let node = state.table.nodes[Int(slot)]
        if node.isAlone, !node.hasExpired(at: now), !state.isDoubtful(slot) {
          value = state.table.value(slot)
        }
        state.remove(slot, .removed, &removed)
      }
      return (value, state.observers)
    }
    deliver(removed, to: observers)
    return value
  }

  /// Extends the lifetime of a value that only this tier has to `expires`, if that is later.
  ///
  /// - Parameter version: the version that the value, fresh or retained, must have. With `nil`, the
  ///   value must be fresh.
  /// - Returns: whether there is such a value.
  func extendAlone(
    _ key: Key, to expires: Int64, version: UInt64? = nil,
    unless isOutdated: () -> Bool = { false }
  ) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    return lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, !isOutdated(), !state.isDoubtful(slot) else { return false }
      let node = state.table.nodes[Int(slot)]
      guard node.isAlone, version.map({ $0 == node.version }) ?? !node.hasExpired(at: now) else {
        return false
      }
      // The deadline in the heap may now be too early.
      if expires > node.expires { state.table.nodes[Int(slot)].expires = expires }
      return true
    }
  }

  /// Drops all entries that only this tier has.
  func dropAlone() {
    _ = removeSlots { $0.isAlone ? .evicted(.trim) : nil }
  }
}

extension MemoryState {
  /// Sets a value that the tier below does not have.
  ///
  /// - Parameter version: the newest version below. If a newer one is known, another store has
  ///   replaced the tier below.
  /// - Returns: whether the value is held.
  mutating func place(
    _ value: consuming Value, forKey key: Key, hash: UInt32, _ times: EntryTimes, version: UInt64,
    cost: Int, hasTags: Bool, _ removed: inout Removed
  ) -> Bool {
    let found = table.find(key, hash: hash)
    guard stripes[stripe(hash)].newest <= version else {
      // The value in the slot is older than the refused one.
      if found != noSlot, table.nodes[Int(found)].version <= version {
        remove(found, .evicted(.trim), &removed)
      }
      return false
    }
    // No write up to this version may enter memory later, even after this value has left memory.
    noteWrite(hash: hash, version: version)
    let isIn = put(
      value, forKey: key, hash: hash, at: found, times, cost: cost, version: version, &removed)
    guard isIn else { return false }
    let slot = Int(table.find(key, hash: hash))
    table.nodes[slot].isAlone = true
    table.nodes[slot].hasTags = hasTags
    return true
  }
}
