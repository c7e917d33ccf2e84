extension Store {
  /// Sets the value of a key.
  ///
  /// When the call returns, every later read finds the value, and the value survives what its
  /// durability class covers.
  ///
  /// - Parameters:
  ///   - value: the bytes. May be empty.
  ///   - key: 1 to 65,535 bytes.
  ///   - lifetime: how long the entry lives. `nil` means that of the options, or the configured one.
  ///   - options: cost, lifetime, idle limit and metadata.
  ///   - durability: `nil` for the configured class.
  /// - Returns: the entry's version.
  /// - Throws: `invalidKey`, `tooLarge`, `unsupportedOption`, `noSpace`,
  ///   `outOfMemory`: nothing was written. `durabilityUnknown`: the value was written but may not
  ///   survive a power cut, and the store is poisoned. `poisoned`, `vanished`, `readOnly`,
  ///   `closed`, `usedAfterFork`, `system`.
  /// - Complexity: O(key + value); one copy.
  @inlinable
  @discardableResult
  public func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    // With the common `nil`, the options are not copied.
    if let lifetime { return try set(value, key, options.with(lifetime), durability) }
    return try set(value, key, options, durability)
  }

  @inlinable
  @inline(__always)
  func set(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable,
    _ options: EntryOptions, _ durability: Durability?
  ) throws(StoreError) -> UInt64 {
    try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.setValue(value, forKey: key, options: options, durability: durability)
      }
    }
  }

  /// A store holds bytes: use a `DiskCache` for any other type, or encode the value yourself.
  @available(
    *, unavailable,
    message:
      "a Store holds bytes: [UInt8], Data (with `import Cairn`), String or another ByteSource. For Codable values use store.view(of:) or a DiskCache, with `import Cairn`, or encode the value to bytes first"
  )
  @discardableResult
  public func setValue<Value>(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> UInt64 {
    fatalError("unavailable")
  }

  /// Sets the value of a key if its version is the expected one.
  ///
  /// - Parameters:
  ///   - value: see `setValue`.
  ///   - key: 1 to 65,535 bytes.
  ///   - version: the version that the key must have, or `nil` if the key must be absent or
  ///     expired.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: see `setValue`.
  ///   - durability: `nil` for the configured class.
  /// - Returns: the new version or, on a mismatch, the current one.
  /// - Throws: see `setValue`. A mismatch does not throw.
  @inlinable
  public func compareAndSet(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64?,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> CompareAndSetResult {
    try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.compareAndSet(
          value, forKey: key, expecting: version, options: options.with(lifetime),
          durability: durability)
      }
    }
  }

  /// Removes the value of a key.
  ///
  /// - Returns: whether the key had a value. If it had none, nothing is written, but the call still
  ///   waits for the requested durability: an earlier removal of the key may not be durable yet.
  /// - Throws: see `setValue`.
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
  /// - Returns: whether the version matched and the value was removed.
  /// - Throws: see `setValue`; `corrupt` if the record is damaged.
  @inlinable
  public func compareAndRemove(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      try engine.removeValue(forKey: key, expecting: version, durability: durability)
    }
  }

  /// Makes a value's lifetime longer or shorter. The call writes the value again, with its metadata,
  /// cost and idle limit, so the entry gets a new version, and an observer learns that the old one
  /// was replaced.
  ///
  /// - Parameters:
  ///   - lifetime: counted from now.
  ///   - key: 1 to 65,535 bytes.
  ///   - durability: `nil` for the configured class.
  /// - Returns: whether the key had a value.
  /// - Throws: see `setValue`; `corrupt` if the record is damaged.
  /// - Complexity: O(key + value). Writes nothing if the lifetime ends at that millisecond already.
  @discardableResult
  public func setLifetime(
    _ lifetime: Lifetime, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    durability: Durability? = nil
  ) throws(StoreError) -> Bool {
    try key.withBytes { (key) throws(StoreError) in
      try engine.finishing { (pending) throws(StoreError) in
        try engine.setLifetime(lifetime, forKey: key, durability: durability, &pending)
      }
    }
  }

  /// Removes every entry.
  ///
  /// The removal is on disk when the call returns, whatever the store's durability class.
  /// Meanwhile, reads and small writes in other threads continue, except for writes that wait for a
  /// sync themselves.
  ///
  /// - Parameter progress: called after each file is removed, on this thread, with no lock held.
  ///   Reads already find no entry.
  /// - Complexity: O(segments), whatever the number of keys. Reclaims the space. A segment keeps its
  ///   space as long as a zero-copy read or a snapshot holds it.
  /// - Throws: see `setValue`.
  public func removeAll(
    progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) {
    try engine.totalRemoval.run(progress: progress)
  }
}
