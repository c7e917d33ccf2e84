public import CairnStore

// How a cache uses its memory tier. `MemoryCache.readAbove` and its neighbours state the rules.
extension DiskCache {
  /// The memory tier, or `nil` if the configuration has none.
  public var memory: MemoryTier<Key, Value>? {
    heldCache.map { MemoryTier(self, $0, recency) }
  }

  /// The cache that holds the tier's values.
  var heldCache: MemoryCache<TierKey<Key>, Value>? { held ?? following?.held }

  // MARK: Keys

  /// A key in the memory tier's form, with its bytes. Every use of an entry in memory begins here.
  @usableFromInline
  func encoded(_ key: Key) throws(CacheError) -> TierKey<Key> {
    TierKey(key, bytes: try bytes(of: key))
  }

  @inlinable
  @inline(__always)
  func tierKey(_ key: Key) throws(CacheError) -> TierKey<Key> {
    // In a forked child, memory shows the past, and its lock may be held for ever.
    if process.isForeign { try checkProcess() }
    return comparesBytes ? try encoded(key) : TierKey(key)
  }

  /// Throws in a forked child of the process that opened the cache.
  @usableFromInline
  func checkProcess() throws(CacheError) {
    do throws(StoreError) { try store.checkProcess() } catch { throw .store(error) }
  }

  // MARK: Reads

  /// Calls `body` with the memory tier, without retaining it. When each read wrote to the tier's
  /// reference count, two threads were only 1.4 times as fast as one.
  @inlinable
  @inline(__always)
  func withHeld<Result>(_ body: (MemoryCache<TierKey<Key>, Value>) -> Result?) -> Result? {
    withExtendedLifetime(self) {
      guard let tier = held.map({ Unretained($0) }) else { return nil }
      return tier.withObject { body($0) }
    }
  }

  /// Reads a value from disk and keeps it in memory.
  ///
  /// - Parameters:
  ///   - ticket: taken before the read.
  ///   - counts: whether to count a hit or a miss.
  ///
  /// Inlined, like `promote`, so that it is specialised for known types. Otherwise, looking up
  /// types takes five times as long as everything else.
  @inlinable
  func fetchValue(
    _ key: TierKey<Key>, _ ticket: CacheTicket, counts: Bool
  ) throws(CacheError) -> Value? {
    var value: Value?
    var info: EntryInfo?
    var hasTags = false
    try keyCoder.withBytes(key.key) { (bytes) throws(CacheError) in
      info = try readUncountedValue(of: bytes, &hasTags) { (bytes, version) throws(CacheError) in
        do { value = try valueCoder.decode(bytes) } catch {
          throw .undecodable(error, version: version, in: name)
        }
      }
    }
    guard let value, let info else {
      let value = held?.noteAbsent(key, counts: counts)
      if counts, value == nil { countRead(isHit: false) }
      return value
    }
    if counts { countRead(isHit: true) }
    if let held { promote(value, info, hasTags: hasTags, forKey: key, ticket, to: held) }
    return value
  }

  /// Calls `body` with the value of a key, like `readValue`, but counts neither a hit nor a miss.
  ///
  /// - Parameter hasTags: whether the entry has tags.
  /// - Returns: information about the entry.
  @usableFromInline
  func readUncountedValue(
    of key: RawSpan, _ hasTags: inout Bool,
    _ body: (_ value: RawSpan, _ version: UInt64) throws(CacheError) -> Void
  ) throws(CacheError) -> EntryInfo? {
    var info: EntryInfo?
    try read(key, part: .all, isAccess: true, counts: false) { (record) throws(CacheError) in
      hasTags = try checkTag(of: record)
      try body(record.value, record.version)
      info = record.info
    }
    return info
  }

  /// Counts a hit or a miss of the cache as a whole.
  @usableFromInline
  func countRead(isHit: Bool) {
    if isHit { events.counters.hits.add() } else { events.counters.misses.add() }
  }

  @inlinable
  func promote(
    _ value: Value, _ info: EntryInfo, hasTags: Bool, forKey key: TierKey<Key>,
    _ ticket: CacheTicket, to held: MemoryCache<TierKey<Key>, Value>
  ) {
    let cost = info.cost ?? held.knownCost(of: value, forKey: key) ?? info.valueByteCount
    held.promote(
      value, forKey: key, ticket: ticket, cost: cost, expires: info.expires,
      idleLimit: info.idleLimit, version: info.version, written: info.written,
      hasTags: hasTags)
  }

