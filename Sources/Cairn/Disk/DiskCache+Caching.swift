public import CairnStore

extension DiskCache: Caching, Trimming {
  /// The values of many keys, in the order of the keys, with `nil` for each key without a value.
  /// Reads each key separately.
  ///
  /// - Throws: see `value(forKey:)`. The first read that fails ends the call.
  @inlinable
  public func values(forKeys keys: some Collection<Key>) throws(StoreError) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(keys.count)
    for key in keys { values.append(try value(forKey: key)) }
    return values
  }

  // What the protocols require, with the configured durability.

  /// Sets the value of a key, with the configured durability.
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime?, options: EntryOptions
  ) async throws(StoreError) -> UInt64 {
    try await setValue(
      value, forKey: key, lifetime: lifetime, options: options, durability: nil)
  }

  /// Removes the value of a key, with the configured durability.
  @discardableResult
  public nonisolated(nonsending) func removeValue(
    forKey key: Key
  ) async throws(StoreError) -> Bool {
    try await removeValue(forKey: key, durability: nil)
  }
}
