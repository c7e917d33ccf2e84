internal import CairnStore

/// One key of a cache in memory, for loads with a policy.
struct MemoryLoadStore<Key: Hashable & Sendable, Value: Sendable>: LoadStore {
  let cache: MemoryCache<Key, Value>
  let key: Key

  var standardLifetime: Lifetime { cache.configuration.lifetime }
  var keepsValues: Bool { true }

  func held(_ purpose: HeldPurpose) -> HeldValue<Value>? {
    cache.heldValue(forKey: key, isRead: purpose == .answer)
  }

  func keep(
    _ loaded: Loaded<Value>, replacing version: UInt64?, _ flight: Flight<Loaded<Value>?>
  ) async {
    cache.keep(loaded, forKey: key, replacing: version, flight)
  }

  func renew(
    version: UInt64, to lifetime: Lifetime, _ flight: Flight<Loaded<Value>?>
  ) async {
    if !cache.renew(key, version: version, to: lifetime, flight) { cache.flights.noteOutdated() }
  }

  func drop(version: UInt64?, _ flight: Flight<Loaded<Value>?>) async {
    if let version { cache.drop(key, version: version, flight) }
  }

  func noteUnheard(_ error: any Error) {
    cache.tell(.loadFailed(key: key, reason: String(describing: error)))
  }
}

extension MemoryCache {
  /// The value of a key, fresh or retained.
  ///
  /// - Parameter isRead: whether this is an access and counts as a hit or a miss. A stale value is
  ///   a miss.
  func heldValue(forKey key: Key, isRead: Bool) -> HeldValue<Value>? {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var expired: ExpiredEntry<Key, Value>?
    let held = lock.withLock(forReading: true) { state -> HeldValue<Value>? in
      let slot = state.table.find(key, hash: hash)
      let held = slot == noSlot ? nil : state.held(slot, at: now, drops: &expired)
      if isRead { state.noteRead(slot, held, at: now) }
      return held
    }
    if let expired { deliver(expired.takeRemoved(), to: expired.observers) }
    return held
  }

  /// Extends the lifetime of one version's value, even if it has expired.
  ///
  /// - Returns: whether the key has that value, and the flight is not outdated.
  func renew(
    _ key: Key, version: UInt64, to lifetime: Lifetime, _ flight: Flight<Loaded<Value>?>
  ) -> Bool {
    let hash = MemoryTable<Key, Value>.hash(key)
    let expires = clock.explicitTimes(lifetime, idleLimit: nil).expires
    return lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      guard slot != noSlot, state.table.nodes[Int(slot)].version == version, !flight.isOutdated
      else { return false }
      if expires > state.table.nodes[Int(slot)].expires {
        // The deadline in the heap may now be too early.
        state.table.nodes[Int(slot)].expires = expires
      }
      return true
    }
  }

  /// Removes one version's value, even if it has expired.
  func drop(_ key: Key, version: UInt64, _ flight: Flight<Loaded<Value>?>) {
    let hash = MemoryTable<Key, Value>.hash(key)
    let now = clock.now()
    var removed = RemovedEntries<Key, Value>()
    let observers = lock.withLock { state in
      let slot = state.table.find(key, hash: hash)
      if slot != noSlot, state.table.nodes[Int(slot)].version == version, !flight.isOutdated {
        let hasExpired = state.table.nodes[Int(slot)].hasExpired(at: now)
        state.remove(slot, hasExpired ? .expired : .removed, &removed)
      }
      return state.observers
    }
    deliver(removed, to: observers)
  }
}

extension MemoryState {
  /// The value in a slot, fresh or retained. Removes an expired entry that is not retained.
  mutating func held(
    _ slot: UInt32, at now: Int64, drops expired: inout ExpiredEntry<Key, Value>?
  ) -> HeldValue<Value>? {
    let node = table.nodes[Int(slot)]
    if node.hasExpired(at: now), !retains(slot, at: now) {
      expired = drop(expired: slot)
      return nil
    }
    guard let value = table.value(slot) else { return nil }
    return HeldValue(
      value: value, version: node.version, written: node.written, expires: node.expires)
  }

  /// Records an access to the value that was found, and counts a hit or a miss.
  mutating func noteRead(_ slot: UInt32, _ held: HeldValue<Value>?, at now: Int64) {
    guard let held else {
      statistics.missCount &+= 1
      return
    }
    if held.expires <= now { statistics.missCount &+= 1 } else { statistics.hitCount &+= 1 }
    touch(slot, at: now)
  }
}
