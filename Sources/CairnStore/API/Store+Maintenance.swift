extension Store {
  /// Does at once all that the store does for itself now and then: removes what has expired.
  ///
  /// Safe from any thread, beside readers and writers; they go on.
  ///
  /// - Throws: `noSpace`, `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`: the first
  ///   error, after all was tried.
  /// - Complexity: O(1) where nothing is due.
  public func maintain() throws(StoreError) { try engine.maintain() }
}
