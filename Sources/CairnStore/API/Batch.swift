/// An atomic group of writes: after a crash, the store has all of them or none. It checks no reads
/// of its own; see `require`, and `Store.transact` for writes that depend on reads.
///
/// The closure passed to `Store.write` fills the batch. If the batch writes a key twice, the last
/// operation counts. The store sees none of the operations until the closure returns.
public struct Batch: ~Copyable {
  @usableFromInline var records: BatchRecords

  @usableFromInline
  init(_ records: consuming BatchRecords) { self.records = records }

  /// The number of operations so far.
  public var count: Int { records.operations.count }

  /// Sets the value of a key.
  ///
  /// - Parameters:
  ///   - value: the bytes; an empty value is valid. The batch copies the bytes, except that it
  ///     keeps an array, an array slice or a string of 64 KiB or more as it is.
  ///   - key: 1 to 65,535 bytes.
  ///   - lifetime: how long the entry lives. `nil` means that of the options, or the configured one.
  ///   - options: cost, lifetime, idle limit and metadata.
  /// - Throws: `invalidKey`, `tooLarge`,
  ///   `unsupportedOption`. An operation that throws leaves the batch unchanged.
  /// - Complexity: O(bytes).
  @inlinable
  public mutating func setValue(
    _ value: some ByteSource, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (bytes) throws(StoreError) in
        let isLarge = bytes.byteCount >= BatchRecords.keptByteCount
        let kept = isLarge ? BatchRecords.kept(value) : nil
        if let lifetime {
          try records.add(key: key, value: bytes, of: kept, options: options.with(lifetime))
        } else {
          try records.add(key: key, value: bytes, of: kept, options: options)
        }
      }
    }
  }

  /// Sets the value of a key to a copy of bytes that the batch cannot keep, such as a `RawSpan`;
  /// otherwise like the other form.
  @inlinable
  public mutating func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        if let lifetime {
          try records.add(key: key, value: value, options: options.with(lifetime))
        } else {
          try records.add(key: key, value: value, options: options)
        }
      }
    }
  }

  /// A store holds bytes: use a `DiskCache` for any other type, or encode the value yourself.
  @available(
    *, unavailable,
    message:
      "a Store holds bytes: [UInt8], Data (with `import Cairn`), String or another ByteSource. For Codable values use store.view(of:) or a DiskCache, with `import Cairn`, or encode the value to bytes first"
  )
  public mutating func setValue<Value>(
    _ value: Value, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) {
    fatalError("unavailable")
  }

  /// Removes the value of a key, if it has one.
  ///
  /// - Throws: `invalidKey`, `tooLarge`.
  @inlinable
  public mutating func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try records.add(key: key, value: nil, options: .standard)
    }
  }

  /// Lets the batch be written only if a key has this version at that moment.
  ///
  /// - Parameters:
  ///   - version: from `info(forKey:)` or a write, or `nil` if the key must be absent or expired.
  ///   - key: may also be written by the batch.
  /// - Throws: `invalidKey`. If the version is another, the write of the batch throws `conflict`, and
  ///   nothing is written.
  @inlinable
  public mutating func require(
    _ version: UInt64?, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in try records.require(version, ofKey: key) }
  }

  /// Sets the value of a key; see the public form.
  package mutating func setValue(
    _ value: RawSpan, forKey key: [UInt8], options: EntryOptions
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try records.add(key: key, value: value, options: options)
    }
  }
}
