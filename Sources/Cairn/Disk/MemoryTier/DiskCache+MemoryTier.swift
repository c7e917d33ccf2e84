public import CairnStore
internal import Synchronization

// How a cache uses its memory tier.
//
// 1. The index vouches for every hit: a value in memory counts only if the index names the record
//    that it was made from (`TierPlace`). So whatever replaces or removes an entry on disk also ends
//    its value in memory, and nothing has to arrive in memory in order.
// 2. After a compaction has moved a record, the next read compares versions, and notes the place.
//    A followed store has no places here: versions are compared, within one history.
// 3. Every hit counts as an access in the index, so the disk evicts by the reads of both tiers.
// 4. Removals and evictions on disk drop values from memory at once. These are only hints, which
//    keep memory free of what no read can find.
extension DiskCache {
  /// The memory tier, or `nil` if the configuration has none.
  public var memory: MemoryTier<Key, Value>? { held.map { MemoryTier(self, $0) } }

  // MARK: Keys

  /// A key in the memory tier's form. Every use of an entry in memory begins here.
  @inlinable
  @inline(__always)
  func tierKey(_ key: Key) throws(CacheError) -> TierKey<Key> {
    // In a forked child, memory shows the past, and its lock may be held for ever.
    if process.isForeign { try checkProcess() }
    return comparesBytes ? try encoded(key) : TierKey(key)
  }

  /// The hash of a key in memory.
  @inlinable
  @inline(__always)
  func hash(_ key: TierKey<Key>) -> UInt32 { MemoryTable<TierKey<Key>, TierValue<Value>>.hash(key) }

