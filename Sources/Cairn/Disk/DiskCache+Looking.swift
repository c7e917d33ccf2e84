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

  /// The value of a key or, if it has none, whether its value has expired. Counts as an access. A
  /// value found on disk is kept in memory, as with `value(forKey:)`.
  ///
  /// An expired value is reported as expired until maintenance removes it, and as absent
  /// afterwards.
  ///
  /// - Throws: see `value(forKey:)`.
  /// - Complexity: the same as `value(forKey:)`, plus a read of the record's head if the key has no
  ///   value.
  public func lookUp(_ key: Key) throws(StoreError) -> LookupResult<Value> {
    var isRepeated = false
    while true {
      if let value = try value(forKey: key) { return .found(value) }
      let hasExpired = try keyCoder.encode(key) { (key) throws(StoreError) in
        try store.hasExpired(key)
      }
      // The key may have been written between the two reads. If not, its value is unreadable and
      // could not be removed.
      if hasExpired == false, !isRepeated, try !hasHidden(key) {
        isRepeated = true
        continue
      }
      return hasExpired == true ? .expired : .absent
    }
  }

  /// The entries of many keys, in the order of the keys, with `nil` for each key without a value.
  /// Reads each key separately, like `entry(forKey:)`.
  ///
  /// - Throws: see `entry(forKey:)`. The first read that fails ends the call.
  public func entries(
    forKeys keys: some Collection<Key>
  ) throws(StoreError) -> [CacheEntry<Key, Value>?] {
    var entries: [CacheEntry<Key, Value>?] = []
    entries.reserveCapacity(keys.count)
    for key in keys { entries.append(try entry(forKey: key)) }
    return entries
  }

  /// Information about many keys, in the order of the keys, with `nil` for each key without a
  /// value. Reads no value and does not count as an access.
  ///
  /// - Throws: see `info(forKey:)`. The first read that fails ends the call.
  public func infos(forKeys keys: some Collection<Key>) throws(StoreError) -> [CacheEntryInfo?] {
    var infos: [CacheEntryInfo?] = []
    infos.reserveCapacity(keys.count)
    for key in keys { infos.append(try info(forKey: key)) }
    return infos
  }
}

extension CacheEntryInfo {
  init(_ info: EntryInfo) {
    self.init(
      version: info.version, cost: info.cost ?? info.valueByteCount, written: info.written,
      accessed: info.accessed, expires: info.expires, idleLimit: info.idleLimit,
      valueByteCount: info.valueByteCount)
  }
}
