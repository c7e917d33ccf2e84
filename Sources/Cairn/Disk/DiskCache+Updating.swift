public import CairnStore

extension DiskCache {
  /// Changes the value of a key, without losing concurrent changes.
  ///
  ///     try visits.update(forKey: page) { ($0 ?? 0) + 1 }
  ///
  /// The call reads the value on disk, calls `change`, and writes the result unless another caller
  /// has written the key in the meantime. In that case it starts over, so `change` may run more
  /// than once and must have no side effects. `change` runs outside all locks and may use the
  /// cache, but must not write this key: each attempt would then fail, without end.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: if an option is `nil`, an existing entry keeps its value for the option, and a
  ///     new entry gets the configured value. A lifetime counts from now.
  ///   - durability: `nil` for the configured class.
  ///   - change: makes the new value from the current value, or from `nil` if the key has none.
  ///     Returning `nil` removes the value.
  /// - Returns: the new value and its version, or `nil` if the key now has no value. If the key had
  ///   none before either, the call writes nothing and waits for no sync.
  /// - Throws: any error of `change`, unchanged, and the errors of `value(forKey:)`, for example
  ///   for a damaged value; nothing is then written. Otherwise see `setValue`.
  /// - Complexity: O(key + value) for each attempt. If several callers change a key at once, one of
  ///   them always succeeds.
  @discardableResult
  public func update(
    forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard,
    durability: Durability? = nil, _ change: (_ value: Value?) throws -> Value?
  ) throws -> (value: Value, version: UInt64)? {
    while true {
      let present = try present(key)
      guard let value = try change(present?.value) else {
        guard let version = present?.info.version else { return nil }
        if try compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
        continue
      }
      let options = try stored(
        options.with(lifetime).keeping(present?.info, metadata: present?.metadata),
        keeping: present?.tags)
      let result = try compareAndWrite(
        value, forKey: key, expecting: present?.info.version, options, durability: durability)
      if case .stored(let version) = result { return (value, version) }
    }
  }

  /// The entry that an update finds. Counts as an access.
  func present(_ key: Key) throws(StoreError) -> PresentEntry<Value>? {
    try fetch(key) { (record) throws(StoreError) in
      let metadata = try metadata(of: record, wantsRest: true)
      return PresentEntry(
        value: try decodeValue(record.value, version: record.version),
        info: store.info(of: record), metadata: metadata.rest, tags: metadata.tags)
    }
  }
}

/// An entry to update, as the caller saw it.
struct PresentEntry<Value: Sendable>: Sendable {
  let value: Value
  let info: EntryInfo
  let metadata: [UInt8]
  let tags: [[UInt8]]
}
