public import CairnStore

extension TieredCache {
  /// The value of a key, or `nil` where there is none or it has expired. Counts as an access.
  ///
  /// A value that is found on disk is kept in memory, as far as the limits there let it.
  ///
  /// - Throws: where it is not in memory, as `DiskCache.value(forKey:)`.
  /// - Complexity: O(1) where it is in memory, else O(key + value).
  @inlinable
  public func value(forKey key: Key) throws(CacheError) -> Value? {
    let key = try tierKey(key)
    var ticket = CacheTicket()
    var news: BelowNews = []
    if let value = held.readAbove(key, ticket: &ticket, news: &news) {
      if !news.isEmpty { tellRecency(of: key, news) }
      return value
    }
    return try fetchValue(key, ticket, counts: true)
  }

  /// The value of a key with all that the cache knows of it and the bytes that were stored beside it, from
  /// one read of the disk. Counts as an access; the times in `info` are those before it.
  ///
  /// - Throws: as `DiskCache.value(forKey:)`.
  public func entry(forKey key: Key) throws(CacheError) -> CacheEntry<Key, Value>? {
    let key = try tierKey(key)
    let before = held.info(forKey: key)
    let ticket = held.ticket(forKey: key)
    guard let found = try disk.fetchedEntry(forKey: key.key) else {
      noteShownAbsent(key)
      return nil
    }
    promote(found.fetched, forKey: key, ticket)
    held.noteAccess(key)
    var entry = found.entry
    entry.info.note(before)
    return entry
  }

  /// What the cache knows of a key. The value is not read, and this is no access.
  ///
  /// - Throws: as `DiskCache.info(forKey:)`.
  public func info(forKey key: Key) throws(CacheError) -> CacheEntryInfo? {
    let key = try tierKey(key)
    let before = held.info(forKey: key)
    guard var info = try disk.info(forKey: key.key) else {
      noteShownAbsent(key)
      return nil
    }
    noteSeen(info.version, of: key)
    info.note(before)
    return info
  }

  /// The bytes that were stored beside the value of a key; empty where there are none, `nil` where there is
  /// no value. The value is not read, and this is no access.
  ///
  /// - Throws: as `DiskCache.metadata(forKey:)`.
  public func metadata(forKey key: Key) throws(CacheError) -> [UInt8]? {
    let key = try tierKey(key)
    guard let found = try disk.versionedMetadata(forKey: key.key) else {
      noteShownAbsent(key)
      return nil
    }
    noteSeen(found.version, of: key)
    return found.metadata
  }

  /// Whether a read of the key would find a value. Is no access.
  ///
  /// - Throws: as `DiskCache.contains(_:)`.
  @inlinable
  public func contains(_ key: Key) throws(CacheError) -> Bool {
    let key = try tierKey(key)
    if held.contains(key) { return true }
    return try isOnDisk(key)
  }

  @usableFromInline
  func isOnDisk(_ key: TierKey<Key>) throws(CacheError) -> Bool {
    if try disk.contains(key.key) { return true }
    return held.noteAbsent(key) != nil
  }

  /// Calls `body` with the bytes of a value where they lie on disk; as `DiskCache.withValue`.
  public func withValue<Result>(
    forKey key: Key, _ body: (RawSpan) throws -> Result
  ) throws -> Result? {
    let key = try tierKey(key)
    var isFound = false
    let result = try disk.withVersionedValue(forKey: key.key) { bytes, version in
      isFound = true
      noteSeen(version, of: key)
      held.noteAccess(key)
      return try body(bytes)
    }
    if !isFound { noteShownAbsent(key) }
    return result
  }

  /// The value of a key; set to `nil`, the value is removed.
  ///
  /// What fails is told to the log and counted; as with the subscript of ``DiskCache``.
  @inlinable
  public subscript(key: Key) -> Value? {
    get {
      do throws(CacheError) { return try value(forKey: key) } catch {
        noteSubscriptFailure(error, "get")
        return nil
      }
    }
    set {
      do throws(CacheError) {
        if let newValue {
          try setValue(newValue, forKey: key)
        } else {
          try removeValue(forKey: key)
        }
      } catch {
        noteSubscriptFailure(error, "set")
      }
    }
  }

