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

  /// Waits until the writes can be found that have found that they may go on.
  package func passWriters() { engine.log.passWriters() }
}
