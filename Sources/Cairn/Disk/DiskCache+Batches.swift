public import CairnStore

/// Atomic changes to a ``DiskCache``: after a crash, the disk has all of them or none.
///
/// The closure passed to `DiskCache.write` fills the batch. If it changes a key twice, only the
/// last change is written. The cache shows none of the changes until the closure returns.
public struct DiskBatch<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
  struct Change {
    var key: Key
    /// The key's bytes.
    var bytes: [UInt8]
    /// `nil` for a removal.
    var value: Value?
    var options: EntryOptions
  }

  private(set) var changes: [Change] = []
  /// The last change of each key.
  private(set) var last: [[UInt8]: Int] = [:]
  private let cache: DiskCache<Key, Value>

  init(for cache: DiskCache<Key, Value>) { self.cache = cache }

  /// The number of changes so far, including overridden ones.
  public var count: Int { changes.count }

  /// Sets the value of a key.
  ///
  /// - Parameters: see `DiskCache.setValue`.
  /// - Throws: `unencodable`, `invalidKey`, `invalidTag`. If a value
  ///   cannot be encoded or is too large, `write` throws after the closure returns, and nothing is
  ///   written.
  public mutating func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) {
    try add(key, value, try cache.stored(options.with(lifetime)))
  }

  /// Removes the value of a key, if it has one.
  ///
  /// - Throws: `unencodable`, `invalidKey`.
  public mutating func removeValue(forKey key: Key) throws(StoreError) {
    try add(key, nil, .standard)
  }

  private mutating func add(
    _ key: Key, _ value: Value?, _ options: EntryOptions
  ) throws(StoreError) {
    let bytes = try cache.bytes(of: key)
    try cache.checkKey(bytes.rawSpan)
    last[bytes] = changes.count
    changes.append(Change(key: key, bytes: bytes, value: value, options: options))
  }
}

extension DiskCache {
  /// Makes many changes as one atomic batch: after a crash, the cache has all of them or none.
  ///
  ///     try cache.write { batch in
  ///       try batch.setValue(page, forKey: url, options: .metadata(tag))
  ///       try batch.removeValue(forKey: oldURL)
  ///     }
  ///
  /// A batch is not a transaction: it does not check what `body` has read. See `Store.write`.
  ///
  /// The batch stays in memory until the closure returns, and is then written. Reads of single keys
  /// may see the changes one by one. A batch of more than 256 MiB throws
  /// `tooLarge`.
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, unchanged. Otherwise a ``/CairnStore/StoreError``: see
  ///   `setValue`. Nothing was written, except with `durabilityUnknown`.
  @discardableResult
  public func write<Result>(
    durability: Durability? = nil, _ body: (inout DiskBatch<Key, Value>) throws -> Result
  ) throws -> Result {
    var batch = DiskBatch(for: self)
    let result = try body(&batch)
    try finishing(.batch) { (entered) throws(StoreError) in
      try enterBatch(batch.changes, last: batch.last, durability: durability, &entered)
    }
    return result
  }

  /// Sets the values of many keys as one atomic batch. See `write`. If a key occurs twice, its last
  /// value counts.
  ///
  /// - Throws: see `setValue`. Nothing was written, except with `durabilityUnknown`.
  public func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) {
    var batch = DiskBatch(for: self)
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, lifetime: lifetime, options: options)
    }
    try finishing(.batch) { (entered) throws(StoreError) in
      try enterBatch(batch.changes, last: batch.last, durability: durability, &entered)
    }
  }

  /// Enters a batch, then updates memory and calls observers. All its records belong to one store.
  func enterBatch(
    _ changes: [DiskBatch<Key, Value>.Change], last: [[UInt8]: Int], durability: Durability?,
    _ entered: inout PendingWrite
  ) throws(StoreError) {
    var records = try store.makeBatch()
    var written: [WrittenChange<Key, Value>] = []
    // From here on, a load of these keys is outdated. A loaded value that was kept before was
    // written before this batch, under the same lock.
    for change in changes { flights.noteWrite(change.bytes) }
    // Report only the last change of each key. Otherwise observers would be told of a removal
    // before the insertion.
    for (index, change) in changes.enumerated() where last[change.bytes] == index {
      var new = WrittenChange(change: change)
      if let value = change.value {
        try valueCoder.withBytes(value) { (value) throws(StoreError) in
          new.byteCount = value.byteCount
          try records.setValue(value, forKey: change.bytes, options: change.options)
        }
      } else {
        try records.removeValue(forKey: change.bytes)
      }
      written.append(new)
    }
    var removals: [RemovalEvent] = []
    var version: UInt64
    do throws(StoreError) {
      (version, entered) = try store.enter(
        records, durability: durability, removals: &removals)
    } catch {
      drop(removals)
      for new in written { dropKept(new.change.key) }
      events.settle([], after: removals)
      throw error
    }
    // A load may have begun since.
    if flights.isNoting { for change in changes { flights.noteWrite(change.bytes) } }
    drop(removals)
    var insertions: [DiskEvents<Key, Value>.Insertion] = []
    for new in written {
      if let value = new.change.value {
        if held != nil {
          take(
            TierStep(version: version, byteCount: new.byteCount), of: value,
            forKey: tierKey(new.change.key, bytes: new.change.bytes), new.change.options)
        }
        insertions.append(.init(key: new.change.key, bytes: new.change.bytes, version: version))
      }
      version += 1
    }
    events.settle(insertions, after: removals)
    // The batch is written, whether or not expired values of its keys can be removed too.
    for new in written where new.change.value == nil {
      try? enterRemovalOfRetained(new.change.bytes, durability: durability, &entered)
    }
  }
}

/// What a batch writes for one key.
private struct WrittenChange<Key: Hashable & Sendable, Value: Sendable> {
  let change: DiskBatch<Key, Value>.Change
  /// The bytes of the value.
  var byteCount = 0
}
