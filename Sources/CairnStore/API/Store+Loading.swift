// What a cache needs that loads values.
extension Store {
  /// Sets the value of a key that has none, unless `isWanted` says that it is not wanted any more. That is
  /// asked when nothing can come between the answer and the write.
  ///
  /// - Parameters:
  ///   - removals: what the write removed is added, also where it throws; the observer is not told of it.
  ///   - isWanted: called under a lock; it must do no more than look.
  /// - Returns: `mismatch` with `nil` where it was not wanted.
  package func setAbsentValue(
    _ value: RawSpan, forKey key: RawSpan, attributes: EntryAttributes,
    durability: Durability? = nil, removals: inout [RemovalEvent],
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> CompareAndSetResult {
    try engine.setAbsentValue(
      value, forKey: key, attributes: attributes, durability: durability,
      removals: &removals, ifWanted: isWanted)
  }

  /// Waits until the writes can be found that have found that they may go on.
  package func passWriters() { engine.log.passWriters() }
}
