public import CairnStore

/// Changes of a ``DiskCache`` that will happen together: after a crash, all of them are found on disk or none.
///
/// Filled by the closure given to `DiskCache.write`. Of several changes of a key the last counts, and the
/// others are not written at all. Nothing is visible in the cache before the closure has returned.
public struct DiskBatch<Key: Hashable & Sendable, Value: Sendable>: ~Copyable {
  struct Change {
    var key: Key
    /// The key's.
    var bytes: [UInt8]
    /// `nil`: it is removed.
    var value: Value?
    var options: EntryOptions
  }

  private(set) var changes: [Change] = []
  /// The last change of each key.
  private(set) var last: [[UInt8]: Int] = [:]
  private let cache: DiskCache<Key, Value>

  init(for cache: DiskCache<Key, Value>) { self.cache = cache }

  /// How many changes there are so far, those included that a later one takes the place of.
  public var count: Int { changes.count }

  /// Sets the value of a key.
  ///
  /// - Parameters: as those of `DiskCache.setValue`.
  /// - Throws: `unencodableKey`. A value that cannot be encoded or is too large is found when the closure has
  ///   returned: nothing is written then.
  public mutating func setValue(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard
  ) throws(CacheError) {
    try add(key, value, try cache.stored(options))
  }

  /// Removes the value of a key, if there is one.
  ///
  /// - Throws: `unencodableKey`.
  public mutating func removeValue(forKey key: Key) throws(CacheError) {
    try add(key, nil, .standard)
  }

  private mutating func add(
    _ key: Key, _ value: Value?, _ options: EntryOptions
  ) throws(CacheError) {
    let bytes = try cache.bytes(of: key)
    try bytes.withBytes { (key) throws(CacheError) in try cache.checkKey(key) }
    last[bytes] = changes.count
    changes.append(Change(key: key, bytes: bytes, value: value, options: options))
  }
}

extension DiskCache {
  /// Makes many changes at once, as one batch: after a crash, all of them are found or none.
  ///
  ///     try cache.write { batch in
  ///       try batch.setValue(page, forKey: url, options: .metadata(tag))
  ///       try batch.removeValue(forKey: oldURL)
  ///     }
  ///
  /// All of it is held in memory until it is written, which is when the closure has returned. Reads of single
  /// keys may see the changes arrive one after the other. A batch that takes more bytes than the store's
  /// `batchByteLimit`, by default 256 MiB, throws `batchTooLarge`; it is never split.
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws, unchanged; else a ``CacheError`` as `setValue`: nothing was written then,
  ///   but for `durabilityUnknown`.
  @discardableResult
  public func write<Result>(
    durability: Durability? = nil, _ body: (inout DiskBatch<Key, Value>) throws -> Result
  ) throws -> Result {
    var batch = DiskBatch(for: self)
    let result = try body(&batch)
    try commit(batch, durability: durability)
    return result
  }

  /// Sets the values of many keys as one batch; as `write`. Of a key that comes twice only the later value is
  /// written.
  ///
  /// - Throws: as `setValue`: nothing was written then.
  public func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>, options: EntryOptions = .standard,
    durability: Durability? = nil
  ) throws(CacheError) {
    var batch = DiskBatch(for: self)
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, options: options)
    }
    try commit(batch, durability: durability)
  }

  /// Sets the values of many keys as one batch, as the configuration says.
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(CacheError) {
    try setValues(pairs, durability: nil)
  }

  /// Writes a batch, then brings memory and observers up to date.
  private func commit(
    _ batch: consuming DiskBatch<Key, Value>, durability: Durability?
  ) throws(CacheError) {
    try commit(batch.changes, last: batch.last, durability: durability)
  }

  func commit(
    _ changes: [DiskBatch<Key, Value>.Change], last: [[UInt8]: Int], durability: Durability?
  ) throws(CacheError) {
    do throws(CacheError) {
      return try commitOnce(changes, last: last, durability: durability)
    } catch {
      guard case .store(.vanished) = error else { throw error }
    }
    // The records of a batch are one store's.
    try recreate()
    try commitOnce(changes, last: last, durability: durability)
  }

  private func commitOnce(
    _ changes: [DiskBatch<Key, Value>.Change], last: [[UInt8]: Int], durability: Durability?
  ) throws(CacheError) {
    let store = store
    var records: Batch
    do throws(StoreError) { records = try store.makeBatch() } catch { throw .store(error) }
    var written: [WrittenChange<Key, Value>] = []
    var byteCount = 0
    // Whoever removes a key while its value is loaded finds it outdated from here on; and the write of a value
    // that was loaded before comes before this one, under the same lock.
    for change in changes { flights.noteWrite(change.bytes) }
    // Of one key the last change alone: else observers would be told that one went before it came.
    for (index, change) in changes.enumerated() where last[change.bytes] == index {
      var new = WrittenChange<Key, Value>(change: change)
      if let value = change.value {
        new.entry = try published(value, change.key, change.options)
        try encode(value) { (value) throws(CacheError) in
          new.byteCount = value.byteCount
          byteCount += change.bytes.count + value.byteCount
          try storing { () throws(StoreError) in
            try records.setValue(value, forKey: change.bytes, options: change.options)
          }
        }
      } else {
        try storing { () throws(StoreError) in try records.removeValue(forKey: change.bytes) }
      }
      written.append(new)
    }
    recency?.tellBeforeWrite(of: written.count, byteCount)
    var removals: [RemovalEvent] = []
    var version: UInt64
    let pending: PendingWrite
    do throws(StoreError) {
      (version, pending) = try store.enter(records, durability: durability, removals: &removals)
    } catch {
      drop(removals)
      try noteFailure(.store(error), of: written)
      events.settle([], after: removals)
      throw .store(error)
    }
    drop(removals)
    var insertions: [DiskEvents<Key, Value>.Insertion] = []
    for new in written {
      if let entry = new.entry, let held {
        entry.publish(to: held, version: version, byteCount: new.byteCount)
      } else if let held {
        // Another removal may have come first. Memory may not know of that one yet.
        held.invalidate(try tierKey(new.change.key), through: version - 1, .removed)
      }
      if new.change.value != nil {
        insertions.append(.init(key: new.change.key, bytes: new.change.bytes, version: version))
      }
      version += 1
    }
    events.settle(insertions, after: removals)
    do throws(StoreError) {
      for new in written where new.change.value == nil && flights.retained > 0 {
        try new.change.bytes.withBytes { (key) throws(StoreError) in
          try removeRetained(key, durability: durability)
        }
      }
      try store.finish(pending)
    } catch {
      try noteFailure(.store(error), of: written)
      throw .store(error)
    }
  }

  private func noteFailure(
    _ error: CacheError, of written: [WrittenChange<Key, Value>]
  ) throws(CacheError) {
    if held == nil { return }
    for new in written { noteFailure(error, of: try tierKey(new.change.key)) }
  }
}

/// What is written of a batch for one key.
private struct WrittenChange<Key: Hashable & Sendable, Value: Sendable> {
  let change: DiskBatch<Key, Value>.Change
  /// What memory is to hold; `nil` of a removal, and without a tier in memory.
  var entry: PublishedEntry<Key, Value>?
  /// The value's.
  var byteCount = 0
}
