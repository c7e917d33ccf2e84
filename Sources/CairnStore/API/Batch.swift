/// Writes that are made together or not at all, and the reads that they depend on: a transaction.
///
/// The closure passed to `Store.write` fills the batch. The store sees none of its writes until the
/// closure returns; the batch's own reads see them at once. If the batch writes a key twice, the
/// last write counts.
///
/// Reads are checked when the batch is written, and no lock is held until then: optimistic
/// concurrency control (Kung and Robinson, 1981).
public struct Batch: ~Copyable {
  package let store: Store
  @usableFromInline var records: BatchRecords
  /// The versions that it has read, by key: `nil` for an absent key.
  private(set) var read: [[UInt8]: UInt64?] = [:]
  /// Why a read failed. The batch is then not written, even if the closure ignores the error.
  private var failure: StoreError?

  @usableFromInline
  init(on store: Store, _ records: consuming BatchRecords) {
    self.store = store
    self.records = records
  }

  /// The number of writes so far.
  package var count: Int { records.operations.count }

  // MARK: Reading

  /// The value of a key: what this batch has written, or else what the store has. The batch is
  /// written only if the store's value is then still the same, or the key is still absent.
  ///
  /// Two keys may be read at different moments. If that matters, the batch is not written, and the
  /// closure runs again.
  ///
  /// - Throws: see `Store.value(forKey:)`. `conflict` if the value has changed since this batch
  ///   read it: let the closure throw it.
  /// - Complexity: O(key + value). Counts as an access. The first read after writes takes O(writes).
  public mutating func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    try entry(forKey: key)?.value
  }

  /// The entry of a key. Its version is 0 if the batch itself has written it.
  package mutating func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> ByteEntry? {
    do throws(StoreError) {
      return try key.withBytes { (key) throws(StoreError) in try find(key) }
    } catch {
      failure = failure ?? error
      throw error
    }
  }

  private mutating func find(_ key: RawSpan) throws(StoreError) -> ByteEntry? {
    let bytes = key.copied()
    if let written = try records.lastOperation(onKey: bytes) {
      return written.isPut ? records.entry(of: written) : nil
    }
    let entry = try store.currentReader.entry(forKey: key)
    if let version = read[bytes] {
      if version != entry?.version { throw .conflict(path: store.path, key: bytes) }
    } else {
      try records.require(entry.map { .version($0.version) } ?? .absent, ofKey: key)
      read[bytes] = .some(entry?.version)
    }
    return entry
  }

  // MARK: Writing

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
  public mutating func require(
    _ version: UInt64?, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try records.require(version.map { .version($0) } ?? .absent, ofKey: key)
    }
  }

  /// Adds to a counter and returns the new number. Reads the counter: see `value(forKey:)`.
  ///
  /// - Parameters: see `Store.increment`.
  /// - Throws: `notACounter`; otherwise see `value(forKey:)` and `setValue`.
  @discardableResult
  public mutating func increment(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, by amount: Int64 = 1,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) -> Int64 {
    let old = try entry(forKey: key)
    let increment = try Increment(old, by: amount, options.with(lifetime))
    try setValue(increment.value, forKey: key, options: increment.options)
    return increment.number
  }

  /// Sets the value of a key; see the public form.
  package mutating func setValue(
    _ value: RawSpan, forKey key: [UInt8], options: EntryOptions
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try records.add(key: key, value: value, options: options)
    }
  }
  /// Lets the batch be written only if a key has this version at that moment and `isWanted` returns
  /// `true`. `isWanted` is called under a lock, so it must only read.
  package mutating func require(
    _ version: UInt64, forKey key: [UInt8], ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) {
    try records.require(.versionAndWanted(version, isWanted), ofKey: key.rawSpan)
  }

  // MARK: Ending

  /// What to write: everything, or only the checks of the reads if the closure failed.
  consuming func end(isFailed: Bool) throws(StoreError) -> BatchRecords {
    if let failure { throw failure }
    if !isFailed { return records }
    var reads = try store.makeBatch()
    for (key, version) in read {
      try key.withBytes { (key) throws(StoreError) in
        try reads.records.require(version.map { .version($0) } ?? .absent, ofKey: key)
      }
    }
    return reads.records
  }
}
