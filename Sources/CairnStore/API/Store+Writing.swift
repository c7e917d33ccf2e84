extension Store {
  /// Sets the value of a key.
  ///
  /// When it returns, every later read finds the value, and it survives what `durability` says.
  ///
  /// - Parameters:
  ///   - value: may be empty, which is a value as any other.
  ///   - key: 1 to 65,535 bytes.
  ///   - options: cost, lifetime, idle limit and metadata.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the entry's version.
  /// - Throws: `invalidKey`, `valueTooLarge`, `metadataTooLarge`, `noSpace`: nothing was written.
  ///   `durabilityUnknown`: it was written and may not survive a power loss; the store is
  ///   poisoned. `poisoned`, `readOnly`, `closed`, `usedAfterFork`, `system`.
  /// - Complexity: O(key + value); one copy.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    return try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.setValue(value, forKey: key, options: options, durability: durability)
      }
    }
  }

  /// Sets the value of a key, which lives for `lifetime`; as `setValue(_:forKey:options:durability:)`.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, lifetime: Lifetime,
    durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    try setValue(value, forKey: key, options: .lifetime(lifetime), durability: durability)
  }

  /// A store holds bytes: a value of any other type goes into a `DiskCache`, or is made bytes of by the caller.
  @available(
    *, unavailable,
    message:
      "a Store holds bytes: [UInt8], Data (with `import Cairn`), String or another ByteSource. For Codable values use store.view(of:) or a DiskCache, with `import Cairn`, or encode the value to bytes first"
  )
  @discardableResult
  public func setValue<Value>(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    fatalError("unavailable")
  }

  /// A store holds bytes: a value of any other type goes into a `DiskCache`, or is made bytes of by the caller.
  @available(
    *, unavailable,
    message:
      "a Store holds bytes: [UInt8], Data (with `import Cairn`), String or another ByteSource. For Codable values use store.view(of:) or a DiskCache, with `import Cairn`, or encode the value to bytes first"
  )
  @discardableResult
  public func setValue<Value>(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    fatalError("unavailable")
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: as with `setValue`.
  ///   - key: 1 to 65,535 bytes.
  ///   - version: the version that the key must have; `nil`: it must be absent or expired.
  ///   - options: as with `setValue`.
  ///   - durability: `nil`: the configuration's.
  /// - Returns: the new version, or the one that was found instead.
  /// - Throws: as `setValue`; a mismatch is no error.
  @inlinable
  public func compareAndSet(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64?,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> CompareAndSetResult {
    return try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.compareAndSet(
          value, forKey: key, expecting: version, options: options, durability: durability)
      }
    }
  }

  /// Removes the value of a key.
  ///
  /// - Returns: whether there was one. Where not, nothing is written; that it is gone gets the durability asked
  ///   for all the same, since an earlier removal may have promised less.
  /// - Throws: as `setValue`.
  @inlinable
  @discardableResult
  public func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      try engine.removeValue(forKey: key, expecting: nil, durability: durability)
    }
  }

  /// Removes the value of a key if its version is the expected one.
  ///
  /// - Returns: whether it was, and is removed.
  /// - Throws: as `setValue`; `corrupt` where the record is damaged.
  @inlinable
  public func compareAndRemove(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      try engine.removeValue(forKey: key, expecting: version, durability: durability)
    }
  }

  /// Writes many changes at once: after a crash, all of them are found or none.
  ///
  ///     try store.write { batch in
  ///       try batch.setValue("1", forKey: "a")
  ///       try batch.removeValue(forKey: "b")
  ///     }
  ///
  /// It is the way to remove several keys together; `removeValues(forKeys:)` removes one after the other. Nothing is
  /// written, and no lock is held, before `body` returns. Reads of single keys may see the changes arrive one
  /// after the other; while a batch of 8,192 operations or more arrives, other writes go on in between. A snapshot sees
  /// all of it or nothing. A batch without a change writes nothing; what is there and what is not gets the durability asked
  /// for all the same.
  ///
  /// - Throws: what `body` throws, unchanged: nothing is written then. Else as `setValue`.
  /// - Returns: what `body` returns.
  @inlinable
  @discardableResult
  public func write<Result>(
    durability: Durability? = nil, _ body: (inout Batch) throws -> Result
  ) throws -> Result {
    var batch = try makeBatch()
    let result = try body(&batch)
    try engine.commit(batch.records, durability: durability)
    return result
  }

  /// Sets the values of many keys at once, as one batch.
  ///
  /// - Parameters: as `setValue`, for each of them.
  /// - Throws: as `write`; nothing was written then.
  @inlinable
  public func setValues(
    _ pairs: some Sequence<(key: some ByteSource, value: some ByteSource)>,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) {
    var batch = try makeBatch()
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, options: options)
    }
    try engine.commit(batch.records, durability: durability)
  }

  /// Has a value live for `lifetime` from now on, if that is longer than it would otherwise: a life is
  /// never shortened. The value is not written again and keeps its version, and this does not count as an access of
  /// it. One without an end stays without one; an idle limit stays what it is.
  ///
  /// - Returns: whether the key has a value.
  /// - Throws: as `setValue`; `corrupt` where the record is damaged.
  /// - Complexity: O(key): it appends a record with the key, or nothing where the value lives as long
  ///   anyway.
  @inlinable
  @discardableResult
  public func extendLifetime(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, to lifetime: Duration,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      try engine.extendLifetime(forKey: key, to: lifetime, durability: durability)
    }
  }

  /// Has the values of many keys live longer, each as `extendLifetime(forKey:to:)` has it. Each is a
  /// write of its own, and one sync serves all.
  ///
  /// - Returns: how many of the keys have a value.
  @discardableResult
  public func extendLifetimes(
    forKeys keys: some Sequence<some ByteSource>, to lifetime: Duration,
    durability: Durability? = nil
  ) throws(StoreError) -> Int {
    var extending = try engine.makeExtending(to: lifetime)
    for key in keys {
      try key.withBytes { (key) throws(StoreError) in try engine.extend(key, in: &extending) }
    }
    return try engine.finish(extending, durability: durability)
  }

  /// Removes everything.
  ///
  /// The removal is as durable as the store's class. With `.durable`, it is on disk when the call returns.
  /// With `.process` and `.interval`, the call waits for no sync: the death of the process cannot undo the
  /// removal, but a power failure right after it can. Then everything is there again, as it was.
  ///
  /// - Parameter progress: told after each file that went, on this thread, with no lock held. The entries
  ///   are gone by then.
  /// - Complexity: O(segments), whatever the number of keys: one change of the manifest, and the
  ///   removal of the files. Space is given back at once, or where no sync is waited for, a moment later;
  ///   but for segments that zero-copy reads still hold.
  /// - Throws: as `setValue`.
  public func removeAll(
    progress: (RemoveAllProgress) -> Void = { _ in }
  ) throws(StoreError) {
    try engine.totalRemoval.run(progress: progress)
  }
}
