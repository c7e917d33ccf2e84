public import CairnStore

extension DiskCache {
  /// Changes the value of a key in one call, so that no change is lost that others make at the same time.
  ///
  ///     try visits.update(forKey: page) { ($0 ?? 0) + 1 }
  ///
  /// The old value is read from disk. The new value is written only if nobody has written the key since the old one was read; else all of it
  /// begins again. So `change` may be called more than once, and must have no side effects. It is called under
  /// no lock, and may use the cache.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - options: what is not given is as the entry has it; the configuration decides for an entry that is not there.
  ///     A lifetime counts from now on, in both tiers.
  ///   - durability: `nil`: the configuration's.
  ///   - change: makes the new value of the one that is there; of `nil` where there is none. `nil` removes it.
  /// - Returns: the new value and its version; `nil` where there is none now. Where there was none either,
  ///   nothing was written, nor made durable.
  /// - Throws: what `change` throws, unchanged; as `value(forKey:)`, so also where a value is damaged or cannot
  ///   be decoded and is kept: nothing was written then. Else as `setValue`.
  /// - Complexity: O(key + value) for each round. Of those who write a key at once, one gets on with each.
  @discardableResult
  public func update(
    forKey key: Key, options: EntryOptions = .standard, durability: Durability?,
    _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    while true {
      let present = try present(key)
      try noteShown(present?.info.version, of: key)
      guard let value = try change(present?.value) else {
        guard let version = present?.info.version else { return nil }
        if try compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
        continue
      }
      let options = try stored(
        options.keeping(present?.info, metadata: present?.metadata), keeping: present?.tags)
      let result = try compareAndWrite(
        value, forKey: key, expecting: present?.info.version, options, durability: durability)
      if case .stored(let version) = result { return (value, version) }
    }
  }

  /// Changes the value of a key in one call, with the configuration's durability.
  @discardableResult
  public func update(
    forKey key: Key, options: EntryOptions = .standard,
    _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    try update(forKey: key, options: options, durability: nil, change)
  }

  /// What an update finds of a key. Counts as an access.
  func present(_ key: Key) throws(CacheError) -> PresentEntry<Value>? {
    try fetch(key) { (record) throws(CacheError) in
      let metadata = try metadata(of: record, wantsRest: true)
      return PresentEntry(
        value: try decodeValue(record.value, version: record.version),
        info: store.info(of: record), metadata: metadata.rest, tags: metadata.tags)
    }
  }
}

/// An entry that is about to be updated, as it was given.
struct PresentEntry<Value: Sendable>: Sendable {
  let value: Value
  let info: EntryInfo
  let metadata: [UInt8]
  let tags: [[UInt8]]
}
