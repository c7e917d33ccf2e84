internal import Synchronization

// Calls that a loading cache needs.
extension Store {
  /// Enters the value of a key, unless `isWanted` returns `false` or the key has a value of another
  /// version. No other write can come between the call of `isWanted` and this write.
  ///
  /// - Parameters:
  ///   - version: the version to replace. If `nil`, the key must have no value.
  ///   - removals: receives the removals of the write, even if the call throws. The observer is not
  ///     called.
  ///   - isWanted: called under a lock, so it must only read.
  /// - Returns: `mismatch` with `nil` if the value was not wanted.
  package func enterLoaded(
    _ value: RawSpan, forKey key: RawSpan, replacing version: UInt64?, options: EntryOptions,
    removals: inout [RemovalEvent], ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: nil,
      expecting: version.map { .replaceableAndWanted($0, isWanted) } ?? .absentAndWanted(isWanted),
      removals: &removals)
  }

  // MARK: Expired values that may be served

  /// Keeps expired entries for at least this many milliseconds. Maintenance does not remove them in
  /// that time, but limits and trims do.
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

  /// Makes a value's lifetime longer or shorter.
  ///
  /// - Parameters:
  ///   - neverShortens: whether a lifetime that ends later, or never, stays.
  ///   - version: the version that the key must have, even if it has expired. With `nil`, the key
  ///     must have an unexpired value.
  ///   - removals: receives the other removals of the write, even if the call throws. The observer
  ///     is not called.
  ///   - isWanted: whether the entry with this metadata and version is still wanted. Called under
  ///     a lock, so it must only read.
  /// - Returns: the value that now lives that long, or `nil` if the key has no such value.
  package func enterLifetime(
    _ lifetime: Lifetime, neverShortens: Bool, ofKey key: RawSpan, version: UInt64?,
    durability: Durability?, _ pending: inout PendingWrite, removals: inout [RemovalEvent],
    ifWanted isWanted: @escaping @Sendable (_ metadata: [UInt8], UInt64) -> Bool
  ) throws(StoreError) -> Renewed? {
    try engine.setLifetime(
      forKey: key,
      Engine.Renewal(
        lifetime: lifetime, neverShortens: neverShortens, version: version, isWanted: isWanted),
      durability: durability, &pending, removals: &removals)
  }

  /// Removes the value of a key if it has expired.
  ///
  /// - Returns: whether the value had expired.
  @discardableResult
  package func removeExpiredValue(
    forKey key: RawSpan, durability: Durability?, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    try engine.removeExpiredValue(forKey: key, durability: durability, &pending)
  }

  /// Returns once every write that passed its precondition check is visible.
  package func passWriters() { engine.log.passWriters() }
}
