public import CairnStore

extension TieredCache {
  /// Sets the value of a key, on disk and then in memory.
  ///
  /// When it returns, the limits of both tiers hold, every later read finds the value, and it survives what
  /// `durability` says. A value that memory has no room for is on disk alone.
  ///
  /// Of several that write a key at once, the one that came last to the disk stays, in both tiers.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - cost: what it costs in memory; kept on disk, for when it comes back from there. `nil`: what the
  ///     cache's `costing` says, or else its bytes on disk; below 0 is as 0.
  ///   - lifetime: how long it lives, in both tiers; without it as the configuration of the store says.
  ///   - idleLimit: how long it may go without being read or written; `nil`: as the configuration of the store
  ///     says.
  ///   - metadata: bytes kept beside the value, on disk.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the entry's version.
  /// - Throws: as `DiskCache.setValue`: nothing has happened then, but for `durabilityUnknown`.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: Value, forKey key: Key, cost: Int? = nil, lifetime: Lifetime = .standard,
    idleLimit: Duration? = nil, metadata: [UInt8] = [], durability: Durability? = nil
  ) throws(CacheError) -> UInt64 {
    try write(
      value, forKey: try tierKey(key), cost: cost, lifetime: lifetime, idleLimit: idleLimit,
      metadata: metadata, durability: durability)
  }

  @usableFromInline
  func write(
    _ value: Value, forKey key: TierKey<Key>, cost: Int?, lifetime: Lifetime,
    idleLimit: Duration?, metadata: [UInt8], durability: Durability?
  ) throws(CacheError) -> UInt64 {
    let entry = PublishedEntry(value, key, cost, lifetime, idleLimit, held)
    do throws(CacheError) {
      let written = try disk.write(
        value, forKey: key.key, cost: cost, lifetime: lifetime, idleLimit: idleLimit,
        metadata: metadata, durability: durability)
      held.publish(entry, written)
      return written.version
    } catch {
      noteFailure(error, of: key)
      throw error
    }
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - version: the version that the key must have, as `info(forKey:)` and `entry(forKey:)` tell it; `nil`:
  ///     it must be absent or expired.
  ///   - cost: as with `setValue`.
  ///   - lifetime: as with `setValue`.
  ///   - idleLimit: as with `setValue`.
  ///   - metadata: as with `setValue`.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the new version, or the one that was found instead.
  /// - Throws: as `setValue`; a mismatch is no error.
  public func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?, cost: Int? = nil,
    lifetime: Lifetime = .standard, idleLimit: Duration? = nil, metadata: [UInt8] = [],
    durability: Durability? = nil
  ) throws(CacheError) -> CompareAndSetResult {
    try compareAndWrite(
      value, forKey: try tierKey(key), expecting: version,
      disk.attributes(cost, lifetime, idleLimit, metadata), durability: durability)
  }

  func compareAndWrite(
    _ value: Value, forKey key: TierKey<Key>, expecting version: UInt64?,
    _ attributes: EntryAttributes, durability: Durability?
  ) throws(CacheError) -> CompareAndSetResult {
    let entry = PublishedEntry(
      value, key, attributes.cost, attributes.lifetime, attributes.idleLimit, held)
    do throws(CacheError) {
      let (result, byteCount) = try disk.compareAndWrite(
        value, forKey: key.key, expecting: version, attributes, durability: durability)
      switch result {
      case .stored(let version):
        held.publish(entry, WrittenValue(version: version, byteCount: byteCount))
      case .mismatch(let current?): noteSeen(current, of: key)
      case .mismatch(nil): noteShownAbsent(key)
      }
      return result
    } catch {
      noteFailure(error, of: key)
      throw error
    }
  }

  /// Sets the values of many keys as one batch: after a crash, all of them are found or none. A key that
  /// comes twice has the later value then. Otherwise as `DiskCache.setValues`.
  public func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime = .standard,
    idleLimit: Duration? = nil, durability: Durability? = nil
  ) throws(CacheError) {
    var entries: [PublishedEntry<Key, Value>] = []
    for (key, value) in pairs {
      entries.append(
        PublishedEntry(value, try tierKey(key), nil, lifetime, idleLimit, held))
    }
    do throws(CacheError) {
      let written = try disk.writeBatch(
        entries.lazy.map { (key: $0.key.key, value: $0.value) }, lifetime: lifetime,
        idleLimit: idleLimit, durability: durability)
      for (entry, written) in zip(entries, written) {
        if let written { held.publish(entry, written) }
      }
    } catch {
      for entry in entries { noteFailure(error, of: entry.key) }
      throw error
    }
  }

  /// Sets the values of many keys as one batch, as the configuration says.
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(CacheError) {
    try setValues(pairs, lifetime: .standard, idleLimit: nil)
  }

  /// Removes the value of a key from both tiers.
  ///
  /// - Returns: whether there was one. Where not, nothing is written.
  /// - Throws: as `setValue`; the value is still there then.
  @discardableResult
  public func removeValue(forKey key: Key, durability: Durability?) throws(CacheError) -> Bool {
    let key = try tierKey(key)
    do throws(CacheError) {
      if try disk.removeValue(forKey: key.key, durability: durability) { return true }
    } catch {
      noteFailure(error, of: key)
      throw error
    }
    // Idle times are known to a hundredth on disk, so that memory may hold it a little longer.
    held.invalidate(key, through: nil, .removed)
    // Whatever memory had is another's value, or has expired: the disk decides.
    return false
  }

  /// Removes the value of a key, as the configuration says.
  @discardableResult
  public func removeValue(forKey key: Key) throws(CacheError) -> Bool {
    try removeValue(forKey: key, durability: nil)
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether it was, and is removed.
  /// - Throws: as `DiskCache.compareAndRemove(forKey:expecting:durability:)`.
  public func compareAndRemove(
    forKey key: Key, expecting version: UInt64, durability: Durability? = nil
  ) throws(CacheError) -> Bool {
    let key = try tierKey(key)
    do throws(CacheError) {
      if try disk.compareAndRemove(forKey: key.key, expecting: version, durability: durability) {
        return true
      }
    } catch {
      noteFailure(error, of: key)
      throw error
    }
    // Who is told that it was another one must not find it.
    held.invalidate(key, through: version, .replaced)
    return false
  }

  /// Removes the value of a key and hands it out. Of several that take it at once, one gets it.
  ///
  /// - Returns: the value, as it is on disk, or `nil` where there was none or it had expired.
  public func takeValue(forKey key: Key) throws(CacheError) -> Value? {
    let key = try tierKey(key)
    do throws(CacheError) {
      if let value = try disk.takeValue(forKey: key.key) { return value }
    } catch {
      noteFailure(error, of: key)
      throw error
    }
    held.invalidate(key, through: nil, .removed)
    return nil
  }

  /// Removes the values of many keys, each as a write of its own, with one sync for all of them.
  ///
  /// - Returns: how many there were.
  /// - Throws: as `setValue`, at the first key whose removal fails; what was removed by then stays so.
  @discardableResult
  public func removeValues(
    forKeys keys: some Sequence<Key>, durability: Durability?
  ) throws(CacheError) -> Int {
    var tierKeys: [TierKey<Key>] = []
    for key in keys { tierKeys.append(try tierKey(key)) }
    // Those that were not there have nothing to be told of; but see `removeValue`.
    defer { for key in tierKeys { held.invalidate(key, through: nil, .removed) } }
    return try disk.removeValues(forKeys: tierKeys.lazy.map(\.key), durability: durability)
  }

  /// Removes the values of many keys, as the configuration says.
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) throws(CacheError) -> Int {
    try removeValues(forKeys: keys, durability: nil)
  }

  /// Has a value live for `lifetime` from now on, in both tiers, if that is longer than it would otherwise;
  /// as `DiskCache.extendLifetime`.
  ///
  /// - Returns: whether the key has a value.
  @discardableResult
  public func extendLifetime(
    forKey key: Key, to lifetime: Duration, durability: Durability? = nil
  ) throws(CacheError) -> Bool {
    let key = try tierKey(key)
    // From before the extension, so that it ends in memory no later than on disk.
    let ticket = held.ticket(forKey: key)
    let times = held.clock.times(.after(lifetime), idleLimit: nil)
    guard
      try disk.extendLifetime(forKey: key.key, to: lifetime, durability: durability)
    else {
      noteShownAbsent(key)
      return false
    }
    held.extendLifetime(of: key, to: times.expires, ticket: ticket)
    return true
  }

  /// Has the values of many keys live longer, each as `extendLifetime(forKey:to:)` has it, with one sync for
  /// all of them.
  ///
  /// - Returns: how many of the keys have a value.
  @discardableResult
  public func extendLifetimes(
    forKeys keys: some Sequence<Key>, to lifetime: Duration, durability: Durability? = nil
  ) throws(CacheError) -> Int {
    let times = held.clock.times(.after(lifetime), idleLimit: nil)
    var tickets: [(key: TierKey<Key>, ticket: CacheTicket)] = []
    for key in keys {
      let key = try tierKey(key)
      tickets.append((key, held.ticket(forKey: key)))
    }
    let count = try disk.extendLifetimes(
      forKeys: tickets.lazy.map(\.key.key), to: lifetime, durability: durability)
    for (key, ticket) in tickets {
      held.extendLifetime(of: key, to: times.expires, ticket: ticket)
    }
    if count < tickets.count {
      // Which of them have no value was not told, so that each is as if its caller was shown it.
      for (key, _) in tickets {
        if let info = try? disk.info(forKey: key.key) {
          noteSeen(info.version, of: key)
        } else {
          noteShownAbsent(key)
        }
      }
    }
    return count
  }

  /// To be told of a write that threw. Where nobody knows what is on disk, memory holds nothing of it.
  private func noteFailure(_ error: CacheError, of key: TierKey<Key>) {
    if error.hasWrittenNothing { return }
    held.invalidate(key, through: nil, .removed)
  }
}

