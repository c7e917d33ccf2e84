extension Store {
  /// A copy of the value of a key, or `nil` if the key has no unexpired value.
  ///
  /// Counts as an access, but never writes to disk.
  ///
  /// - Throws: `corrupt` if the record or the value is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  /// - Complexity: O(key + value); a page fault if the record is not in memory.
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

  /// Calls `body` with the value of a key, without copying the value. Returns the result of `body`,
  /// or `nil` if the key has no value.
  ///
  /// The compiler does not let the span escape. The bytes stay unchanged and valid while `body`
  /// runs, even if the key is removed. `body` runs outside all locks and may use the store.
  ///
  /// - Throws: any error of `body`, unchanged. Otherwise a ``StoreError``: see `value(forKey:)`.
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

  /// Takes the value as a parameter, because the compiler would put a variable of this type on the
  /// heap.
  @inlinable
  static func use<Result>(
    _ pinned: borrowing PinnedValue?, _ body: (RawSpan) throws -> Result
  ) rethrows -> Result? {
    switch pinned {
    case .some(let pinned): try body(pinned.bytes)
    case .none: nil
    }
  }

  /// A copy of the value of a key, or `nil` if the key has no unexpired value. Does not count as an
  /// access: it changes neither the access order nor an idle limit.
  ///
  /// - Throws: see `value(forKey:)`.
  /// - Complexity: the same as `value(forKey:)`.
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

  /// The value of a key, with its metadata and all information about it, from one read. Counts as
  /// an access.
  ///
  /// - Throws: see `value(forKey:)`.
  @inlinable
  public func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Entry<[UInt8], [UInt8]>? {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.entry(forKey: key) }
      return try follower.read { (reader) throws(StoreError) in
        try reader.peekEntry(forKey: key)
      }
    }
  }

  /// Information about a key: version, times, sizes and cost. Does not read the value and does not
  /// count as an access.
  ///
  /// - Throws: `corrupt` if the head of the record is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
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

  /// Whether a read of the key would find a value. Does not read the value and does not count as an
  /// access.
  ///
  /// - Throws: `corrupt` if the head of the record is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  @inlinable
  public func contains(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      guard let follower else { return try reader.contains(key) }
      return try follower.read { (reader) throws(StoreError) in try reader.contains(key) }
    }
  }

  /// The values of many keys, in the order of the keys, with `nil` for each key without a value.
  ///
  /// - Throws: see `value(forKey:)`. The first read that fails ends the call.
  /// - Complexity: the same as a read for each key. The call fetches up to 16 records from memory
  ///   at the same time, which makes it faster than separate reads.
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

  /// The number of keys looked up together. The records of more keys would evict each other from
  /// the processor's cache.
  @usableFromInline static var groupKeyCount: Int { 16 }

  /// Calls `body` with each key that begins with `prefix`, in no particular order, until `body`
  /// returns `.stop`.
  ///
  ///     try store.forEachKey(prefix: "session/") { key in .next }
  ///
  /// Visits no key twice, and misses no key that exists throughout the call. May see some
  /// concurrent writes and miss others: to see one moment, iterate over a `snapshot()`. `body` runs
  /// outside all locks and may use the store. Iterating does not count as an access.
  ///
  /// Skips damaged or unreadable entries. At the end of the iteration, the call throws the error of
  /// the first such entry.
  ///
  /// - Throws: any error of `body`, unchanged. Otherwise a ``StoreError``: see `value(forKey:)`.
  /// - Complexity: O(keys), whatever the prefix.
  @inlinable
  public func forEachKey(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable = "",
    _ body: (RawSpan) throws -> Visit
  ) throws {
    try prefix.withBytes { prefix in try currentReader.forEachKey(prefix: prefix, body) }
  }

  /// The keys that begin with `prefix`, in no particular order; otherwise like
  /// `forEachKey(prefix:_:)`.
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

  /// Calls `body` with each entry whose key begins with `prefix`; otherwise like `forEachKey`.
  @inlinable
  public func forEachEntry(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable = "",
    _ body: (Entry<[UInt8], [UInt8]>) throws -> Visit
  ) throws {
    try prefix.withBytes { prefix in try currentReader.forEachEntry(prefix: prefix, body) }
  }

}