  /// The value of a key. Counts neither a hit nor a miss.
  func uncountedValue(forKey key: Key) throws(CacheError) -> Value? {
    guard let held else {
      return try fetch(key, counts: false) { (record) throws(CacheError) in try decode(record) }
    }
    let key = try tierKey(key)
    let ticket = held.ticket(forKey: key)
    if let value = held.peekValue(forKey: key) { return value }
    return try fetchValue(key, ticket, counts: false)
  }

  /// Records the version of a key on disk that a caller has seen. Memory must not show an older
  /// value afterwards.
  ///
  /// - Parameter version: the version that the caller has seen, or `nil` for none.
  func noteShown(_ version: UInt64?, of key: Key) throws(CacheError) {
    guard let held else { return }
    held.noteShown(version, of: try tierKey(key))
  }

  @usableFromInline
  func tellRecency(of key: TierKey<Key>, _ notice: PendingNotice) {
    guard let recency, let interval = configuration.memory?.recencyInterval else { return }
    if notice.contains(.atOnce) { recency.tell(key) }
    if notice.contains(.later) { recency.tellLater(after: max(interval, .milliseconds(1))) }
  }

  // MARK: Writes

  /// How memory will hold a value once it is on disk, or `nil` without a memory tier.
  @inlinable
  func tierWrite(
    of value: Value, forKey key: TierKey<Key>, _ options: EntryOptions
  ) -> TierWrite? {
    held.map { TierWrite(of: value, forKey: key, options, in: $0) }
  }

  /// Updates memory for a write. Passed on as a closure, so that unspecialised code calls code that
  /// is specialised for known types.
  @inlinable
  func take(
    _ step: TierStep, of value: Value, forKey key: TierKey<Key>, _ write: TierWrite?
  ) {
    if let write, let held { write.take(step, of: value, forKey: key, in: held) }
  }

  /// Drops the entries that a write removed from memory.
  func drop(_ removals: [RemovalEvent]) {
    guard let recency else { return }
    for removal in removals { recency.drop(removal) }
  }

  /// Call after a write has thrown. Memory drops the key if the state on disk is unknown.
  func noteFailure(_ error: CacheError, of key: TierKey<Key>) {
    if !error.hasWrittenNothing { held?.invalidate(key, through: nil, .removed) }
  }

  // MARK: Events of the program

  /// Tells the cache that the program is moving to the background. Clears the memory tier if its
  /// configuration sets `clearsInBackground`. Observers of the tier receive the event in any case.
  /// Entries on disk stay.
  public func enterBackground() {
    recency?.tell()
    heldCache?.enterBackground()
  }
}

extension DiskCache: PressureResponder {
  /// Shrinks the memory tier, as it does by itself if `respondsToMemoryPressure` is set. Call this
  /// if the program knows of a shortage that the system does not report. Entries on disk stay.
  ///
  /// - Parameter pressure: see `MemoryCache.respond(to:)`.
  public func respond(to pressure: MemoryPressure) {
    // Free memory first. A report to the disk reads records, which is slow when memory is short.
    guard let recency else {
      heldCache?.respond(to: pressure)
      return
    }
    recency.tell { held?.respond(to: pressure) }
  }
}

extension CacheError {
  /// Whether a write that threw this error has certainly written nothing.
  var hasWrittenNothing: Bool {
    switch self {
    case .store(.noSpace), .store(.invalidKey), .store(.valueTooLarge), .store(.metadataTooLarge),
      .store(.batchTooLarge), .store(.readOnly), .store(.unsupportedOption), .unencodableKey,
      .unencodableValue,
      .reservedKey, .invalidTag, .tooManyTags, .tooManyRemovedTags:
      true
    default: false
    }
  }
}

extension CacheEntryInfo {
  /// Adds an access that has not been reported to the disk yet.
  mutating func note(_ other: CacheEntryInfo?) {
    guard let other, other.version == version else { return }
    accessed = max(accessed, other.accessed)
  }
}
