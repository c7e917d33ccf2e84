internal import CairnStore

extension DiskCache {
  /// The value of a key, or `nil` if the key has no unexpired value. Counts as an access.
  ///
  /// With a memory tier, a value found on disk is kept in memory, within the limits of the tier.
  ///
  /// - Throws: `unencodable`. A read from disk can also throw `corrupt` if the record or the value is
  ///   damaged, `undecodable` if the policy keeps such values, `invalidKey`, `closed`,
  ///   `usedAfterFork` or `system`.
  /// - Complexity: O(1) if the value is in memory, otherwise O(key + value), with a page fault if
  ///   the record is not in the page cache.
  @inlinable
  public func value(forKey key: Key) throws(StoreError) -> Value? {
    guard held != nil else { return try storedValue(forKey: key) }
    let key = try tierKey(key)
    if let value = try currentValue(ofKey: key, { $0.value(forKey: key, at: $1) }) { return value }
    return try fetchValue(key, counts: true)
  }

  /// The value of a key on disk. Counts as an access there.
  @inlinable
  package func storedValue(forKey key: Key) throws(StoreError) -> Value? {
    var value: Value?
    try keyCoder.withBytes(key) { (key) throws(StoreError) in
      try readValue(of: key) { (bytes, version) throws(StoreError) in
        do { value = try valueCoder.decode(bytes) } catch {
          throw .undecodable(error, version: version)
        }
      }
    }
    return value
  }

  /// Calls `body` with a key's value, without copying it, and the value's version. Does not call
  /// `body` if the key has no value. If `body` throws because a value cannot be decoded, the
  /// configured policy applies.
  @usableFromInline
  func readValue(
    of key: RawSpan, _ body: (_ value: RawSpan, _ version: UInt64) throws(StoreError) -> Void
  ) throws(StoreError) {
    try read(key, part: .all, isAccess: true, counts: true) { (record) throws(StoreError) in
      _ = try checkTag(of: record)
      try body(record.value, record.version)
    }
  }

  /// The value of a key, with its metadata and all information about it, from one read. Counts as
  /// an access, but the times in `info` are from before this access.
  ///
  /// - Throws: see `value(forKey:)`.
  public func entry(forKey key: Key) throws(StoreError) -> Entry<Key, Value>? {
    let history = try history()
    let found = try fetch(key) { (record) throws(StoreError) in
      let metadata = try metadata(of: record, wantsRest: true)
      let entry = Entry(
        key: key, value: try decodeValue(record.value, version: record.version),
        metadata: metadata.rest, tags: metadata.tagNames, info: store.info(of: record))
      return (
        entry, TierSource(record, hasTags: !metadata.tags.isEmpty, history: history)
      )
    }
    guard let (entry, source) = found else { return nil }
    if held != nil { promote(entry.value, source, forKey: try tierKey(key)) }
    return entry
  }

  /// Information about a key: version, cost, times and size. Does not read the value and does not
  /// count as an access.
  ///
  /// - Throws: `unencodable`; `corrupt` if the head of the record is damaged, or
  ///   the store's other errors.
  public func info(forKey key: Key) throws(StoreError) -> EntryInfo? {
    if marks.isActive {
      return try fetch(key, part: .head) { (record) in store.info(of: record) }
    }
    let start = callStart()
    defer { note(.read, since: start) }
    return try keyCoder.encode(key) { (key) throws(StoreError) in
      try store.info(forKey: key)
    }
  }

  /// The metadata of a key: the bytes that were stored with its value, or `nil` if the key has no
  /// value. Does not read the value and does not count as an access.
  ///
  /// - Throws: `unencodable`; `corrupt` if the head of the record is damaged, or
  ///   the store's other errors.
  public func metadata(forKey key: Key) throws(StoreError) -> [UInt8]? {
    try fetch(key, part: .head) { (record) throws(StoreError) in
      try metadata(of: record, wantsRest: true).rest
    }
  }

  /// Whether a read of the key would find a value. Does not read the value and does not count as an
  /// access.
  ///
  /// - Throws: `unencodable`; `corrupt` if the head of the record is damaged, or
  ///   the store's other errors.
  @inlinable
  public func contains(_ key: Key) throws(StoreError) -> Bool {
    if held != nil, try peekCurrentValue(ofKey: tierKey(key)) != nil { return true }
    return try containsStored(key)
  }

  /// Whether a key has a value on disk. Does not count as an access.
  @usableFromInline
  package func containsStored(_ key: Key) throws(StoreError) -> Bool {
    if marks.isActive { return try fetch(key, part: .head) { _ in true } ?? false }
    let start = callStart()
    defer { note(.read, since: start) }
    return try keyCoder.encode(key) { (key) throws(StoreError) in
      try store.contains(key)
    }
  }

