public import CairnStore

/// Changes of a ``DiskCache`` that will happen together: after a crash, all of them are found or none.
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
    var attributes: EntryAttributes
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
    _ value: Value, forKey key: Key, cost: Int? = nil, lifetime: Lifetime = .standard,
    idleLimit: Duration? = nil, metadata: [UInt8] = []
  ) throws(CacheError) {
    try add(key, value, cache.attributes(cost, lifetime, idleLimit, metadata))
  }

  /// Removes the value of a key, if there is one.
  ///
  /// - Throws: `unencodableKey`.
  public mutating func removeValue(forKey key: Key) throws(CacheError) {
    try add(key, nil, EntryAttributes())
  }

  private mutating func add(
    _ key: Key, _ value: Value?, _ attributes: EntryAttributes
  ) throws(CacheError) {
    let bytes = try cache.bytes(of: key)
    last[bytes] = changes.count
    changes.append(Change(key: key, bytes: bytes, value: value, attributes: attributes))
  }
}

extension DiskCache {
  /// Makes many changes at once, as one batch: after a crash, all of them are found or none.
  ///
  ///     try cache.write { batch in
  ///       try batch.setValue(page, forKey: url, cost: 10, metadata: tag)
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
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime = .standard,
    idleLimit: Duration? = nil, durability: Durability? = nil
  ) throws(CacheError) {
    var batch = DiskBatch(for: self)
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, lifetime: lifetime, idleLimit: idleLimit)
    }
    try commit(batch, durability: durability)
  }

  /// Sets the values of many keys as one batch, as the configuration says.
  public func setValues(_ pairs: some Sequence<(key: Key, value: Value)>) throws(CacheError) {
    try setValues(pairs, lifetime: .standard, idleLimit: nil)
  }

  private func commit(
    _ batch: consuming DiskBatch<Key, Value>, durability: Durability?
  ) throws(CacheError) {
    let changes = batch.changes.map { (key: $0.key, isRemoval: $0.value == nil) }
    let written = try commitUntold(batch, durability: durability)
    for (change, written) in zip(changes, written) {
      guard let written else { continue }
      // Of a removal too: it may have found nothing since another's, of which the front is not told yet, came
      // before it.
      events.tellFront(
        change.key, version: written.version, cause: change.isRemoval ? .removed : .replaced)
    }
  }

  /// As `setValues`; the front is not told.
  ///
  /// - Returns: what was written of each value; `nil` of those whose key comes again later.
  func writeBatch(
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime, idleLimit: Duration?,
    durability: Durability?
  ) throws(CacheError) -> [WrittenValue?] {
    var batch = DiskBatch(for: self)
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, lifetime: lifetime, idleLimit: idleLimit)
    }
    return try commitUntold(batch, durability: durability)
  }

  /// Writes a batch; the front is told of what goes, but not of what comes.
  ///
  /// - Returns: what was written of each change; `nil` of those whose key comes again later. A removal has no
  ///   bytes.
  private func commitUntold(
    _ batch: consuming DiskBatch<Key, Value>, durability: Durability?
  ) throws(CacheError) -> [WrittenValue?] {
    let (changes, last) = (batch.changes, batch.last)
    do throws(CacheError) {
      return try commit(changes, last: last, durability: durability)
    } catch {
      guard case .store(.vanished) = error else { throw error }
    }
    // The records of a batch are one store's.
    try recreate()
    return try commit(changes, last: last, durability: durability)
  }

  private func commit(
    _ changes: [DiskBatch<Key, Value>.Change], last: [[UInt8]: Int], durability: Durability?
  ) throws(CacheError) -> [WrittenValue?] {
    let store = store
    var records: Batch
    do throws(StoreError) { records = try store.makeBatch() } catch { throw .store(error) }
    var written = [WrittenValue?](repeating: nil, count: changes.count)
    var count = 0
    var byteCount = 0
    // Whoever removes a key while its value is loaded finds it outdated from here on; and the write of a value
    // that was loaded before comes before this one, under the same lock.
    for change in changes { flights.noteWrite(change.bytes) }
    // Of one key the last change alone: else observers would be told that one went before it came.
    for (index, change) in changes.enumerated()
    where last[change.bytes] == index {
      if let value = change.value {
        try valueCoder.withBytes(value) { (value) throws(CacheError) in
          written[index] = WrittenValue(byteCount: value.byteCount)
          byteCount += change.bytes.count + value.byteCount
          try storing { () throws(StoreError) in
            try records.setValue(value, forKey: change.bytes, attributes: change.attributes)
          }
        }
      } else {
        written[index] = WrittenValue()
        try storing { () throws(StoreError) in try records.removeValue(forKey: change.bytes) }
      }
      count += 1
    }
    events.tellFrontBeforeWrite(of: count, byteCount)
    var version: UInt64 = 0
    var unwritten = Optional(records)
    let removals = try events.holdingRemovals { () throws(CacheError) in
      guard let records = unwritten.take() else { return }
      do throws(StoreError) { version = try store.commit(records, durability: durability) } catch {
        throw .store(error)
      }
    }
    var insertions: [DiskEvents<Key>.Insertion] = []
    for (index, change) in changes.enumerated() where written[index] != nil {
      written[index]?.version = version
      if change.value != nil {
        insertions.append(.init(key: change.key, bytes: change.bytes, version: version))
      }
      version += 1
    }
    events.noteInsertions(insertions, after: removals)
    return written
  }
}
