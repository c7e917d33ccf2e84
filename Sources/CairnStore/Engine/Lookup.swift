/// Finds the record of a key: by the hash in the index, then by the key in the record.
///
/// 1. Every location in the index is in a segment of the table.
/// 2. The keys in the records distinguish entries with the same hash. A record that cannot be read
///    may belong to any of them.
/// 3. A read takes no lock and no reference: it uses the index under a pin (`Pin`). Some lookups
///    cannot be decided this way and are repeated under the lock of a shard, the only lock that a
///    lookup takes. Examples are a second key with the same hash, an idle limit, a segment without a
///    mapping, and an entry that is not loaded or keeps changing.
package struct Lookup: Sendable {
  let session: Session
  package let index: HashIndex
  let table: SegmentTable
  package let hash: SipHash
  let clock: StoreClock

  init(_ session: Session, _ parts: borrowing OpenedStore) {
    self.session = session
    index = parts.index
    table = parts.files.table
    hash = parts.hash
    clock = parts.clock
  }

  // MARK: Reads

  /// The result of `body` for the record that a read of the key finds, or `nil` if it finds none.
  ///
  /// - Throws: `corrupt` if a record with the key's hash is damaged. It is then unknown whether the
  ///   key exists, so the key is not reported as absent.
  /// - Complexity: O(key). About two cache misses in addition to the record.
  @inline(__always)
  func find<Result: ~Copyable>(
    _ key: RawSpan, hash known: UInt64? = nil, touch: Bool, part: Record.Part = .all,
    _ body: (consuming FoundRecord) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    try session.checkUsable()
    try session.limits.checkKey(key)
    let hash = known ?? hash.hash(key)
    let now = clock.now()
    if touch { noteTimeIfNeeded(now) }
    if let pin = Pin() {
      defer { pin.end() }
      if let seen = index.look(hash, pinnedSegment) {
        guard case .entry(let place) = seen.found else { return nil }
        let entry = place.entry
        if let segment = seen.value {
          let offset = segment.withObject { $0.offset(of: entry.location) }
          if let bytes = try Record.bytes(in: segment, at: offset) {
            let record = try Record(of: bytes, at: offset, part: part)
            if record.hasKey(key), record.header.kind == .put,
              !record.header.flags.contains(.idleLimit)
            {
              if entry.flags.contains(.canExpire),
                hasExpired(record.header, tick: entry.tick, now: now)
              {
                return nil
              }
              if touch, let tick = index.recency.tickOfRead(after: entry.tick),
                !place.touch(tick)
              {
                index.touch(hash, entry)
              }
              return try body(FoundRecord(record: record, tick: entry.tick))
            }
          }
        }
      }
    }
    let record = try findUnderLock(key, hash, touch: touch, part: part, now: now)
    guard let record else { return nil }
    return try body(record)
  }

  /// Whether the index names this record for the key with this hash. If so, counts as an access. The
  /// record must have no idle limit, and the caller must know that it has not expired.
  ///
  /// - Returns: `false` also if only a lookup under the lock can tell.
  /// - Complexity: O(1). Does not read the record.
  @inline(__always)
  func isCurrent(
    _ place: RecordPlace, ofHash hash: UInt64, now: Timestamp, isAccess: Bool
  ) -> Bool {
    if session.isClosed { return false }
    if isAccess { noteTimeIfNeeded(now) }
    guard let pin = Pin() else { return false }
    defer { pin.end() }
    guard let seen = index.look(hash, pinnedSegment), case .entry(let entry) = seen.found,
      let segment = seen.value
    else { return false }
    let location = entry.entry.location
    let found = segment.withObject { RecordPlace($0.id, offset: $0.offset(of: location)) }
    guard found == place else { return false }
    if isAccess, let tick = index.recency.tickOfRead(after: entry.entry.tick), !entry.touch(tick) {
      index.touch(hash, entry.entry)
    }
    return true
  }

  /// The record of a key whose lifetime ended less than `retention` milliseconds ago. `nil` if the
  /// lifetime has not ended, the key has been idle for too long, or it has no record. Does not
  /// count as an access.
  func findExpired<Result: ~Copyable>(
    _ key: RawSpan, within retention: Int64, part: Record.Part,
    _ body: (consuming FoundRecord) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    try session.checkUsable()
    try session.limits.checkKey(key)
    let now = clock.now()
    let record = try findUnderLock(
      key, hash.hash(key), touch: false, part: part, now: now.advanced(byMilliseconds: -retention))
    guard let record else { return nil }
    let header = record.header
    guard header.flags.contains(.expiry), header.expires <= now.millisecondsSinceEpoch else {
      return nil
    }
    if header.flags.contains(.idleLimit) {
      let accessed = index.recency.time(of: record.tick)
      let end = accessed.advanced(byMilliseconds: Int64(clamping: header.idleLimit))
      if end <= now { return nil }
    }
    return try body(record)
  }

  /// The result of `body` for the record of a key, even if it has expired. Does not count as an
  /// access.
  func findEvenExpired<Result>(
    _ key: RawSpan, part: Record.Part, _ body: (borrowing FoundRecord) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    try session.limits.checkKey(key)
    let record = try findUnderLock(
      key, hash.hash(key), touch: false, part: part, now: Timestamp(millisecondsSinceEpoch: .min))
    guard let record else { return nil }
    return try body(record)
  }

  @inline(never)
  private func findUnderLock(
    _ key: RawSpan, _ hash: UInt64, touch: Bool, part: Record.Part, now: Timestamp
  ) throws(StoreError) -> FoundRecord? {
    var entry = IndexEntry.empty
    while let segment = try next(hash, after: &entry, touch: touch) {
      let offset = segment.offset(of: entry.location)
      let record = try Record(in: consume segment, at: offset, part: part)
      guard record.hasKey(key), record.header.kind == .put else { continue }
      if entry.flags.contains(.canExpire) {
        if hasExpired(record.header, tick: entry.tick, now: now) { return nil }
        if touch { index.touch(hash, entry) }
      }
      return FoundRecord(record: record, tick: entry.tick)
    }
    return nil
  }

  /// Advances `entry` to the next entry with the hash, or to the first. The entry and its segment
  /// are from one moment.
  ///
  /// - Returns: the segment of the record, or `nil` if there is no further entry.
  @inline(__always)
  private func next(
    _ hash: UInt64, after entry: inout IndexEntry, touch: Bool
  ) throws(StoreError) -> Segment? {
    while true {
      var segment: Segment?
      let isFound = try index.find(hash, after: entry.location, touch: touch) { [table] in
        entry = $0
        segment = table.segment(at: $0.location)
      }
      if !isFound { return nil }
      // The table has every segment that the index names. If one is missing, the entry has changed
      // in the meantime.
      if let segment { return segment }
    }
  }

  /// Updates the time of the recency clock, and occasionally checks that the directory still
  /// exists.
  @inline(__always)
  func noteTimeIfNeeded(_ now: Timestamp) {
    if index.recency.needs(now) { noteTime(now) }
  }

  /// Out of line, so that the common path takes no references.
  @inline(never)
  private func noteTime(_ now: Timestamp) {
    index.recency.note(now)
    session.lookForPlace(at: now)
  }

  func hasExpired(_ header: RecordHeader, tick: UInt64, now: Timestamp) -> Bool {
    header.hasExpired(accessed: { index.recency.time(of: tick) }, now: now)
  }

  /// The segment of a location that was read under a pin.
  @inline(__always)
  private var pinnedSegment: (Location) -> Unretained<Segment>? {
    // A reference would be retained for each call.
    { [table = Unretained(table)] location in table.withObject { $0.pinnedSegment(at: location) } }
  }

  // MARK: Prefetching

  /// Prefetches the first bytes of the record of a key with this hash. Returns the first entry with
  /// the hash, or `nil` if only a lookup under the shard's lock can tell. If the caller holds the
  /// log's lock, only the tick of the entry may change meanwhile.
  @inline(__always)
  @discardableResult
  func prefetchRecord(ofHash hash: UInt64) -> SeenEntry.Look? {
    guard let pin = Pin() else { return nil }
    defer { pin.endUnderLock() }
    guard let seen = index.look(hash, pinnedSegment) else { return nil }
    if case .entry(let place) = seen.found, let segment = seen.value {
      segment.withObject { $0.prefetch(place.entry.location, count: Self.prefetchByteCount) }
    }
    return seen.found
  }

  /// The size of a small record. The processor fetches the rest of a large record by itself.
  static var prefetchByteCount: Int { 256 }

  // MARK: Writes

  /// The index entry of a key. An unreadable record with the key's hash counts as the key's, so a
  /// write replaces it. (The hash has 48 bits, so the chance that the record belongs to another key
  /// is one in 10¹⁴ per key.)
  ///
  /// Called under the log's lock, or without it if a stale answer is harmless.
  ///
  /// - Parameter expectation: what the caller expects of the entry.
  /// - Throws: the reason why the record cannot be read, if its version matters.
  @inline(__always)
  func locate(
    _ hash: UInt64, key: RawSpan, now: Timestamp, for expectation: Expectation = .anything
  ) throws(StoreError) -> Existing? {
    var damage: StoreError?
    let existing = try locate(hash, key: key, now: now, damage: &damage)
    guard let damage else { return existing }
    switch (expectation, damage) {
    case (.anything, _), (.damaged, .corrupt): return existing
    default: throw damage
    }
  }

  /// Like the form above, but begins with what the caller has seen under the log's lock.
  @inline(__always)
  func locate(
    _ hash: UInt64, seen look: SeenEntry.Look?, key: RawSpan, now: Timestamp
  ) throws(StoreError) -> Existing? {
    if let look {
      guard case .entry(let place) = look else { return nil }
      if let pin = Pin() {
        defer { pin.endUnderLock() }
        let segment = pinnedSegment(place.entry.location)
        if let existing = existing(place, segment, hash, key: key, now: now) { return existing }
      }
    }
    var damage: StoreError?
    return try locateUnderLock(hash, key: key, now: now, damage: &damage)
  }

  /// Like the first form, but also reports why the record cannot be read.
  @inline(__always)
  func locate(
    _ hash: UInt64, key: RawSpan, now: Timestamp, damage: inout StoreError?
  ) throws(StoreError) -> Existing? {
    if let pin = Pin() {
      defer { pin.endUnderLock() }
      if let seen = index.look(hash, pinnedSegment) {
        guard case .entry(let place) = seen.found else { return nil }
        if let existing = existing(place, seen.value, hash, key: key, now: now) {
          return existing
        }
      }
    }
    return try locateUnderLock(hash, key: key, now: now, damage: &damage)
  }

  /// The entry, if its record is the key's. `nil` also if only a lookup under the lock can tell.
  @inline(__always)
  private func existing(
    _ place: SeenEntry, _ segment: Unretained<Segment>?, _ hash: UInt64, key: RawSpan,
    now: Timestamp
  ) -> Existing? {
    guard let segment else { return nil }
    let offset = segment.withObject { $0.offset(of: place.entry.location) }
    guard let bytes = try? Record.bytes(in: segment, at: offset),
      let record = try? Record(of: bytes, at: offset, part: .head), record.hasKey(key),
      // Without the shard's lock, the parts of the tick may be from two moments.
      !record.header.flags.contains(.idleLimit)
    else { return nil }
    var existing = existing(record, place.entry, hash, now: now)
    existing.slot = place.slot
    return existing
  }

  @inline(never)
  private func locateUnderLock(
    _ hash: UInt64, key: RawSpan, now: Timestamp, damage: inout StoreError?
  ) throws(StoreError) -> Existing? {
    var entry = IndexEntry.empty
    while let segment = try next(hash, after: &entry, touch: false) {
      let record: Record
      do {
        record = try Record(in: segment, at: segment.offset(of: entry.location), part: .head)
      } catch {
        damage = error
        return Existing(
          hash: hash, location: entry.location, byteCount: nil, sequence: 0, hasExpired: false)
      }
      if record.hasKey(key) { return existing(record, entry, hash, now: now) }
    }
    return nil
  }

  @inline(__always)
  private func existing(
    _ record: borrowing Record, _ entry: IndexEntry, _ hash: UInt64, now: Timestamp
  ) -> Existing {
    let header = record.header
    let canExpire = entry.flags.contains(.canExpire)
    return Existing(
      hash: hash, location: entry.location, byteCount: header.byteCount, sequence: record.sequence,
      hasExpired: canExpire && hasExpired(header, tick: entry.tick, now: now))
  }

  // MARK: Compaction and removals

  /// An index entry, and the segment of its record.
  struct Place {
    var entry: IndexEntry
    var segment: Segment
  }

  /// The first entry with this hash that `isSought` accepts, even if it has moved.
  func firstPlace(
    of hash: UInt64, where isSought: (Place) throws(StoreError) -> Bool
  ) throws(StoreError) -> Place? {
    var entry = IndexEntry.empty
    while let segment = try next(hash, after: &entry, touch: false) {
      let place = Place(entry: entry, segment: segment)
      if try isSought(place) { return place }
    }
    return nil
  }

  /// Whether the index names this very record. A record that is not live now is never live again.
  func isLive(_ hash: UInt64, at offset: Int, in segment: Segment) -> Bool {
    let location = segment.location(at: offset)
    var isSame = false
    _ = index.find(hash, at: location) { _ in isSame = table.segment(at: location) === segment }
    return isSame
  }

  /// Calls `body` with each entry and the number of its shard.
  func forEachEntry(_ body: (IndexEntry, Int) -> Void) throws(StoreError) {
    var entries: [IndexEntry] = []
    for shard in 0..<HashIndex.shardCount {
      try session.checkUsable()
      try index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries { body(entry, shard) }
    }
  }

  /// Whether the index has an entry for the key.
  func hasLivePut(of key: RawSpan) throws(StoreError) -> Bool {
    let found = try firstPlace(of: hash.hash(key)) { (place) throws(StoreError) in
      // An unreadable record is no reason to drop anything.
      let record = try? Record(
        in: place.segment, at: place.segment.offset(of: place.entry.location), part: .head,
        byCalls: true)
      return record?.hasKey(key) ?? false
    }
    return found != nil
  }
}

/// A record, and its previous access.
struct FoundRecord: ~Copyable {
  var record: Record
  let tick: UInt64

  var header: RecordHeader { record.header }
  var place: RecordPlace {
    record.pinned.withOwner { RecordPlace($0.id, offset: record.offset) }
  }
}