  /// Calls `body` with the bytes of a value, as the value coder made them, without a copy. Returns
  /// the result of `body`, or `nil` if the key has no value. Counts as an access.
  ///
  /// The bytes stay unchanged and valid while `body` runs, even if the key is removed.
  ///
  /// - Throws: any error of `body`, unchanged. Otherwise a ``/CairnStore/StoreError``: see
  ///   `value(forKey:)`.
  public func withValue<Result>(
    forKey key: Key, _ body: (RawSpan) throws -> Result
  ) throws -> Result? {
    let result = try withBytes(ofValueFor: key) { (bytes) throws(StoreError) in
      Swift.Result { try body(bytes) }
    }
    return try result?.get()
  }

  /// Calls `body` with the bytes of a value on disk. Counts as an access.
  func withBytes<Result>(
    ofValueFor key: Key, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    try fetch(key) { (record) throws(StoreError) -> Result in
      _ = try metadata(of: record, wantsRest: false)
      return try body(record.value)
    }
  }

  /// The value of a key. Setting `nil` removes the value.
  ///
  /// A subscript does not throw. A get that fails returns `nil`, and a set that fails leaves the
  /// old value. The log reports each failure, and `subscriptFailures` of `statistics()` counts them.
  /// To handle errors, use the methods.
  @inlinable
  public subscript(key: Key) -> Value? {
    get {
      do throws(StoreError) { return try value(forKey: key) } catch {
        noteSubscriptFailure(error, .reading)
        return nil
      }
    }
    set {
      do throws(StoreError) {
        if let newValue {
          try setValue(newValue, forKey: key)
        } else {
          try removeValue(forKey: key)
        }
      } catch {
        noteSubscriptFailure(error, .writing)
      }
    }
  }

  @usableFromInline
  func noteSubscriptFailure(_ error: StoreError, _ category: DiagnosticLog.Category) {
    events.counters.subscriptFailures.add()
    if !error.isOfStoppedDisk {
      events.log(.error, category, "\(category.rawValue) by subscript: \(error)")
    }
  }

  // MARK: Records

  /// Finds the record of a key, and returns the result of `body`.
  ///
  /// - Parameters:
  ///   - part: with `.head`, the value is not read, and the call does not count as an access.
  ///   - isAccess: whether the key counts as read.
  ///   - counts: whether to count a hit or a miss. A call that is not an access counts neither.
  /// - Returns: `nil` if the key has no record, or if `body` threw for a value that the policy
  ///   drops.
  func fetch<Result>(
    _ key: Key, part: Record.Part = .all, isAccess: Bool = true, counts: Bool = true,
    _ body: (borrowing PinnedEntry) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    var result: Result?
    try keyCoder.withBytes(key) { (key) throws(StoreError) in
      let isAccess = isAccess && part == .all
      try read(key, part: part, isAccess: isAccess, counts: counts && isAccess) {
        (record) throws(StoreError) in
        result = try body(record)
      }
    }
    return result
  }

  /// Calls `body` with the record of a key, if it has one. Otherwise like `fetch`.
  func read(
    _ key: RawSpan, part: Record.Part, isAccess: Bool, counts: Bool,
    _ body: (borrowing PinnedEntry) throws(StoreError) -> Void
  ) throws(StoreError) {
    let start = calls.start()
    defer { note(.read, since: start) }
    if marks.isActive {
      let record = try unhiddenEntry(forKey: key, part: part, isAccess: isAccess)
      guard let record else { return noteMiss(counts) }
      return try use(record, key, counts: counts, body)
    }
    // One variable for both cases would cost a copy of the record.
    let record = try readingPinnedEntry(forKey: key, part: part, isAccess: isAccess)
    guard let record else { return noteMiss(counts) }
    try use(record, key, counts: counts, body)
  }

  private func noteMiss(_ counts: Bool) { if counts { events.counters.misses.add() } }

  @inline(__always)
  private func use(
    _ record: borrowing PinnedEntry, _ key: RawSpan, counts: Bool,
    _ body: (borrowing PinnedEntry) throws(StoreError) -> Void
  ) throws(StoreError) {
    do throws(StoreError) {
      try body(record)
      if counts { events.counters.hits.add() }
    } catch {
      try followPolicy(error, key)
      if counts { events.counters.misses.add() }
    }
  }

  func metadata(
    of record: borrowing PinnedEntry, wantsRest: Bool
  ) throws(StoreError) -> CacheMetadata {
    try metadata(record.metadata, version: record.version, wantsRest: wantsRest)
  }

  func decode(_ record: borrowing PinnedEntry) throws(StoreError) -> Value {
    _ = try checkTag(of: record)
    return try decodeValue(record.value, version: record.version)
  }

