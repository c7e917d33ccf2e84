public import CairnStore

/// Iterating over all entries. Each call makes a snapshot of the cache and visits every key in it
/// once, in no particular order, while writes continue. Iterating does not count as an access.
extension DiskCache {
  /// Calls `body` with each key, until `body` returns `.stop`. `body` runs with no lock held and
  /// may use the cache.
  ///
  /// Skips keys that cannot be decoded, and logs them: the first as a warning. Also skips damaged
  /// entries: after visiting all others, the call throws the error of the first.
  ///
  /// - Returns: the number of keys that could not be decoded.
  /// - Throws: any error of `body`, unchanged. Otherwise a ``/CairnStore/StoreError``.
  /// - Complexity: O(keys), with a read of each record's head.
  @discardableResult
  public func forEachKey(_ body: (Key) throws -> Visit) throws -> Int {
    try forEachHead { key, _ in try body(key) }
  }

  /// Calls `body` with each key and the metadata of its record. Otherwise like `forEachKey`.
  @discardableResult
  func forEachHead(_ body: (Key, _ metadata: RawSpan) throws -> Visit) throws -> Int {
    var skippedCount = 0
    try visiting { snapshot, table in
      try snapshot.forEachHead { bytes, metadata, version in
        if ReservedKey.contains(bytes) || table.hides(metadata, version) { return .next }
        guard let key = decodableKey(bytes, isFirst: skippedCount == 0) else {
          skippedCount += 1
          return .next
        }
        return try body(key, metadata)
      }
    }
    return skippedCount
  }

  /// All keys that a read would find, except keys that cannot be decoded.
  ///
  /// - Throws: see `forEachKey`. If a record is damaged, this call throws and returns no keys.
  /// - Complexity: the same as `forEachKey`.
  public func keys() throws(StoreError) -> [Key] {
    try collectingKeys { body in try forEachHead { key, _ in try body(key) } }
  }

  /// The keys that `visit` passes to its closure.
  func collectingKeys(
    _ visit: (_ body: (Key) throws -> Visit) throws -> Int
  ) throws(StoreError) -> [Key] {
    var keys: [Key] = []
    do {
      _ = try visit { key in
        keys.append(key)
        return .next
      }
    } catch {
      // The closure throws nothing.
      throw error as? StoreError ?? .undecodable(error, version: 0)
    }
    return keys
  }

  /// Calls `body` with each entry, until `body` returns `.stop`. `body` runs with no lock held and
  /// may use the cache.
  ///
  ///     try cache.forEachEntry { entry in
  ///       print(entry.key, entry.info.valueByteCount)
  ///       return .next
  ///     }
  ///
  /// Skips entries whose value cannot be decoded or has another tag, and drops them if the
  /// configured policy is to drop such values. Also skips entries whose key cannot be decoded, but
  /// never drops them. The log reports all skipped entries.
  ///
  /// - Returns: the number of skipped entries.
  /// - Throws: any error of `body`, unchanged. Otherwise a ``/CairnStore/StoreError``. If a record
  ///   or a value is damaged, the call visits all other entries first and then throws `corrupt`.
  /// - Complexity: O(bytes).
  @discardableResult
  public func forEachEntry(_ body: (Entry<Key, Value>) throws -> Visit) throws -> Int {
    var skippedCount = 0
    try visiting { snapshot, table in
      try snapshot.forEachEntry { stored in
        if stored.isHidden(by: table) { return .next }
        guard let entry = try decodableEntry(stored, isFirst: skippedCount == 0) else {
          skippedCount += 1
          return .next
        }
        return try body(entry)
      }
    }
    return skippedCount
  }

  /// Calls `body` with a snapshot, and the marks that hide entries.
  private func visiting(_ body: (Snapshot, TagTable) throws -> Void) throws {
    // Read before the snapshot, because a mark is removed only after the entries it hides.
    let table = try removedTags()
    let snapshot = try store.snapshot()
    defer { snapshot.close() }
    try body(snapshot, table)
  }

  /// Decodes a key. On failure, logs the error and returns `nil`.
  ///
  /// - Parameter isFirst: whether it would be the first entry that the call skips.
  func decodableKey(_ bytes: RawSpan, isFirst: Bool) -> Key? {
    do throws(StoreError) { return try keyCoder.decode(bytes) } catch {
      logSkipped(error, isFirst: isFirst)
      return nil
    }
  }

  /// After a change of type, every entry may be skipped, which would flood standard error.
  private func logSkipped(_ error: StoreError, isFirst: Bool) {
    events.log(isFirst ? .warning : .info, .coding, "skipped: \(error)")
  }

  private func decodableEntry(
    _ entry: ByteEntry, isFirst: Bool
  ) throws(StoreError) -> Entry<Key, Value>? {
    guard let key = decodableKey(entry.key.rawSpan, isFirst: isFirst) else { return nil }
    do throws(StoreError) {
      let version = entry.info.version
      let coded = try metadata(entry.metadata.rawSpan, version: version, wantsRest: true)
      let value = try decodeValue(entry.value.rawSpan, version: version)
      return Entry(
        key: key, value: value, metadata: coded.rest, tags: coded.tagNames,
        info: entry.info)
    } catch {
      do throws(StoreError) {
        try followPolicy(error, entry.key.rawSpan)
      } catch {
        guard case .undecodable = error else { throw error }
        logSkipped(error, isFirst: isFirst)
      }
      return nil
    }
  }
}

extension ByteEntry {
  /// Whether the entry has one of the cache's own keys, or a mark hides the entry.
  fileprivate func isHidden(by table: TagTable) -> Bool {
    ReservedKey.contains(key.rawSpan) || table.hides(metadata.rawSpan, info.version)
  }
}