  /// A key with its bytes.
  @usableFromInline
  func encoded(_ key: Key) throws(CacheError) -> TierKey<Key> {
    TierKey(key, bytes: try bytes(of: key))
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
  func withHeld<Result>(
    _ body: (MemoryCache<TierKey<Key>, TierValue<Value>>) -> Result?
  ) -> Result? {
    withExtendedLifetime(self) {
      guard let tier = held.map({ Unretained($0) }) else { return nil }
      return tier.withObject { body($0) }
    }
  }

  /// The value of a key, if memory has it and it is the one on disk.
  ///
  /// Counts as an access, and as a hit or a miss of memory.
  @inlinable
  @inline(__always)
  func currentValue(ofKey key: TierKey<Key>, hash: UInt32) throws(CacheError) -> Value? {
    guard let found = withHeld({ $0.value(forKey: key, hash: hash) }) else { return nil }
    return try isCurrentOrSettled(key, found.place, isAccess: true) ? found.value : nil
  }

  /// Like `currentValue`, but does not count as an access.
  @inlinable
  func peekCurrentValue(ofKey key: TierKey<Key>) throws(CacheError) -> Value? {
    guard let found = withHeld({ $0.peekValue(forKey: key) }) else { return nil }
    return try isCurrentOrSettled(key, found.place, isAccess: false) ? found.value : nil
  }

  /// Whether a value in memory is the one on disk.
  @inlinable
  @inline(__always)
  func isCurrentOrSettled(
    _ key: TierKey<Key>, _ place: TierPlace, isAccess: Bool
  ) throws(CacheError) -> Bool {
    if isCurrent(place, isAccess: isAccess) { return true }
    return try settle(key, place, isAccess: isAccess)
  }

  /// Whether the index names the record that a value in memory was made from.
  ///
  /// - Returns: `false` also if only the record can tell.
  @usableFromInline
  func isCurrent(_ place: TierPlace, isAccess: Bool) -> Bool {
    if !place.isPlain {
      if place.isKept { return store.isStopped }
      if place.isIdle || mayBeHidden(place) { return false }
    }
    return store.isCurrent(place.record, isAccess: isAccess)
  }

  /// Whether a mark may hide the entry of a value in memory.
  @usableFromInline
  func mayBeHidden(_ place: TierPlace) -> Bool { place.hasTags && marks.isActive }

  /// Compares a value in memory with the record on disk.
  ///
  /// - Returns: whether it is the value on disk. If not, memory drops it.
  @inlinable
  func settle(
    _ key: TierKey<Key>, _ place: TierPlace, isAccess: Bool
  ) throws(CacheError) -> Bool {
    guard let held else { return false }
    var isCurrent = false
    if !mayBeHidden(place) {
      var current: (info: EntryInfo, place: RecordPlace)?
      try keyCoder.withBytes(key.key) { (bytes) throws(CacheError) in
        current = try look(at: bytes, isAccess: isAccess)
      }
      isCurrent = held.settle(key, place, current, isFollowing: isFollowing)
    }
    if !isCurrent, isAccess { held.countMiss() }
    return isCurrent
  }

  @usableFromInline
  func look(
    at key: RawSpan, isAccess: Bool
  ) throws(CacheError) -> (info: EntryInfo, place: RecordPlace)? {
    do throws(StoreError) { return try store.look(at: key, isAccess: isAccess) } catch {
      throw .store(error)
    }
  }

  @usableFromInline var isFollowing: Bool { store.isFollowing }

  /// Reads a value from disk and keeps it in memory.
  ///
  /// - Parameter counts: whether to count a hit or a miss.
  ///
  /// Inlined, like `promote`, so that it is specialised for known types. Otherwise, looking up
  /// types takes five times as long as everything else.
  @inlinable
  func fetchValue(
    _ key: TierKey<Key>, hash: UInt32, counts: Bool
  ) throws(CacheError) -> Value? {
    var value: Value?
    var source: TierSource?
    try keyCoder.withBytes(key.key) { (bytes) throws(CacheError) in
      source = try readUncountedValue(of: bytes) { (bytes, version) throws(CacheError) in
        do { value = try valueCoder.decode(bytes) } catch {
          throw .undecodable(error, version: version, in: name)
        }
      }
    }
    if counts { countRead(isHit: value != nil) }
    guard let value, let source else { return nil }
    promote(value, source, forKey: key, hash: hash)
    return value
  }

  /// Calls `body` with the value of a key, like `readValue`, but counts neither a hit nor a miss.
  ///
  /// - Returns: what memory needs to keep the value.
  @usableFromInline
  func readUncountedValue(
    of key: RawSpan,
    _ body: (_ value: RawSpan, _ version: UInt64) throws(CacheError) -> Void
  ) throws(CacheError) -> TierSource? {
    let history = try history()
    var source: TierSource?
    try read(key, part: .all, isAccess: true, counts: false) { (record) throws(CacheError) in
      let hasTags = try checkTag(of: record)
      try body(record.value, record.version)
      source = TierSource(record, hasTags: hasTags, history: history)
    }
    return source
  }

  /// The history to note before a read whose value is kept in memory, or `nil` if the store follows
  /// no process, or there is no memory tier.
  func history() throws(CacheError) -> RecordPlace? {
    if held == nil || !store.isFollowing { return nil }
    do throws(StoreError) { return try store.history() } catch { throw .store(error) }
  }

  /// Counts a hit or a miss of the cache as a whole.
  @usableFromInline
  func countRead(isHit: Bool) {
    if isHit { events.counters.hits.add() } else { events.counters.misses.add() }
  }

  /// Keeps a value in memory that was read from disk.
  @inlinable
  func promote(_ value: Value, _ source: TierSource, forKey key: TierKey<Key>, hash: UInt32) {
    guard let held, source.mayBeKept else { return }
    let info = source.info
    held.keep(
      TierValue(value, source.place), forKey: key, hash: hash, version: info.version,
      held.clock.times(expires: info.expires, idleLimit: info.idleLimit, written: info.written),
      cost: info.cost ?? costing.cost(of: value, forKey: key.key) ?? info.valueByteCount)
  }

  /// The value of a key. Counts neither a hit nor a miss.
  func uncountedValue(forKey key: Key) throws(CacheError) -> Value? {
    if held == nil {
      return try fetch(key, counts: false) { (record) throws(CacheError) in try decode(record) }
    }
    let key = try tierKey(key)
    if let value = try peekCurrentValue(ofKey: key) { return value }
    return try fetchValue(key, hash: hash(key), counts: false)
  }

  // MARK: Writes

  /// Keeps a written value in memory. Passed on as a closure, so that unspecialised code calls code
  /// that is specialised for known types.
  @inlinable
  func take(
    _ step: TierStep, of value: Value, forKey key: TierKey<Key>, _ options: borrowing EntryOptions
  ) {
    guard let held else { return }
    var times = held.clock.times(
      options.lifetime ?? .standard, idleLimit: options.idleLimit,
      isNeverIdle: options.isNeverIdle)
    if step.neverExpires { (times.expires, times.idleLimit) = (never, never) }
    let place = TierPlace(
      step, isIdle: times.idleLimit != never, hasTags: options.mayHaveTags)
    held.keep(
      TierValue(value, place), forKey: key, hash: hash(key), version: step.version, times,
      cost: options.cost ?? costing.cost(of: value, forKey: key.key) ?? step.byteCount)
  }

  /// Drops the entries that a write removed from memory.
  func drop(_ removals: [RemovalEvent]) {
    if held == nil || removals.isEmpty { return }
    for removal in removals { events.tier.load()?.drop(removal) }
  }

  // MARK: Events of the program

  /// Tells the cache that the program is moving to the background. Clears the memory tier if its
  /// configuration sets `clearsInBackground`. Observers of the tier receive the event in any case.
  /// Entries on disk stay.
  public func enterBackground() { held?.enterBackground() }
}

/// Tells memory what has left the disk.
final class TierHints<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let held: MemoryCache<TierKey<Key>, TierValue<Value>>
  private let keyCoder: KeyCoder<Key>

