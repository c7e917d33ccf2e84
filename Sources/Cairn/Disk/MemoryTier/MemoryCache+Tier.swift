public import CairnStore

// What the memory tier of a cache on disk needs beyond a cache in memory. The disk decides what is
// current, so nothing has to arrive here in order.
extension MemoryCache {
  /// Keeps a value with a version of the tier below, unless the key has that version or a later one.
  @inlinable
  func keep(
    _ value: Value, forKey key: Key, version: UInt64, _ times: EntryTimes, cost: Int
  ) {
    let hash = MemoryTable<Key, Value>.hash(key)
    var removed = RemovedEntries<Key, Value>()
    let (isInserted, observers, schedules) = lock.withLock { state in
      let found = state.table.findToWrite(key, hash: hash)
      if found != noSlot, state.table.nodes[Int(found)].version >= version,
        !state.table.nodes[Int(found)].hasExpired(at: times.now)
      {
        // It was read on disk.
        if state.table.nodes[Int(found)].version == version { state.touch(found, at: times.now) }
        return (false, state.observers, false)
      }
      let isInserted = state.put(
        value, forKey: key, hash: hash, at: found, times, cost: cost, version: version, &removed)
      return (isInserted, state.observers, schedulesMaintenance && state.schedulesTrim())
    }
    if schedules { scheduleTrim() }
    deliver(removed, inserted: isInserted ? (key, value) : nil, to: observers)
  }

  /// Drops the value with this hash that `isSought` accepts.
  ///
  /// - Parameter version: newer values stay.
  func drop(
    hash: UInt32, through version: UInt64, _ cause: RemovalCause, where isSought: (Key) -> Bool
  ) {
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      let slot = state.table.find(hash: hash, where: isSought)
      if slot != noSlot, state.table.nodes[Int(slot)].version <= version {
        state.remove(slot, cause, &removed)
      }
      return state.observers
    }
    deliver(removed, to: observers)
  }

  /// Takes back a hit: the caller cannot use the value that it found.
  ///
  /// - Parameter isMiss: whether the read counts as a miss instead.
  @usableFromInline
  func takeBackHit(isMiss: Bool) {
    lock.withLock { state in
      state.takenBackCount &+= 1
      if isMiss { state.statistics.missCount &+= 1 }
    }
  }

  /// Compares a value that was found here with what the tier below has. Notes the place of its
  /// record, or drops the value.
  ///
  /// - Parameters:
  ///   - place: the place that was found with the value.
  ///   - current: what the tier below has for the key.
  /// - Returns: whether the value is current.
  @inlinable
  func settle<Own>(
    _ key: Key, _ place: TierPlace, _ current: (info: EntryInfo, place: RecordPlace)?
  ) -> Bool where Value == TierValue<Own> {
    let hash = MemoryTable<Key, Value>.hash(key)
    let times = clock.times(expires: current?.info.expires, idleLimit: current?.info.idleLimit)
    var removed = RemovedEntries<Key, Value>()
    let (isCurrent, observers) = lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, let found = state.table.value(slot), found.place == place else {
        // Another call has replaced the value, or noted its place.
        return (current.map { place.isVersion($0.info.version) } ?? false, state.observers)
      }
      let node = state.table.nodes[Int(slot)]
      guard let (info, record) = current, info.version == node.version else {
        state.remove(slot, current == nil ? .removed : .replaced, &removed)
        return (false, state.observers)
      }
      if record != place.record {
        var settled = TierValue(
          found.value,
          TierPlace(
            record, version: info.version, isIdle: info.idleLimit != nil, hasTags: place.hasTags))
        state.table.exchangeValue(of: slot, with: &settled)
        state.table.set(
          slot, cost: node.cost,
          EntryTimes(
            now: node.accessed, expires: times.expires, idleLimit: times.idleLimit,
            written: info.written.millisecondsSinceEpoch), version: node.version)
      }
      return (true, state.observers)
    }
    deliver(removed, to: observers)
    return isCurrent
  }

  /// Drops a value that was found here, unless it has been replaced since.
  @usableFromInline
  func drop<Own>(
    _ key: Key, at place: TierPlace, _ cause: RemovalCause
  ) where Value == TierValue<Own> {
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      let slot = state.table.find(key, hash: MemoryTable<Key, Value>.hash(key))
      if slot != noSlot, state.table.value(slot)?.place == place {
        state.remove(slot, cause, &removed)
      }
      return state.observers
    }
    deliver(removed, to: observers)
  }
}
