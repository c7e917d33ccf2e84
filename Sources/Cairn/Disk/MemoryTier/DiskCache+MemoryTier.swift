public import CairnStore
internal import Synchronization

// How a cache uses its memory tier.
//
// 1. The index vouches for every hit: a value in memory counts only if the index names the record
//    that it was made from (`TierPlace`). So whatever replaces or removes an entry on disk also ends
//    its value in memory, and nothing has to arrive in memory in order.
// 2. After a compaction has moved a record, the next read compares versions, and notes the place.
//    A followed store has no places here: versions are compared, within one history.
// 3. Every hit counts as an access in the index, so the disk evicts by the reads of both tiers. (A
//    followed store counts no accesses, and a value that only memory keeps has no entry.)
// 4. Removals and evictions on disk drop values from memory at once. These are only hints, which
//    keep memory free of what no read can find.
extension DiskCache {
  /// The memory tier, or `nil` if the configuration has none.
  public var memory: MemoryTier<Key, Value>? { held.map { MemoryTier(self, $0) } }

  // MARK: Keys

  /// A key in the memory tier's form. Every use of an entry in memory begins here.
  @inlinable
  @inline(__always)
  func tierKey(_ key: Key) throws(StoreError) -> TierKey<Key> {
    // In a forked child, memory shows the past, and its lock may be held for ever.
    if process.isForeign { try checkProcess() }
    // In code specialised for strings, this saves two calls of closures.
    if !comparesBytes, let text = key as? String {
      return TierKey(key, bytes: nil, hash: hash(ofText: text))
    }
    var hash: UInt64 = 0
    var copy: [UInt8]?
    try keyCoder.withBytes(key) { (bytes) throws(StoreError) in
      hash = self.hash(ofKey: bytes)
      if comparesBytes { copy = self.copy(bytes) }
    }
    return TierKey(key, bytes: copy, hash: hash)
  }

  /// The same for a key whose bytes are known, after the process was checked.
  func tierKey(_ key: Key, bytes: [UInt8]) -> TierKey<Key> {
    TierKey(key, bytes: comparesBytes ? bytes : nil, hash: hash(ofKey: bytes.rawSpan))
  }

  @usableFromInline
  func hash(ofKey key: RawSpan) -> UInt64 { store.hash(ofKey: key) }

  @usableFromInline
  func hash(ofText text: String) -> UInt64 { text.withBytes { store.hash(ofKey: $0) } }

  @usableFromInline
  func copy(_ key: RawSpan) -> [UInt8] { [UInt8](copying: key) }