  init(_ held: MemoryCache<TierKey<Key>, TierValue<Value>>, _ keyCoder: KeyCoder<Key>) {
    self.held = held
    self.keyCoder = keyCoder
  }

  func drop(_ removal: RemovalEvent) {
    switch removal {
    case .all(_, let count): held.removeAll(cause: .removed, isToldOfNothing: count > 0)
    case .entry(let bytes, let version, let cause):
      // The version of a damaged record is unknown.
      let version = version == 0 ? .max : version
      if keyCoder.identity == .bytes {
        let hash = MemoryTable<TierKey<Key>, TierValue<Value>>.hash(ofBytes: bytes)
        held.drop(hash: hash, through: version, cause) { $0.bytes == bytes }
      } else if let key = try? keyCoder.decode(bytes.rawSpan) {
        held.drop(TierKey(key), through: version, cause)
      }
    }
  }
}

/// What memory needs to keep a value that was read from disk.
@usableFromInline
struct TierSource: Sendable {
  @usableFromInline let info: EntryInfo
  @usableFromInline let place: TierPlace
  /// Marks of a followed process may hide a value with tags at any time.
  @usableFromInline let mayBeKept: Bool

  /// - Parameter history: see `DiskCache.history`.
  init(_ record: borrowing PinnedEntry, hasTags: Bool, history: RecordPlace?) {
    info = record.info
    place = TierPlace(
      history ?? record.place, isIdle: info.idleLimit != nil, hasTags: hasTags)
    mayBeKept = history == nil || !hasTags
  }
}

extension DiskCache: PressureResponder {
  /// Shrinks the memory tier, as it does by itself if `respondsToMemoryPressure` is set. Call this
  /// if the program knows of a shortage that the system does not report. Entries on disk stay.
  ///
  /// - Parameter pressure: see `MemoryCache.respond(to:)`.
  public func respond(to pressure: MemoryPressure) { held?.respond(to: pressure) }
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
