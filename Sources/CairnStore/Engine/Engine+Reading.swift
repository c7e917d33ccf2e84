extension Engine {
  /// What `body` makes of the record that a read of the key finds; `nil` where it finds none.
  ///
  /// - Throws: `corrupt` where a record with the key's hash is damaged: then it cannot be told
  ///   whether the key is there, and it is not called absent.
  /// - Complexity: O(key). About two cache misses beside the record itself.
  @inline(__always)
  func find<Result: ~Copyable>(
    _ key: RawSpan, hash known: UInt64? = nil, touch: HashIndex.Touch, part: Record.Part = .all,
    _ body: (consuming FoundRecord) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    try checkUsable()
    try limits.checkKey(key)
    let hash = known ?? hash.hash(key)
    let now = clock.now()
    if touch != .no, index.recency.needs(now) { noteTime(now) }
    var entry = IndexEntry.empty
    while true {
      var segment: Segment?
      var end = Int64.min
      let isFound = try index.find(
        hash, after: entry.location, touch: touch, extendedTo: &end
      ) { [table] in
        entry = $0
        segment = table.segment(at: $0.location)
      }
      guard isFound else { return nil }
      // The table knows every segment that the index names; if it did not, the entry must have
      // changed meanwhile.
      guard let segment = segment.take() else { continue }
      let offset = segment.offset(of: entry.location)
      let record = try Record(in: consume segment, at: offset, part: part)
      guard record.hasKey(key), record.header.kind == .put else { continue }
      if entry.flags.contains(.canExpire) {
        if hasExpired(record.header.extended(to: end), tick: entry.tick, now: now) { return nil }
        switch touch {
        case .yes: index.touch(hash, entry)
        case .unlessIdle where !record.header.flags.contains(.idleLimit): index.touch(hash, entry)
        case .unlessIdle, .no: break
        }
      }
      return try body(FoundRecord(record: record, tick: entry.tick, end: end))
    }
  }

  /// Out of line, so that the common way has no references to take.
  @inline(never)
  func noteTime(_ now: Timestamp) {
    index.recency.note(now)
    lookForPlace(at: now)
  }

  func hasExpired(_ header: RecordHeader, tick: UInt64, now: Timestamp) -> Bool {
    header.hasExpired(accessed: { index.recency.time(of: tick) }, now: now)
  }

  @usableFromInline
  package func value(forKey key: RawSpan) throws(StoreError) -> [UInt8]? {
    try find(key, touch: .yes) { (found) throws(StoreError) in try value(of: found.record) }
  }

  // MARK: Many at once
  //
  // A read waits twice for memory: for its entry of the index and for its record. Of several keys the
  // entries are asked for first, then the records, so that they are waited for together. (Group prefetching:
  // Chen, Ailamaki, Gibbons and Mowry, "Improving hash join performance through prefetching", 2004.)

  /// Asks for the entry of a key, and returns the key's hash.
  @usableFromInline
  package func prefetchEntry(of key: RawSpan) throws(StoreError) -> UInt64 {
    try checkUsable()
    let hash = hash.hash(key)
    index.prefetch(hash)
    return hash
  }

  /// Asks for the first bytes of the record of a key with this hash.
  @usableFromInline
  package func prefetchRecord(ofHash hash: UInt64) {
    index.peek(hash) { [table] in table.prefetch($0.location, count: Self.prefetchByteCount) }
  }

  /// A small record; what follows of a large one the processor fetches by itself.
  static var prefetchByteCount: Int { 256 }

  /// As `value(forKey:)`, of a key whose hash is known.
  @usableFromInline
  package func value(forKey key: RawSpan, hash: UInt64) throws(StoreError) -> [UInt8]? {
    try find(key, hash: hash, touch: .yes) { (found) throws(StoreError) in
      try value(of: found.record)
    }
  }

  /// The value's bytes where they lie, held until the result goes.
  @usableFromInline
  package func pinnedValue(forKey key: RawSpan) throws(StoreError) -> PinnedValue? {
    try find(key, touch: .yes) { (found) throws(StoreError) in
      if verifiesValues { try found.record.checkValue() }
      return PinnedValue(found)
    }
  }

  /// The record of a key where it lies, held until the result goes.
  ///
  /// - Parameter part: with `.head`, the value is not read, and this is no access.
  package func pinnedEntry(
    forKey key: RawSpan, part: Record.Part
  ) throws(StoreError) -> PinnedEntry? {
    try find(key, touch: part == .all ? .yes : .no, part: part) { (found) throws(StoreError) in
      if part == .all && verifiesValues { try found.record.checkValue() }
      return PinnedEntry(found)
    }
  }

  package func info(of entry: borrowing PinnedEntry) -> EntryInfo { info(of: entry.found) }

  /// Makes an entry the most recently read one, as if it had just been read; its value is not.
  ///
  /// - Returns: whether it is there.
  package func touch(_ key: RawSpan, _ touch: HashIndex.Touch) throws(StoreError) -> Bool {
    try find(key, touch: touch, part: .head) { _ in true } ?? false
  }

  @usableFromInline
  package func contains(_ key: RawSpan) throws(StoreError) -> Bool {
    try find(key, touch: .no, part: .head) { _ in true } ?? false
  }

  @usableFromInline
  package func info(forKey key: RawSpan) throws(StoreError) -> EntryInfo? {
    try find(key, touch: .no, part: .head) { info(of: $0) }
  }

  @usableFromInline
  package func entry(forKey key: RawSpan) throws(StoreError) -> Entry? {
    try find(key, touch: .yes) { (found) throws(StoreError) in try entry(of: found) }
  }

  @inline(__always)
  private func value(of record: borrowing Record) throws(StoreError) -> [UInt8] {
    verifiesValues ? try record.checkedValue() : record.value.copied()
  }

  func entry(of found: borrowing FoundRecord) throws(StoreError) -> Entry {
    Entry(
      key: found.record.key.copied(), value: try value(of: found.record),
      metadata: found.record.metadata.copied(), info: info(of: found))
  }

  func info(of found: borrowing FoundRecord) -> EntryInfo {
    let header = found.header
    let written = found.record.segment.written(header)
    return EntryInfo(
      version: found.record.sequence, valueByteCount: header.valueByteCount, written: written,
      accessed: max(written, index.recency.time(of: found.tick)),
      expires: header.flags.contains(.expiry)
        ? Timestamp(millisecondsSinceEpoch: header.expires) : nil,
      idleLimit: header.flags.contains(.idleLimit)
        ? .milliseconds(Int64(clamping: header.idleLimit)) : nil,
      cost: header.flags.contains(.cost) ? Int(clamping: header.cost) : nil,
      metadataByteCount: header.metadataByteCount)
  }
}

