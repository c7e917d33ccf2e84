internal import CairnStore

// What a front needs, which has to know the version of what is shown.
extension DiskCache {
  /// As `observe`, with the version of what came or went; of a removal of all, the last that went.
  package func observeVersions(
    _ body: @escaping @Sendable (_ event: CacheEvent<Key>, _ version: UInt64) -> Void
  ) -> CacheObservation {
    events.add(body)
  }

  /// The bytes that tell a key from others.
  package func bytes(of key: Key) throws(CacheError) -> [UInt8] {
    try keyCoder.encode(key) { (key) throws(CacheError) in [UInt8](copying: key) }
  }

  /// The value of a key with what a promotion needs, from one read. Counts as an access.
  ///
  /// - Parameter counts: whether it is a hit, where there is one. Whether it is a miss, the front says by
  ///   `noteMiss`: the value may have come there meanwhile.
  package func fetchedValue(
    forKey key: Key, counts: Bool
  ) throws(CacheError) -> FetchedValue<Value>? {
    let found = try fetch(key, counts: false) { (record) throws(CacheError) in
      FetchedValue(try decode(record), store.info(of: record))
    }
    if counts && found != nil { events.counters.hits.add() }
    return found
  }

  func noteMiss() { events.counters.misses.add() }

  /// An entry, and the same as `fetchedValue(forKey:)` gives it.
  func fetchedEntry(
    forKey key: Key
  ) throws(CacheError) -> (entry: CacheEntry<Key, Value>, fetched: FetchedValue<Value>)? {
    try fetch(key) { (record) throws(CacheError) in
      let info = store.info(of: record)
      let fetched = FetchedValue(try decode(record), info)
      let metadata = try metadata(of: record, wantsRest: true).rest
      let entry = CacheEntry(
        key: key, value: fetched.value, info: CacheEntryInfo(info), metadata: metadata)
      return (entry, fetched)
    }
  }

  /// The metadata of a key, and its version.
  func versionedMetadata(
    forKey key: Key
  ) throws(CacheError) -> (metadata: [UInt8], version: UInt64)? {
    try fetch(key, part: .head) { (record) throws(CacheError) in
      (try metadata(of: record, wantsRest: true).rest, record.version)
    }
  }

  /// As `withValue`, with the version.
  func withVersionedValue<Result>(
    forKey key: Key, _ body: (RawSpan, _ version: UInt64) throws -> Result
  ) throws -> Result? {
    var failure: (any Error)?
    let result = try fetch(key) { (record) throws(CacheError) -> Result? in
      _ = try metadata(of: record, wantsRest: false)
      do { return try body(record.value, record.version) } catch {
        failure = error
        return nil
      }
    }
    if let failure { throw failure }
    return result ?? nil
  }
}

/// A value from disk with what a front keeps of it.
package struct FetchedValue<Value: Sendable>: Sendable {
  package let value: Value
  package let version: UInt64
  /// What it was given; `nil` where it was given none.
  package let cost: Int?
  /// Its bytes on disk.
  package let byteCount: Int
  package let expires: Timestamp?
  package let idleLimit: Duration?

  init(_ value: Value, _ info: EntryInfo) {
    self.value = value
    version = info.version
    cost = info.cost
    byteCount = info.valueByteCount
    expires = info.expires
    idleLimit = info.idleLimit
  }
}

/// What was written of a value.
@usableFromInline
struct WrittenValue: Sendable {
  @usableFromInline var version: UInt64
  /// Its bytes on disk.
  @usableFromInline var byteCount: Int

  @usableFromInline
  init(version: UInt64 = 0, byteCount: Int = 0) {
    self.version = version
    self.byteCount = byteCount
  }
}
