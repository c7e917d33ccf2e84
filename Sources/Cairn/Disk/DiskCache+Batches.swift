public import CairnStore

/// Changes of a ``DiskCache`` that are made together or not at all, and the reads that they depend
/// on: a transaction.
///
/// The closure passed to `DiskCache.write` fills the batch. If it changes a key twice, only the
/// last change is written. The cache shows none of the changes until the closure returns; the batch's
/// own reads see them at once.
public struct DiskBatch<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
  struct Change {
    var key: Key
    /// The key's bytes.
    var bytes: [UInt8]
    /// `nil` for a removal.
    var value: Value?
    var options: EntryOptions
  }

  /// What a key had when it was read.
  struct Read {
    /// `nil` for an absent key.
    var version: UInt64?
    var tags: [[UInt8]]
  }

  /// What to write, and what to check.
  struct Contents: Sendable {
    var changes: [Change] = []
    /// The last change of each key.
    var last: [[UInt8]: Int] = [:]
    var reads: [[UInt8]: Read] = [:]
  }

  private(set) var contents = Contents()
  /// Why a read failed. The batch is then not written, even if the closure ignores the error.
  private(set) var failure: StoreError?
  private let cache: DiskCache<Key, Value>

  init(for cache: DiskCache<Key, Value>) { self.cache = cache }

  /// The number of changes so far, including overridden ones.
  package var count: Int { contents.changes.count }

  /// The value of a key: what this batch has set, or else what the cache has on disk. The batch is
  /// written only if the cache's value is then still the same, or the key is still absent.
  ///
  /// - Throws: see `DiskCache.value(forKey:)`. `conflict` if the value has changed since this batch
  ///   read it: let the closure throw it.
  /// - Complexity: O(key + value). Counts as an access.
  public mutating func value(forKey key: Key) throws(StoreError) -> Value? {
    let bytes = try cache.bytes(of: key)
    if let change = contents.last[bytes] { return contents.changes[change].value }
    do throws(StoreError) { return try find(key, bytes) } catch {
      failure = failure ?? error
      throw error
    }
  }

  private mutating func find(_ key: Key, _ bytes: [UInt8]) throws(StoreError) -> Value? {
    try cache.checkKey(bytes.rawSpan)
    // A removed tag hides an entry from reads, but not from the check.
    try cache.settle(bytes.rawSpan)
    let present = try cache.present(key)
    if let earlier = contents.reads[bytes] {
      if earlier.version != present?.info.version {
        throw .conflict(path: cache.path, key: bytes)
      }
    } else {
      contents.reads[bytes] = Read(version: present?.info.version, tags: present?.tags ?? [])
    }
    return present?.value
  }

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
    contents.last[bytes] = contents.changes.count
    contents.changes.append(Change(key: key, bytes: bytes, value: value, options: options))
  }

  /// What to write: everything, or only the checks of the reads if the closure failed.
  consuming func end(isFailed: Bool) throws(StoreError) -> Contents {
    if let failure { throw failure }
    return isFailed ? Contents(reads: contents.reads) : contents
  }
}

extension DiskCache {
  /// Reads and changes several keys, as if no other call used the cache meanwhile: a transaction.
  /// After a crash, the cache has all of the changes or none.
  ///
  ///     try cache.write { batch in
  ///       let stock = try batch.value(forKey: "stock") ?? 0
  ///       try batch.setValue(stock - 1, forKey: "stock")
  ///       try batch.setValue(1, forKey: "sold/7", options: .tags(["orders"]))
  ///     }
  ///
  /// When `body` returns, the call checks that every key it has read through the batch still has the
  /// same version, or is still absent, and makes all changes at once. If a key has changed, nothing
  /// is written and `body` runs again, so it must have no side effects. See `Store.write`.
  ///
  /// The batch stays in memory until the closure returns, and is then written. Reads of single keys
  /// may see the changes one by one. A batch of more than 256 MiB throws
  /// `tooLarge`.
  ///
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, unchanged. `conflict` if other calls changed keys that `body` had
  ///   read, 100 times in a row. Otherwise a ``/CairnStore/StoreError``: see `setValue`. Nothing was
  ///   written, except with `durabilityUnknown`.
  @discardableResult
  public func write<Result>(
    durability: Durability? = nil, _ body: (inout DiskBatch<Key, Value>) throws -> Result
  ) throws -> Result {
    var attempts = BatchAttempts()
    while true {
      var batch = DiskBatch(for: self)
      let result = Swift.Result { try body(&batch) }
      let reads = batch.contents.reads
      do throws(StoreError) {
        let contents = try batch.end(isFailed: result.isFailure)
        try finishing(.batch) { (entered) throws(StoreError) in
          try enterBatch(
            contents, durability: result.isFailure ? .process : durability, &entered)
        }
      } catch {
        store.pause(try attempts.pause(after: error, result) { reads[$0] != nil })
        continue
      }
      return try result.get()
    }
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
      try enterBatch(batch.contents, durability: durability, &entered)
    }
  }

  /// Enters a batch, then updates memory and calls observers. All its records belong to one store.
  func enterBatch(
    _ batch: DiskBatch<Key, Value>.Contents, durability: Durability?,
    _ entered: inout PendingWrite
  ) throws(StoreError) {
    let changes = batch.changes
    var records = try store.makeBatch()
    var written: [WrittenChange<Key, Value>] = []
    // From here on, a load of these keys is outdated. A loaded value that was kept before was
    // written before this batch, under the same lock.
    for change in changes { flights.noteWrite(change.bytes) }
    // Report only the last change of each key. Otherwise observers would be told of a removal
    // before the insertion.
    for (index, change) in changes.enumerated() where batch.last[change.bytes] == index {
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
    for (key, read) in batch.reads { try require(read, ofKey: key, in: &records) }
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

extension DiskCache {
  /// Lets a batch be written only if a key is as it was read, and none of its tags was removed.
  private func require(
    _ read: DiskBatch<Key, Value>.Read, ofKey key: [UInt8], in records: inout Batch
  ) throws(StoreError) {
    guard let version = read.version, !read.tags.isEmpty else {
      return try records.require(read.version, forKey: key)
    }
    try records.require(version, forKey: key) { [marks] in
      !marks.forbids(read.tags, since: version, isLoaded: false)
    }
  }
}

/// What a batch writes for one key.
private struct WrittenChange<Key: Hashable & Sendable, Value: Sendable> {
  let change: DiskBatch<Key, Value>.Change
  /// The bytes of the value.
  var byteCount = 0
}