/// A record, when it was last accessed before, and to when its lifetime was extended.
struct FoundRecord: ~Copyable {
  let record: Record
  let tick: UInt64
  let end: Int64

  /// With the end of the lifetime that counts.
  var header: RecordHeader { record.header.extended(to: end) }
}

/// A value's bytes in place. They stay as they are for as long as this lives, whatever happens to
/// the key: the segment is held.
@usableFromInline
package struct PinnedValue: ~Copyable {
  private let pinned: PinnedBytes<Segment>
  private let range: Range<Int>

  init(_ found: consuming FoundRecord) {
    range = found.record.header.valueRange
    pinned = found.record.pinned
  }

  @usableFromInline
  package var bytes: RawSpan {
    @_lifetime(borrow self) get { pinned.bytes.extracting(range) }
  }
}

/// A record in place, for who wants several of its parts. They stay as they are for as long as this lives.
package struct PinnedEntry: ~Copyable {
  fileprivate let found: FoundRecord

  init(_ found: consuming FoundRecord) { self.found = found }

  package var version: SequenceNumber { found.record.sequence }

  package var key: RawSpan {
    @_lifetime(borrow self) get { found.record.key }
  }

  package var metadata: RawSpan {
    @_lifetime(borrow self) get { found.record.metadata }
  }

  /// Only where all of the record was asked for.
  package var value: RawSpan {
    @_lifetime(borrow self) get { found.record.value }
  }
}

extension RecordHeader {
  /// When the record's entry may expire; `nil`: never.
  @inline(__always)
  func deadline(accessed: () -> Timestamp) -> Deadline? {
    if !canExpire { return nil }
    let end = flags.contains(.expiry) ? expires : .max
    if !flags.contains(.idleLimit) { return Deadline(time: end, isExact: true) }
    let idleEnd = accessed().advanced(byMilliseconds: Int64(clamping: idleLimit))
    return Deadline(time: min(end, idleEnd.millisecondsSinceEpoch), isExact: false)
  }

  /// Whether the record's lifetime has ended, or it has gone for too long without an access.
  @inline(__always)
  func hasExpired(accessed: () -> Timestamp, now: Timestamp) -> Bool {
    if flags.contains(.expiry), expires <= now.millisecondsSinceEpoch { return true }
    if flags.contains(.idleLimit) {
      let idle = now.millisecondsSinceEpoch.subtractingReportingOverflow(
        accessed().millisecondsSinceEpoch)
      if idle.overflow || idle.partialValue >= Int64(clamping: idleLimit) { return true }
    }
    return false
  }
}