  /// Throws in a forked child of the process that opened the cache.
  @usableFromInline
  func checkProcess() throws(StoreError) {
    try store.checkProcess()
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

  /// The value of a key, if memory has it and it is the one on disk. Counts as an access, and as a
  /// hit or a miss of memory.
  ///
  /// - Parameters:
  ///   - countsMiss: see `settle`.
  ///   - find: finds the value in memory, and counts the access.
  @inlinable
  @inline(__always)
  func currentValue(
    ofKey key: TierKey<Key>, countsMiss: Bool = true,
    _ find: (
      _ held: MemoryCache<TierKey<Key>, TierValue<Value>>, _ now: Int64
    ) -> TierValue<Value>?
  ) throws(StoreError) -> Value? {
    var now: Int64 = 0
    let found = withHeld { held in
      now = held.clock.now()
      return find(held, now)
    }
    guard let found else { return nil }
    if isCurrent(found.place, ofHash: key.hash, at: now) { return found.value }
    return try settle(key, found.place, isAccess: true, countsMiss: countsMiss) ? found.value : nil
  }

  /// Like `currentValue`, but does not count as an access.
  @inlinable
  func peekCurrentValue(ofKey key: TierKey<Key>) throws(StoreError) -> Value? {
    guard let found = withHeld({ $0.peekValue(forKey: key) }) else { return nil }
    if isCurrent(found.place, ofHash: key.hash, at: nil) { return found.value }
    return try settle(key, found.place, isAccess: false) ? found.value : nil
  }

  /// Whether the index names the record that a value in memory was made from.
  ///
  /// - Parameter now: the time of the access, or `nil` if it is none.
  /// - Returns: `false` also if only the record can tell.
  @usableFromInline
  func isCurrent(_ place: TierPlace, ofHash hash: UInt64, at now: Int64?) -> Bool {
    if !place.isPlain {
      if place.isKept { return store.isStopped && !store.isClosed }
      if place.record == .unknown || place.isIdle || mayBeHidden(place) { return false }
    }
    return store.isCurrent(
      place.record, ofHash: hash, now: Timestamp(millisecondsSinceEpoch: now ?? 0),
      isAccess: now != nil)
  }

  /// Whether a mark may hide the entry of a value in memory.
  @usableFromInline
  func mayBeHidden(_ place: TierPlace) -> Bool { place.hasTags && marks.isActive }

  /// Compares a value in memory with the record on disk.
  ///
  /// - Parameters:
  ///   - isAccess: whether the call counts as an access and as a hit. If the value is not
  ///     current, the hit is taken back.
  ///   - countsMiss: whether the access then counts as a miss.
  /// - Returns: whether it is the value on disk. If not, memory drops it, unless a mark may hide
  ///   it or another call has replaced it.
  @inlinable
  func settle(
    _ key: TierKey<Key>, _ place: TierPlace, isAccess: Bool, countsMiss: Bool = true
  ) throws(StoreError) -> Bool {
    guard let held else { return false }
    var isCurrent = false
    if !mayBeHidden(place) {
      var current: (info: EntryInfo, place: RecordPlace)?
      do throws(StoreError) {
        try keyCoder.withBytes(key.key) { (bytes) throws(StoreError) in
          current = try look(at: bytes, isAccess: isAccess)
        }
      } catch {
        if isAccess { held.takeBackHit(isMiss: false) }
        throw error
      }
      if isFollowing {
        isCurrent = isSame(place, current)
        if !isCurrent { held.drop(key, at: place, current == nil ? .removed : .replaced) }
      } else {
        isCurrent = held.settle(key, place, current)
      }
    }
    if !isCurrent, isAccess { held.takeBackHit(isMiss: countsMiss) }
    return isCurrent
  }

  @usableFromInline
  func look(
    at key: RawSpan, isAccess: Bool
  ) throws(StoreError) -> (info: EntryInfo, place: RecordPlace)? {
    return try store.look(at: key, isAccess: isAccess)
  }

  @usableFromInline var isFollowing: Bool { store.isFollowing }

  /// Whether a followed store has the value of this place.
  @usableFromInline
  func isSame(_ place: TierPlace, _ current: (info: EntryInfo, place: RecordPlace)?) -> Bool {
    guard let (info, history) = current else { return false }
    return TierPlace(history: history.rawValue, version: info.version) == place
  }

  /// Reads a value from disk and keeps it in memory.
  ///
  /// - Parameter counts: whether to count a hit or a miss.
  ///
  /// Inlined, like `promote`, so that it is specialised for known types. Otherwise, looking up
  /// types takes five times as long as everything else.
  @inlinable
  func fetchValue(_ key: TierKey<Key>, counts: Bool) throws(StoreError) -> Value? {
    var value: Value?
    var source: TierSource?
    try keyCoder.withBytes(key.key) { (bytes) throws(StoreError) in
      source = try readUncountedValue(of: bytes) { (bytes, version) throws(StoreError) in
        do { value = try valueCoder.decode(bytes) } catch {
          throw .undecodable(error, version: version)
        }
      }
    }
    if counts { countRead(isHit: value != nil) }
    guard let value, let source else { return nil }
    promote(value, source, forKey: key)
    return value
  }

  /// Calls `body` with the value of a key, like `readValue`, but counts neither a hit nor a miss.
  ///
  /// - Returns: what memory needs to keep the value.
  @usableFromInline
  func readUncountedValue(
    of key: RawSpan,
    _ body: (_ value: RawSpan, _ version: UInt64) throws(StoreError) -> Void
  ) throws(StoreError) -> TierSource? {
    let history = try history()
    var source: TierSource?
    try read(key, part: .all, isAccess: true, counts: false) { (record) throws(StoreError) in
      let hasTags = try checkTag(of: record)
      try body(record.value, record.version)
      source = TierSource(record, hasTags: hasTags, history: history)
    }
    return source
  }

  /// The history to note before a read whose value is kept in memory, or `nil` if the store follows
  /// no process, or there is no memory tier.
  func history() throws(StoreError) -> RecordPlace? {
    if held == nil || !store.isFollowing { return nil }
    return try store.history()
  }

  /// Counts a hit or a miss of the cache as a whole.
  @usableFromInline
  func countRead(isHit: Bool) {
    if isHit { events.counters.hits.add() } else { events.counters.misses.add() }
  }

  /// Keeps a value in memory that was read from disk.
  @inlinable
  func promote(_ value: Value, _ source: TierSource, forKey key: TierKey<Key>) {
    guard let held, let place = source.place else { return }
    let info = source.info
    held.keep(
      TierValue(value, place), forKey: key, version: info.version,
      held.clock.times(expires: info.expires, idleLimit: info.idleLimit, written: info.written),
      cost: info.givenCost ?? costing.cost(of: value, forKey: key.key) ?? info.valueByteCount)
  }

  /// The value of a key. Counts neither a hit nor a miss.
  func uncountedValue(forKey key: Key) throws(StoreError) -> Value? {
    if held == nil {
      return try fetch(key, counts: false) { (record) throws(StoreError) in try decode(record) }
    }
    let key = try tierKey(key)
    if let value = try peekCurrentValue(ofKey: key) { return value }
    return try fetchValue(key, counts: false)
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
      TierValue(value, place), forKey: key, version: step.version, times,
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
  private let hash: SipHash

  init(_ held: MemoryCache<TierKey<Key>, TierValue<Value>>, _ hash: SipHash) {
    self.held = held
    self.hash = hash
  }

  func drop(_ removal: RemovalEvent) {
    switch removal {
    case .all(_, let count): held.removeAll(cause: .removed, isToldOfNothing: count > 0)
    case .entry(let bytes, let version, let cause):
      let hash = hash.hash(bytes.rawSpan)
      // The version of a damaged record is unknown. Another key with this hash is dropped in vain.
      held.drop(
        hash: MemoryTable<TierKey<Key>, TierValue<Value>>.fold(Int(truncatingIfNeeded: hash)),
        through: version == 0 ? .max : version, cause
      ) { $0.hash == hash }
    }
  }
}

/// What memory needs to keep a value that was read from disk.
@usableFromInline
struct TierSource: Sendable {
  @usableFromInline let info: EntryInfo
  /// `nil` if memory must not keep the value.
  @usableFromInline let place: TierPlace?

  /// - Parameter history: see `DiskCache.history`.
  init(_ record: borrowing PinnedEntry, hasTags: Bool, history: RecordPlace?) {
    info = record.info
    if let history {
      // Marks of a followed process may hide a value with tags at any time.
      place = hasTags ? nil : TierPlace(history: history.rawValue, version: info.version)
    } else {
      place = TierPlace(
        record.place, version: info.version, isIdle: info.idleLimit != nil, hasTags: hasTags)
    }
  }
}

extension DiskCache: PressureResponder {
  /// Shrinks the memory tier, as it does by itself if `respondsToMemoryPressure` is set. Call this
  /// if the program knows of a shortage that the system does not report. Entries on disk stay.
  ///
  /// - Parameter pressure: see `MemoryCache.respond(to:)`.
  public func respond(to pressure: MemoryPressure) { held?.respond(to: pressure) }
}