extension CacheError {
  /// Whether a write that threw this has surely not happened.
  var hasWrittenNothing: Bool {
    switch self {
    case .store(.noSpace), .store(.invalidKey), .store(.valueTooLarge), .store(.metadataTooLarge),
      .store(.batchTooLarge), .store(.readOnly), .unencodableKey, .unencodableValue:
      true
    default: false
    }
  }
}

/// What memory is to hold of a write once it is on disk. Made before it is.
@usableFromInline
struct PublishedEntry<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let value: Value
  let key: TierKey<Key>
  /// `nil`: its bytes on disk.
  let cost: Int?
  let ticket: CacheTicket
  let times: EntryTimes

  init(
    _ value: Value, _ key: TierKey<Key>, _ cost: Int?, _ lifetime: Lifetime,
    _ idleLimit: Duration?, _ memory: MemoryCache<TierKey<Key>, Value>
  ) {
    self.value = value
    self.key = key
    self.cost = cost ?? memory.knownCost(of: value, forKey: key)
    ticket = memory.ticket(forKey: key)
    times = memory.clock.times(lifetime, idleLimit: idleLimit)
  }
}

extension MemoryCache {
  func publish<TierKeyed>(
    _ entry: PublishedEntry<TierKeyed, Value>, _ written: WrittenValue
  ) where Key == TierKey<TierKeyed> {
    publish(
      entry.value, forKey: entry.key, ticket: entry.ticket, version: written.version, entry.times,
      cost: entry.cost ?? written.byteCount)
  }
}

extension TieredCache: Caching {
  /// Sets the value of a key; as the method that returns the version.
  @_disfavoredOverload
  public func setValue(
    _ value: Value, forKey key: Key, cost: Int?, lifetime: Lifetime, idleLimit: Duration?
  ) throws(CacheError) {
    let _: UInt64 = try setValue(
      value, forKey: key, cost: cost, lifetime: lifetime, idleLimit: idleLimit, metadata: [])
  }
}
