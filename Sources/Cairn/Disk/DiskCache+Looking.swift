internal import CairnStore

// Reads that do not count as accesses, and reads that return more.
extension DiskCache {
  /// The entry that a read finds.
  @inline(__always)
  func readingPinnedEntry(
    forKey key: RawSpan, part: Record.Part, isAccess: Bool
  ) throws(StoreError) -> PinnedEntry? {
    return try store.pinnedEntry(forKey: key, part: part, isAccess: isAccess)
  }

  /// The value of a key, or `nil` if the key has no unexpired value. Does not count as an access in
  /// either tier: the access order, idle limits and the statistics stay the same. A value found on
  /// disk is not kept in memory.
  ///
  /// - Throws: see `value(forKey:)`.
  /// - Complexity: the same as `value(forKey:)`.
  public func peekValue(forKey key: Key) throws(StoreError) -> Value? {
    if held != nil, let value = try peekCurrentValue(ofKey: tierKey(key)) { return value }
    return try peekStored(key)
  }

  func peekStored(_ key: Key) throws(StoreError) -> Value? {
    try fetch(key, isAccess: false) { (record) throws(StoreError) in try decode(record) }
  }

}
