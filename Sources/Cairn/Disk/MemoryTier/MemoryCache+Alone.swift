internal import CairnStore

// Entries that the tier below does not have. `DiskCache.placeAlone` states the rules.
extension MemoryCache {
  /// The number of slots checked in one hold of the lock.
  private static var aloneGroupCount: Int { 4096 }

  /// Sets a value that is not below, unless its key may have been written or removed since the ticket
  /// was taken.
  ///
  /// - Parameters:
  ///   - ticket: taken before the tier below was asked.
  ///   - version: the newest version below when it was asked, so that every later write is newer.
  ///   - hasTags: whether the removal of a tag may hide it.
  /// - Returns: whether the ticket was valid. If not, nothing was done.
  func place(
    _ value: Value, forKey key: Key, ticket: CacheTicket, version: UInt64, _ times: EntryTimes,
    cost: Int, hasTags: Bool
  ) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    let (isValid, isInserted, observers, schedules) = lock.withLock { state in
      guard state.ticket(hash: hash) == ticket else {
        return (false, false, state.observers, false)
      }
      let isInserted = state.put(
        value, forKey: key, hash: hash, times, cost: cost, version: version, &removed)
      if isInserted {
        let slot = state.table.find(key, hash: hash)
        state.table.nodes[Int(slot)].isAlone = true
        state.table.nodes[Int(slot)].hasTags = hasTags
      }
      return (
        true, isInserted, state.observers, schedulesMaintenance && state.schedulesTrim()
      )
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
    return isValid
  }

  /// The value of a key with information about it, if only this tier has it. Counts as an access.
  func entryAlone(forKey key: Key) -> (value: Value, info: CacheEntryInfo)? {
    let now = clock.now()
    return look(key, isRead: false) { state, slot in
      guard state.table.nodes[Int(slot)].isAlone, let payload = state.table.payloads[Int(slot)]
      else { return nil }
      let info = state.info(slot)
      state.statistics.hitCount &+= 1
      state.touch(slot, at: now)
      return (payload.value, info)
    }
  }

  /// Information about a key, if only this tier has it.
  func infoAlone(forKey key: Key) -> CacheEntryInfo? {
    look(key, isRead: false) { state, slot in
      state.table.nodes[Int(slot)].isAlone ? state.info(slot) : nil
    }
  }

  /// The value of a key, fresh or retained, if only this tier has it.
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

  /// Removes the value of a key that has none below.
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
          value = state.table.payloads[Int(slot)]?.value
        }
        state.remove(slot, .removed, &removed)
      }
      return (value, state.observers)
    }
    deliver(removed, to: observers)
    return value
  }

  /// Extends the life of a value that only this tier has to `expires`, if that is later.
  ///
  /// - Parameter version: the version it must have, fresh or retained; `nil`: it must be fresh.
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
      // The heap may have a deadline that is too early.
      if expires > node.expires { state.table.nodes[Int(slot)].expires = expires }
      return true
    }
  }

  /// Drops all entries that only this tier has.
  func dropAlone() {
    var next = 0
    var isDone = false
    while !isDone {
      var removed = RemovedEntries<Key, Value>()
      let observers = lock.withLock { state in
        let end = min(next + Self.aloneGroupCount, state.table.nodes.count)
        for slot in next..<max(next, end)
        where state.table.payloads[slot] != nil && state.table.nodes[slot].isAlone {
          state.remove(UInt32(slot), .evicted(.trim), &removed)
        }
        next += Self.aloneGroupCount
        isDone = next >= state.table.nodes.count
        return state.observers
      }
      deliver(removed, to: observers)
    }
  }
}