  /// Throws if another coder wrote the value. See `metadata`.
  ///
  /// - Returns: whether the entry has tags.
  func checkTag(of record: borrowing PinnedEntry) throws(StoreError) -> Bool {
    let bytes = record.metadata
    // Nearly all values take this path.
    if valueCoder.tag == 0 && bytes.byteCount == 0 { return false }
    _ = try metadata(bytes, version: record.version, wantsRest: false)
    return CacheMetadata.hasTags(bytes)
  }

  /// Decodes metadata, and checks that this cache's coder wrote the value.
  ///
  /// - Throws: `undecodable`.
  func metadata(
    _ bytes: RawSpan, version: UInt64, wantsRest: Bool
  ) throws(StoreError) -> CacheMetadata {
    let metadata: CacheMetadata
    do throws(CodingFailure) {
      metadata = try CacheMetadata(decoding: bytes, wantsRest: wantsRest)
    } catch {
      throw .undecodable(version: version, reason: error.reason)
    }
    if CacheMetadata.hasTags(bytes) { marks.noteUse() }
    guard metadata.tag == valueCoder.tag else {
      throw .otherTag(metadata.tag, valueCoder.tag, version: version)
    }
    return metadata
  }

  func decodeValue(_ bytes: RawSpan, version: UInt64) throws(StoreError) -> Value {
    do { return try valueCoder.decode(bytes) } catch {
      throw .undecodable(error, version: version)
    }
  }

  /// Applies the configured policy to a value that could not be read.
  ///
  /// - Throws: the error, if the policy is to keep the value or the error does not concern
  ///   decoding.
  func followPolicy(_ error: StoreError, _ key: RawSpan) throws(StoreError) {
    guard case .undecodable(let version, _) = error else { throw error }
    events.counters.undecodable.add()
    guard configuration.dropsUnreadableValues else { throw error }
    try drop(key, version: version, error)
  }

  /// Calls `read`. If `read` throws because the value is undecodable, removes the value and returns
  /// `nil`, whatever the policy, because the caller can load the value again. If the value cannot
  /// be removed, the log reports why. A damaged value also counts as missing, but stays until
  /// another replaces it.
  ///
  /// - Parameters:
  ///   - counts: whether to count a miss.
  ///   - noteDamage: called with an error that reports a damaged value.
  @usableFromInline
  func orDropped<Result>(
    _ key: Key, counts: Bool = true, noteDamage: (StoreError) -> Void = { _ in },
    _ read: () throws(StoreError) -> Result?
  ) throws(StoreError) -> Result? {
    do throws(StoreError) { return try read() } catch {
      let version: UInt64
      switch error {
      case .undecodable(let found, _): version = found
      case .corrupt:
        if counts { events.counters.misses.add() }
        noteDamage(error)
        return nil
      default: throw error
      }
      if counts { events.counters.misses.add() }
      do throws(StoreError) {
        try keyCoder.encode(key) { (key) throws(StoreError) in
          try drop(key, version: version, error)
        }
      } catch {
        switch error {
        case .closed, .usedAfterFork: throw error
        default:
          events.log(
            .error, .writing, "an unreadable value could not be removed: \(error)")
        }
      }
      return nil
    }
  }

  private func drop(
    _ key: RawSpan, version: UInt64, _ error: StoreError
  ) throws(StoreError) {
    // The store's writer may be able to decode the value, and otherwise removes it.
    if store.isFollowing { return }
    // Remove only that version, because another caller may have written a newer one since.
    try dropping(error) { () throws(StoreError) in
      // A read waits for no sync. If a power cut undoes this, the next read drops the value again.
      try store.compareAndRemove(forKey: key, expecting: version, durability: .process)
    }
  }

  /// Removes a value that a read reported as damaged.
  func dropDamaged(
    _ key: RawSpan, _ error: StoreError, _ entered: inout PendingWrite
  ) throws(StoreError) {
    try dropping(error) { () throws(StoreError) in
      try store.removeDamagedValue(forKey: key, &entered)
    }
  }

  /// Removes an unreadable value by calling `remove`. If the disk takes no more writes, the value
  /// stays, and each read of it is a miss.
  private func dropping(
    _ error: StoreError, _ remove: () throws(StoreError) -> Bool
  ) throws(StoreError) {
    do throws(StoreError) { if try remove() { noteDrop(error) } } catch {
      if !error.isOfStoppedDisk { throw error }
    }
  }

  private func noteDrop(_ error: StoreError) {
    events.counters.drops.add()
    var isDamaged = true
    if case .undecodable = error { isDamaged = false }
    // After a change of type, each value causes this message. At a higher level, the messages would
    // flood standard error.
    events.log(
      isDamaged ? .warning : .debug, isDamaged ? .damage : .coding,
      "removed an unreadable value: \(error)")
  }
}
