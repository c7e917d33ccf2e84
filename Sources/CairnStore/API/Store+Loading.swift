internal import Synchronization

// Calls that a loading cache needs.
extension Store {
  /// Enters the value of a key that has none, unless `isWanted` returns `false`. No other write can
  /// come between the call of `isWanted` and this write.
  ///
  /// - Parameters:
  ///   - removals: receives the removals of the write, even if the call throws. The observer is not
  ///     called.
  ///   - isWanted: called under a lock, so it must only read.
  /// - Returns: `mismatch` with `nil` if the value was not wanted.
  package func enterAbsent(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions,
    removals: inout [RemovalEvent], ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: nil,
      expecting: .absentAndWanted(isWanted), removals: &removals)
  }

  /// Like `enterAbsent`, but can also replace the value of one version.
  ///
  /// - Parameter version: if `nil`, the key must have no value.
  package func enterLoaded(
    _ value: RawSpan, forKey key: RawSpan, replacing version: UInt64?, options: EntryOptions,
    removals: inout [RemovalEvent], ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    guard let version else {
      return try enterAbsent(
        value, forKey: key, options: options, removals: &removals, ifWanted: isWanted)
    }
    return try engine.enter(
      value, forKey: key, options: options, durability: nil,
      expecting: .replaceableAndWanted(version, isWanted), removals: &removals)
  }

  // MARK: Expired values that may be served

  /// Keeps expired entries for at least this many milliseconds. Maintenance does not remove them in
  /// that time, but limits, trims and `removeExpired` do.
  package func retainExpired(for milliseconds: Int64) {
    engine.trimmer.retention.max(milliseconds, ordering: .relaxed)
  }

  /// The record of a key whose lifetime ended less than `retention` milliseconds ago. Does not
  /// count as an access.
  package func expiredEntry(
    forKey key: RawSpan, within retention: Int64
  ) throws(StoreError) -> PinnedEntry? {
    guard let follower else {
      return try reader.pinnedExpiredEntry(forKey: key, within: retention)
    }
    return try follower.read { (reader) throws(StoreError) in
      try reader.pinnedExpiredEntry(forKey: key, within: retention)
    }
  }

  /// Makes the lifetime of one version of a value end `lifetime` from now, even if the value has
  /// expired. Does not rewrite the value.
  ///
  /// - Parameter isWanted: as for `enterAbsent`.
  /// - Returns: whether the key has that version and the renewal is wanted.
  package func renewValue(
    forKey key: RawSpan, version: UInt64, to lifetime: Duration,
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> Bool {
    try engine.extendLifetime(
      forKey: key, to: lifetime, durability: nil,
      renewal: Engine.Renewal(version: version, isWanted: isWanted))
  }

  /// Removes the value of a key if it has expired.
  ///
  /// - Returns: whether the value had expired.
  @discardableResult
  package func removeExpiredValue(
    forKey key: RawSpan, durability: Durability?
  ) throws(StoreError) -> Bool {
    try engine.removeExpiredValue(forKey: key, durability: durability)
  }

  // MARK: Values that the store does not have

  /// Removes the value of a key, fresh or expired, and calls `place` before any later write.
  ///
  /// - Parameter place: receives the newest version. Called under a lock, so it must not use the
  ///   store. The only caller code that it may run is the `==` of keys.
  /// - Returns: the write for `finish` to complete.
  package func displaceValue(
    forKey key: RawSpan, durability: Durability?, _ place: (_ version: UInt64) -> Void
  ) throws(StoreError) -> PendingWrite {
    try engine.displace(key, expecting: .anything, durability: durability, place) ?? PendingWrite()
  }

  /// Like the other form, for a loaded value. Does nothing if the key has a value of another
  /// version.
  ///
  /// - Parameters:
  ///   - version: if `nil`, the key must have no value.
  ///   - isWanted: as for `enterAbsent`.
  /// - Returns: the write for `finish` to complete, or `nil` if `place` was not called.
  package func displaceValue(
    forKey key: RawSpan, replacing version: UInt64?,
    ifWanted isWanted: @escaping @Sendable () -> Bool, _ place: (_ version: UInt64) -> Void
  ) throws(StoreError) -> PendingWrite? {
    try engine.displace(
      key,
      expecting: version.map { .replaceableAndWanted($0, isWanted) } ?? .absentAndWanted(isWanted),
      durability: nil, place)
  }

  /// Returns once every write that passed its precondition check is visible.
  package func passWriters() { engine.log.passWriters() }
}