  /// The value of a key, which is set with a cost; as the subscript without one.
  @inlinable
  public subscript(key: Key, cost cost: Int) -> Value? {
    get { self[key] }
    set {
      guard let newValue else {
        self[key] = nil
        return
      }
      do throws(CacheError) { try setValue(newValue, forKey: key, cost: cost) } catch {
        noteSubscriptFailure(error, "set")
      }
    }
  }

  @usableFromInline
  func noteSubscriptFailure(_ error: CacheError, _ operation: String) {
    disk.noteSubscriptFailure(error, operation)
  }

  // MARK: Looking at everything

  /// Calls `body` with each key on disk; as `DiskCache.forEachKey`.
  @discardableResult
  public func forEachKey(_ body: (Key) throws -> Visit) throws -> Int { try disk.forEachKey(body) }

  /// Calls `body` with each entry on disk; as `DiskCache.forEachEntry`.
  @discardableResult
  public func forEachEntry(_ body: (CacheEntry<Key, Value>) throws -> Visit) throws -> Int {
    try disk.forEachEntry { entry in
      try noteShown(entry.info, of: entry.key)
      return try body(entry)
    }
  }

  /// All keys that a read would find; as `DiskCache.keys`.
  public func keys() throws(CacheError) -> [Key] { try disk.keys() }

  // MARK: Both tiers

  /// Reads a value from disk and keeps it in memory.
  ///
  /// - Parameters:
  ///   - ticket: from before the read.
  ///   - counts: whether it is a hit or a miss.
  @usableFromInline
  func fetchValue(
    _ key: TierKey<Key>, _ ticket: CacheTicket, counts: Bool
  ) throws(CacheError) -> Value? {
    guard let found = try disk.fetchedValue(forKey: key.key, counts: counts) else {
      if let value = held.noteAbsent(key, counts: counts) {
        return value
      }
      if counts { disk.noteMiss() }
      return nil
    }
    promote(found, forKey: key, ticket)
    return found.value
  }

  private func promote(
    _ found: FetchedValue<Value>, forKey key: TierKey<Key>, _ ticket: CacheTicket
  ) {
    let cost = found.cost ?? held.knownCost(of: found.value, forKey: key) ?? found.byteCount
    held.promote(
      found.value, forKey: key, ticket: ticket,
      cost: cost, expires: found.expires, idleLimit: found.idleLimit, version: found.version)
  }

  /// The value of a key, which is no hit and no miss.
  func peek(_ key: TierKey<Key>) throws(CacheError) -> Value? {
    let ticket = held.ticket(forKey: key)
    if let value = held.peek(key) { return value }
    return try fetchValue(key, ticket, counts: false)
  }

  /// To be told when somebody was shown that the disk has nothing: memory must not show him a value that
  /// went, of which it is just being told.
  func noteShownAbsent(_ key: TierKey<Key>) {
    held.invalidate(key, through: nil, .removed)
  }

  /// To be told when somebody was shown a version on disk: memory must not show him an older one.
  func noteSeen(_ version: UInt64, of key: TierKey<Key>) {
    held.invalidate(key, through: version - 1, .replaced)
  }

  /// The same of an entry that an iteration comes to.
  func noteShown(_ info: CacheEntryInfo, of key: Key) throws(CacheError) {
    noteSeen(info.version, of: try tierKey(key))
  }

  // MARK: Recency

  @usableFromInline
  func tellRecency(of key: TierKey<Key>, _ news: BelowNews) {
    if news.contains(.atOnce) { recency.tell(key) }
    if news.contains(.soon) { recency.tellSoon() }
    if news.contains(.later) {
      let interval = max(configuration.recencyInterval, .milliseconds(1))
      environment.background.run(after: interval) { [weak self] in
        // From here on a read asks for the next telling.
        self?.held.endTelling()
        self?.recency.tell()
      }
    }
  }
}

extension CacheEntryInfo {
  /// An access that the disk was not told of yet.
  mutating func note(_ other: CacheEntryInfo?) {
    guard let other, other.version == version else { return }
    accessed = max(accessed, other.accessed)
  }
}
