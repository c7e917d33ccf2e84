internal import CairnStore

// Reads that are no accesses, and reads that tell more.
extension DiskCache {
  /// The value of a key, or `nil` where there is none or it has expired. Is no access in either tier: neither the order
  /// of use, nor an idle limit, nor the statistics learn of it. A value that is found on disk is not kept in memory.
  ///
  /// - Throws: as `value(forKey:)`.
  /// - Complexity: as `value(forKey:)`.
  public func peekValue(forKey key: Key) throws(CacheError) -> Value? {
    guard let held else { return try peekStored(key)?.value }
    let tierKey = try tierKey(key)
    if let value = held.peekValue(forKey: tierKey) { return value }
    guard let found = try peekStored(key) else { return held.noteAbsent(tierKey) }
    held.noteShown(found.version, of: tierKey)
    return found.value
  }

  private func peekStored(_ key: Key) throws(CacheError) -> (value: Value, version: UInt64)? {
    try fetch(key, isAccess: false) { (record) throws(CacheError) in
      (try decode(record), record.version)
    }
  }

  /// The value of a key, and where there is none, whether it has expired. Counts as an access; what is found on disk is
  /// kept in memory, as with `value(forKey:)`.
  ///
  /// An entry that has expired is known as such until it is removed, as the store's `maintenanceInterval` says; from
  /// then on it is absent.
  ///
  /// - Throws: as `value(forKey:)`.
  /// - Complexity: as `value(forKey:)`; where it finds no value, a second look at the head of the record.
  public func lookUp(_ key: Key) throws(CacheError) -> LookupResult<Value> {
    while true {
      if let value = try value(forKey: key) { return .found(value) }
      let hasExpired = try keyCoder.encode(key) { (key) throws(CacheError) in
        try storing { () throws(StoreError) in try store.hasExpired(key) }
      }
      // It may have been written between the two looks.
      if hasExpired == false, try !hasHidden(key) { continue }
      try noteShown(nil, of: key)
      return hasExpired == true ? .expired : .absent
    }
  }
}
