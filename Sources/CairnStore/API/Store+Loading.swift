internal import Synchronization

// What a cache needs that loads values.
extension Store {
  /// Enters the value of a key that has none, unless `isWanted` says that it is not wanted any more. That is
  /// asked when nothing can come between the answer and the write.
  ///
  /// - Parameters:
  ///   - removals: what the write removed is added, also where it throws; the observer is not told of it.
  ///   - isWanted: called under a lock; it must do no more than look.
  /// - Returns: `mismatch` with `nil` where it was not wanted.
  package func enterAbsent(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions,
    removals: inout [RemovalEvent], ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: nil,
      expecting: .absentAndWanted(isWanted), removals: &removals)
  }

  /// The same, where the key may also have the value of one version, which is replaced.
  ///
  /// - Parameter version: `nil`: the key must have no value.
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

  // MARK: What has expired and may be served

  /// Has what has expired stay for at least so many milliseconds. Maintenance leaves it alone for that long; limits,
  /// trims and `removeExpired` do not.
  package func retainExpired(for milliseconds: Int64) {
    engine.trimmer.retention.max(milliseconds, ordering: .relaxed)
  }

  /// The record of a key whose lifetime ended less than `retention` milliseconds ago. Is no access.
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

  /// Has the value of one version live for `lifetime` from now on, also where it has expired. It is not written again.
  ///
  /// - Parameter isWanted: as with `enterAbsent`.
  /// - Returns: whether the key has that value, and it is wanted.
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
  /// - Returns: whether it had.
  @discardableResult
  package func removeExpiredValue(
    forKey key: RawSpan, durability: Durability?
  ) throws(StoreError) -> Bool {
    try engine.removeExpiredValue(forKey: key, durability: durability)
  }

  /// Waits until the writes can be found that have found that they may go on.
  package func passWriters() { engine.log.passWriters() }
}
