public import CairnStore

/// Looking at everything. It is a snapshot that is looked at: the cache as it was when the call began, every
/// key once, in no particular order, while writes go on. It does not count as an access.
extension DiskCache {
  /// Calls `body` with each key, until it returns `.stop`. It runs with no lock held and may use the cache.
  ///
  /// A key that cannot be decoded is left out; the log reports it. Entries that are damaged are passed over, and
  /// the error of the first is thrown when all others were visited.
  ///
  /// - Returns: how many were left out.
  /// - Throws: what `body` throws, unchanged; else a ``CacheError``.
  /// - Complexity: O(keys), with a look at the head of each record.
  @discardableResult
  public func forEachKey(_ body: (Key) throws -> Visit) throws -> Int {
    try forEachHead { key, _ in try body(key) }
  }

  /// Calls `body` with each key and the metadata of its record; otherwise as `forEachKey`.
  @discardableResult
  func forEachHead(_ body: (Key, _ metadata: RawSpan) throws -> Visit) throws -> Int {
    var skippedCount = 0
    try visiting { snapshot, table, failure in
      try snapshot.forEachHead { bytes, metadata, version in
        if ReservedKey.contains(bytes) || table.hides(metadata, version) { return .next }
        guard let key = decodableKey(bytes) else {
          skippedCount += 1
          return .next
        }
        do { return try body(key, metadata) } catch {
          failure = error
          throw error
        }
      }
    }
    return skippedCount
  }

  /// All keys that a read would find, but for those that cannot be decoded.
  ///
  /// - Throws: as `forEachKey`: where a record is damaged, it gives none; `forEachKey` has visited the others when it
  ///   throws.
  /// - Complexity: as `forEachKey`.
  public func keys() throws(CacheError) -> [Key] {
    try collectingKeys { body in try forEachHead { key, _ in try body(key) } }
  }

  /// The keys that `visit` hands on.
  func collectingKeys(
    _ visit: (_ body: (Key) throws -> Visit) throws -> Int
  ) throws(CacheError) -> [Key] {
    var keys: [Key] = []
    do {
      _ = try visit { key in
        keys.append(key)
        return .next
      }
    } catch {
      // The closure throws nothing.
      throw error as? CacheError ?? .undecodableKey(reason: codingReason(error))
    }
    return keys
  }

  /// Calls `body` with each entry, until it returns `.stop`. It runs with no lock held and may use the cache.
  ///
  ///     try cache.forEachEntry { entry in
  ///       print(entry.key, entry.info.valueByteCount ?? 0)
  ///       return .next
  ///     }
  ///
  /// An entry whose value cannot be decoded, or has another tag, is left out, and goes where the policy of
  /// the configuration is to drop such values. So is one whose key cannot be decoded, which stays. The log
  /// tells of them.
  ///
  /// - Returns: how many were left out.
  /// - Throws: what `body` throws, unchanged; else a ``CacheError``: `store` with `corrupt` where a record
  ///   or a value is damaged, after all others were visited.
  /// - Complexity: O(bytes).
  @discardableResult
  public func forEachEntry(_ body: (CacheEntry<Key, Value>) throws -> Visit) throws -> Int {
    var skippedCount = 0
    try visiting { snapshot, table, failure in
      try snapshot.forEachEntry { stored in
        if stored.isHidden(by: table) { return .next }
        guard let entry = try decodableEntry(stored) else {
          skippedCount += 1
          return .next
        }
        try noteShown(entry.info.version, of: entry.key)
        do { return try body(entry) } catch {
          failure = error
          throw error
        }
      }
    }
    return skippedCount
  }

  /// Calls `body` with a snapshot, and the marks of what is not to be shown.
  private func visiting(
    _ body: (Snapshot, TagTable, inout (any Error)?) throws -> Void
  ) throws {
    // From before the snapshot: a mark goes only after what it hides.
    let table = try removedTags()
    let snapshot = try storing { () throws(StoreError) in try store.snapshot() }
    defer { snapshot.close() }
    // Apart, so that an error of the caller's that is a store's comes out as it is.
    var failure: (any Error)?
    do { try body(snapshot, table, &failure) } catch { throw failure ?? cacheError(error) }
  }

  /// The key, or `nil` and a line in the log.
  func decodableKey(_ bytes: RawSpan) -> Key? {
    do throws(CacheError) { return try keyCoder.decode(bytes) } catch {
      events.log(.warning, .coding, "left out: \(error)")
      return nil
    }
  }

  private func decodableEntry(_ entry: Entry) throws(CacheError) -> CacheEntry<Key, Value>? {
    guard let key: Key = entry.key.withBytes({ (bytes) -> Key? in decodableKey(bytes) }) else {
      return nil
    }
    do throws(CacheError) {
      let coded = try entry.metadata.withBytes { (bytes) throws(CacheError) -> CacheMetadata in
        try metadata(bytes, version: entry.info.version, wantsRest: true)
      }
      let value = try entry.value.withBytes { (bytes) throws(CacheError) -> Value in
        try decodeValue(bytes, version: entry.info.version)
      }
      return CacheEntry(
        key: key, value: value, info: CacheEntryInfo(entry.info), metadata: coded.rest)
    } catch {
      do throws(CacheError) {
        try entry.key.withBytes { (key) throws(CacheError) in try followPolicy(error, key) }
      } catch {
        switch error {
        case .undecodableValue, .changedType: events.log(.warning, .coding, "left out: \(error)")
        default: throw error
        }
      }
      return nil
    }
  }
}

extension Entry {
  /// Whether it is one of the cache's own, or one that is not to be found any more.
  fileprivate func isHidden(by table: TagTable) -> Bool {
    key.withBytes { ReservedKey.contains($0) }
      || metadata.withBytes { table.hides($0, info.version) }
  }
}
