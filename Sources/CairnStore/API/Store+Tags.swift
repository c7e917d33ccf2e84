// What a cache needs that removes entries by their tags.
extension Store {
  /// Enters the value of a key if its version is the expected one and `isWanted` says so, which is asked when nothing can
  /// come between the answer and the write.
  ///
  /// - Parameters:
  ///   - removals: what the write removed is added, also where it throws; the observer is not told of it.
  ///   - isWanted: called under a lock; it must do no more than look.
  package func enter(
    _ value: RawSpan, forKey key: RawSpan, expecting version: UInt64, options: EntryOptions,
    durability: Durability?, removals: inout [RemovalEvent],
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try engine.enter(
      value, forKey: key, options: options, durability: durability,
      expecting: .versionAndWanted(version, isWanted), removals: &removals)
  }

  /// Has so many entries not count for the limit on their number.
  package func reserve(count: Int) { engine.evictor.reserve(count: count) }

  /// Has a pass of housekeeping run soon.
  package func wakeHousekeeping() { engine.session.wakeHousekeeping() }

  /// Removes a part of the entries that `isVictim` says so of; as `Trimmer.removeRound`.
  package func removeRound(
    fromShard start: Int, lookingAt limit: Int,
    where isVictim: (_ metadata: RawSpan, _ version: UInt64) -> Bool
  ) throws(StoreError) -> (next: Int?, isWhole: Bool) {
    try engine.trimmer.removeRound(fromShard: start, lookingAt: limit, where: isVictim)
  }

  /// Removes the entries that `isVictim` says so of; as `remove(durability:where:)`, with the metadata.
  package func remove(
    where isVictim: (_ key: RawSpan, _ metadata: RawSpan, _ info: EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    try engine.trimmer.remove(where: isVictim)
  }
}
