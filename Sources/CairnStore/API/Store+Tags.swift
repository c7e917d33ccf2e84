// Internal calls for caches that remove entries by their tags.
extension Store {
  /// Enters the value of a key if its version is the expected one and `isWanted` returns true. No
  /// other write can come between the call of `isWanted` and this write.
  ///
  /// - Parameters:
  ///   - removals: receives the removals of the write, even if the call throws. The observer is not
  ///     called.
  ///   - isWanted: called under a lock, so it must only read.
  package func enter(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64, options: EntryOptions,
    durability: Durability?, removals: inout [RemovalEvent],
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: durability,
      expecting: .versionAndWanted(version, isWanted), removals: &removals)
  }

  /// Excludes this many entries from the count limit.
  package func reserve(count: Int) { engine.evictor.reserve(count: count) }

  /// Requests a housekeeping pass.
  package func wakeHousekeeping() { engine.session.wakeHousekeeping() }

  /// Removes some of the entries for which `isVictim` returns true. See `Trimmer.removeRound`.
  package func removeRound(
    fromShard start: Int, lookingAt limit: Int,
    where isVictim: (_ metadata: RawSpan, _ version: UInt64) -> Bool
  ) throws(StoreError) -> (next: Int?, isWhole: Bool) {
    try engine.trimmer.removeRound(fromShard: start, lookingAt: limit, where: isVictim)
  }
}
