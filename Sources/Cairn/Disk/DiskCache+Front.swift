internal import CairnStore

// Reads for a front, which has to know the version of what is shown.
extension DiskCache {
  /// The value of a key with what a promotion needs, from one read. Counts as an access.
  ///
  /// - Parameter counts: whether it is a hit, where there is one. Whether it is a miss, the front says by
  ///   `noteMiss`: the value may have come there meanwhile.
  func fetchedValue(
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

extension FetchedValue {
  init(_ value: Value, _ info: EntryInfo) {
    self.init(
      value: value, version: info.version, cost: info.cost, expires: info.expires,
      idleLimit: info.idleLimit)
  }
}
