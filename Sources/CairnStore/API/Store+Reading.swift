extension Store {
  /// The value of a key, copied out, or `nil` where there is none or it has expired.
  ///
  /// Counts as an access. Never writes to disk.
  ///
  /// - Throws: `corrupt` where the record or the value is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  /// - Complexity: O(key + value); a page fault where the record is not in memory.
  @inlinable
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.value(forKey: key) }
      return try follower.read { (reader) throws(StoreError) in
        try reader.peekValue(forKey: key)
      }
    }
  }

  /// Calls `body` with the value of a key where it lies, without a copy, and returns what it
  /// returns; `nil` where there is no value.
  ///
  /// The compiler keeps the span from escaping. The bytes cannot change or go away while `body`
  /// runs, even if the key is removed meanwhile. `body` runs outside all locks and may use the
  /// store.
  ///
  /// - Throws: what `body` throws, unchanged; else a ``StoreError`` as `value(forKey:)`.
  @inlinable
  public func withValue<Result>(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    _ body: (RawSpan) throws -> Result
  ) throws -> Result? {
    try Self.use(
      key.withBytes { (key) throws(StoreError) in
        guard let follower else { return try reader.pinnedValue(forKey: key) }
        return try follower.read { (reader) throws(StoreError) in
          try reader.peekPinnedValue(forKey: key)
        }
      }, body
    )
  }

  /// A parameter, since the compiler would put a variable of this type on the heap.
  @inlinable
  static func use<Result>(
    _ pinned: borrowing PinnedValue?, _ body: (RawSpan) throws -> Result
  ) rethrows -> Result? {
    switch pinned {
    case .some(let pinned): try body(pinned.bytes)
    case .none: nil
    }
  }

  /// The value of a key, copied out, or `nil` where there is none or it has expired. Is no access: neither the order
  /// of use nor an idle limit learns of it.
  ///
  /// - Throws: as `value(forKey:)`.
  /// - Complexity: as `value(forKey:)`.
  @inlinable
  public func peekValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.peekValue(forKey: key) }
      return try follower.read { (reader) throws(StoreError) in
        try reader.peekValue(forKey: key)
      }
    }
  }

  /// The value of a key with everything the store knows about it, from one read. Counts as an access.
  ///
  /// - Throws: as `value(forKey:)`.
  @inlinable
  public func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Entry? {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.entry(forKey: key) }
      return try follower.read { (reader) throws(StoreError) in
        try reader.peekEntry(forKey: key)
      }
    }
  }

  /// What the store knows about a key. The value is not read, and this does not count as an access.
  ///
  /// - Throws: `corrupt` where the head of the record is damaged; `invalidKey`, `closed`, `usedAfterFork`, `system`.
  @inlinable
  public func info(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> EntryInfo? {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.info(forKey: key) }
      return try follower.read { (reader) throws(StoreError) in
        try reader.info(forKey: key)
      }
    }
  }

  /// Whether a read of the key would find a value. The value is not read, and this does not count as an access.
  ///
  /// - Throws: `corrupt` where the head of the record is damaged; `invalidKey`, `closed`, `usedAfterFork`, `system`.
  @inlinable
  public func contains(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.contains(key) }
      return try follower.read { (reader) throws(StoreError) in try reader.contains(key) }
    }
  }

  /// The values of many keys, in the order of the keys; `nil` for each that has none.
  ///
  /// - Throws: as `value(forKey:)`, at the first key whose read fails.
  /// - Complexity: that of a read, for each key; records that are not in the processor's cache are waited for together.
  @inlinable
  public func values(
    forKeys keys: some Collection<some ByteSource>
  ) throws(StoreError) -> [[UInt8]?] {
    var values: [[UInt8]?] = []
    values.reserveCapacity(keys.count)
    var hashes: [UInt64] = []
    hashes.reserveCapacity(Store.groupKeyCount)
    if follower != nil {
      for key in keys { values.append(try value(forKey: key)) }
      return values
    }
    var rest = keys[...]
    while !rest.isEmpty {
      let group = rest.prefix(Store.groupKeyCount)
      rest = rest.dropFirst(Store.groupKeyCount)
      for key in group {
        hashes.append(
          try key.withBytes { (key) throws(StoreError) in try reader.prefetchEntry(of: key) }
        )
      }
      for hash in hashes { reader.prefetchRecord(ofHash: hash) }
      for (number, key) in group.enumerated() {
        values.append(
          try key.withBytes { (key) throws(StoreError) in
            try reader.value(forKey: key, hash: hashes[number])
          })
      }
      hashes.removeAll(keepingCapacity: true)
    }
    return values
  }

  /// How many keys are looked for together: more would push each other out of the cache.
  @usableFromInline static var groupKeyCount: Int { 16 }

  /// Calls `body` with each key that begins with `prefix`, until it returns `.stop`, in no particular order.
  ///
  ///     try store.forEachKey(prefix: "session/") { key in .next }
  ///
  /// Every key is visited at most once, and every key that is there for the whole time exactly
  /// once. Writes that happen meanwhile may be seen or not. `body` runs outside all locks and may
  /// use the store. Iterating does not count as an access.
  ///
  /// An entry that is damaged, or that the medium does not give, is passed over; when all others were visited, or
  /// `body` has ended it, the error of the first such entry is thrown.
  ///
  /// - Throws: what `body` throws, unchanged; else a ``StoreError`` as `value(forKey:)`.
  /// - Complexity: O(keys), whatever the prefix.
  @inlinable
  public func forEachKey(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable, _ body: (RawSpan) throws -> Visit
  ) throws {
    try prefix.withBytes { prefix in try currentReader.forEachKey(prefix: prefix, body) }
  }

  /// Calls `body` with each key; otherwise as `forEachKey(prefix:_:)`.
  @inlinable
  public func forEachKey(_ body: (RawSpan) throws -> Visit) throws {
    try forEachKey(prefix: "", body)
  }

  /// The keys that begin with `prefix`, in no particular order; otherwise as `forEachKey(prefix:_:)`.
  ///
  ///     let sessions = try store.keys(prefix: "session/")
  public func keys(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable = ""
  ) throws(StoreError) -> [[UInt8]] {
    var keys: [[UInt8]] = []
    do {
      try forEachKey(prefix: prefix) { key in
        keys.append([UInt8](copying: key))
        return .next
      }
    } catch let error as StoreError {
      throw error
    } catch {
      preconditionFailure("the closure throws nothing: \(error)")
    }
    return keys
  }

  /// Calls `body` with each entry whose key begins with `prefix`; otherwise as `forEachKey`.
  @inlinable
  public func forEachEntry(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable, _ body: (Entry) throws -> Visit
  ) throws {
    try prefix.withBytes { prefix in try currentReader.forEachEntry(prefix: prefix, body) }
  }

  /// Calls `body` with each entry; otherwise as `forEachKey`.
  @inlinable
  public func forEachEntry(_ body: (Entry) throws -> Visit) throws {
    try forEachEntry(prefix: "", body)
  }
}
