extension MemoryCache: Caching, Trimming {
  /// The values of many keys, in the order of the keys, with `nil` for each key without a value.
  @inlinable
  public func values(forKeys keys: some Collection<Key>) -> [Value?] {
    keys.map { value(forKey: $0) }
  }

  /// Removes the values of many keys, each as a separate write.
  ///
  /// - Returns: the number of removed values.
  @inlinable
  @discardableResult
  public func removeValues(forKeys keys: some Sequence<Key>) -> Int {
    keys.reduce(0) { $0 + (removeValue(forKey: $1) ? 1 : 0) }
  }
}
