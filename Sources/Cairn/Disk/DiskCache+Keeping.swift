internal import CairnStore
internal import Synchronization

// How a load stores its result.
extension DiskCache {
  /// Keeps a loaded value, unless the flight is outdated or the key has a value of another version.
  /// Counts and logs a value that cannot be kept.
  ///
  /// - Parameters:
  ///   - start: the newest version when the load began.
  ///   - damage: the error from reading the value to replace, if that value is damaged.
  func keep(
    _ loaded: Loaded<Value>, forKey key: Key, replacing version: UInt64?, since start: UInt64,
    _ damage: StoreError?,
    _ flight: Flight<Loaded<Value>?>
  ) async {
    // An outdated load counts as outdated even after a close.
    if flight.isOutdated { return flights.noteOutdated() }
    await keeping { [self] (entered) throws(StoreError) in
      if let damage {
        try keyCoder.encode(key) { (key) throws(StoreError) in
          try dropDamaged(key, damage, &entered)
        }
      }
      let isKept = try flights.keeping { () throws(StoreError) in
        try enter(loaded, forKey: key, replacing: version, since: start, flight, &entered)
      }
      if !isKept { flights.noteOutdated() }
    }
  }

  /// Extends the lifetime of one version's value, even if it has expired, unless the flight is
  /// outdated.
  func renew(
    _ key: Key, version: UInt64, to lifetime: Lifetime, _ flight: Flight<Loaded<Value>?>
  ) async {
    if flight.isOutdated { return flights.noteOutdated() }
    await keeping { [self] (entered) throws(StoreError) in
      let isKept = try flights.keeping { () throws(StoreError) in
        try setLifetime(
          lifetime, neverShortens: true, of: key, version: version, durability: nil,
          &entered
        ) { !flight.isOutdated } != nil
      }
      if !isKept { flights.noteOutdated() }
    }
  }

  /// Removes one version's value, even if it has expired.
  func drop(_ key: Key, version: UInt64) async {
    await keeping { [self] (entered) throws(StoreError) in
      defer { dropKept(key, through: version) }
      try keyCoder.encode(key) { (key) throws(StoreError) in
        if try !store.enterRemoval(
          ofKey: key, expecting: version, durability: nil, &entered)
        {
          _ = try store.removeExpiredValue(forKey: key, durability: nil, &entered)
        }
      }
    }
  }

  /// Writes on one of the cache's own threads, because any write may wait for room.
  ///
  /// A cache that follows another process does not keep loaded values.
  private func keeping(
    _ body: @escaping @Sendable (inout PendingWrite) throws(StoreError) -> Void
  ) async {
    if store.isFollowing { return flights.noteUnkept() }
    do throws(StoreError) { try await finishing(nil, body) } catch {
      flights.noteUnkept()
      // The store has logged once that the disk takes no more writes.
      var isNew = !error.isOfStoppedDisk
      if !isNew { events.hasStopped.store(true, ordering: .relaxed) }
      if case .noSpace = error {
        // Log once while the disk is full. The statistics count the rest.
        isNew = events.hasRoom.exchange(false, ordering: .relaxed)
      }
      if isNew {
        events.log(.warning, .writing, "a loaded value could not be kept: \(error)")
      }
    }
  }

  /// Sets a loaded value, unless its key has been written or removed since the load began, or has a
  /// value of another version.
  ///
  /// - Returns: whether the value was set.
  private func enter(
    _ loaded: Loaded<Value>, forKey key: Key, replacing version: UInt64?, since start: UInt64,
    _ flight: Flight<Loaded<Value>?>, _ entered: inout PendingWrite
  ) throws(StoreError) -> Bool {
    let options = try stored(loaded.options)
    let tags = try TagLimits.bytes(of: loaded.options.tags ?? [])
    let tierKey = try tierKey(key)
    let tier: (TierStep) -> Void = { [self] in
      take($0, of: loaded.value, forKey: tierKey, options)
    }
    var isWritten = false
    try encode(loaded.value, forKey: key) { (bytes, value) throws(StoreError) in
      try checkKey(bytes)
      try settle(bytes)
      let isWanted = { @Sendable [marks] in
        !flight.isOutdated && !marks.forbids(tags, since: start, isLoaded: true)
      }
      let (result, pending) = try enter(
        value, bytes, of: key, tier, ifWanted: isWanted
      ) { (removals: inout [RemovalEvent]) throws(StoreError) in
        try store.enterLoaded(
          value, forKey: bytes, replacing: version, options: options, removals: &removals,
          ifWanted: isWanted)
      }
      if case .stored = result {
        isWritten = true
        entered.add(pending)
        events.hasRoom.store(true, ordering: .relaxed)
      }
    }
    return isWritten
  }
}
