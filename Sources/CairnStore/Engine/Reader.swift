/// Reads: converts what a lookup finds into results for callers.
///
/// A read waits twice for memory: for its index entry and for its record. A read of several keys
/// prefetches all entries first, then all records, so that the waits overlap. (Group prefetching:
/// Chen, Ailamaki, Gibbons and Mowry, "Improving hash join performance through prefetching", 2004.)
@usableFromInline
package final class Reader: Sendable {
  let session: Session
  let lookup: Lookup
  let log: LogWriter
  private let verifiesEveryRead: Bool

  init(_ lookup: Lookup, _ log: LogWriter) {
    session = lookup.session
    self.lookup = lookup
    self.log = log
    verifiesEveryRead = session.configuration.verifiesEveryRead
  }

  // MARK: Single keys

  @usableFromInline
  package func value(forKey key: RawSpan) throws(StoreError) -> [UInt8]? {
    try lookup.find(key, touch: true) { (found) throws(StoreError) in try value(of: found.record) }
  }

  /// Like `value(forKey:)`, but does not count as an access.
  @usableFromInline
  package func peekValue(forKey key: RawSpan) throws(StoreError) -> [UInt8]? {
    try lookup.find(key, touch: false) { (found) throws(StoreError) in try value(of: found.record) }
  }

  // MARK: Many keys

  /// Prefetches the entry of a key, and returns the key's hash.
  @usableFromInline
  package func prefetchEntry(of key: RawSpan) throws(StoreError) -> UInt64 {
    try session.checkUsable()
    defer { Reclamation.reclaimIfDue() }
    let hash = lookup.hash.hash(key)
    lookup.index.prefetch(hash)
    return hash
  }

  /// Prefetches the first bytes of the record of a key with this hash.
  @usableFromInline
  package func prefetchRecord(ofHash hash: UInt64) {
    defer { Reclamation.reclaimIfDue() }
    lookup.prefetchRecord(ofHash: hash)
  }

  /// Like `value(forKey:)`, for a key whose hash is known.
  @usableFromInline
  package func value(forKey key: RawSpan, hash: UInt64) throws(StoreError) -> [UInt8]? {
    try lookup.find(key, hash: hash, touch: true) { (found) throws(StoreError) in
      try value(of: found.record)
    }
  }

  /// The value's bytes in place, kept valid until the result is released.
  @usableFromInline
  package func pinnedValue(forKey key: RawSpan) throws(StoreError) -> PinnedValue? {
    try lookup.find(key, touch: true) { (found) throws(StoreError) in
      try check(found.record)
      return PinnedValue(found)
    }
  }

  /// Like `pinnedValue(forKey:)`, but does not count as an access.
  @usableFromInline
  package func peekPinnedValue(forKey key: RawSpan) throws(StoreError) -> PinnedValue? {
    try lookup.find(key, touch: false) { (found) throws(StoreError) in
      try check(found.record)
      return PinnedValue(found)
    }
  }

  /// The record of a key in place, kept valid until the result is released.
  ///
  /// - Parameters:
  ///   - part: with `.head`, the value is not read.
  ///   - isAccess: whether the read counts as an access.
  package func pinnedEntry(
    forKey key: RawSpan, part: Record.Part, isAccess: Bool
  ) throws(StoreError) -> PinnedEntry? {
    try lookup.find(key, touch: isAccess, part: part) {
      (found) throws(StoreError) in
      if part == .all { try check(found.record) }
      return PinnedEntry(found)
    }
  }

  package func info(of entry: borrowing PinnedEntry) -> EntryInfo { info(of: entry.found) }

  /// The record of a key whose lifetime ended less than `retention` milliseconds ago, kept valid
  /// until the result is released.
  package func pinnedExpiredEntry(
    forKey key: RawSpan, within retention: Int64
  ) throws(StoreError) -> PinnedEntry? {
    try lookup.findExpired(key, within: retention, part: .all) { (found) throws(StoreError) in
      try check(found.record)
      return PinnedEntry(found)
    }
  }

  /// Makes an entry the most recently read, without reading its value.
  ///
  /// - Returns: whether the entry exists.
  package func touch(_ key: RawSpan) throws(StoreError) -> Bool {
    try lookup.find(key, touch: true, part: .head) { _ in true } ?? false
  }

  @usableFromInline
  package func contains(_ key: RawSpan) throws(StoreError) -> Bool {
    try lookup.find(key, touch: false, part: .head) { _ in true } ?? false
  }

  func isCurrent(
    _ place: RecordPlace, ofHash hash: UInt64, now: Timestamp, isAccess: Bool
  ) -> Bool {
    lookup.isCurrent(place, ofHash: hash, now: now, isAccess: isAccess)
  }

  /// The hash of a key. Prefetches its index entry.
  func prefetchingHash(ofKey key: RawSpan) -> UInt64 {
    let hash = lookup.hash.hash(key)
    lookup.index.prefetch(hash)
    return hash
  }

  /// Information about a key, and the place of its record. Reads only the record's head.
  func look(
    at key: RawSpan, touch: Bool
  ) throws(StoreError) -> (info: EntryInfo, place: RecordPlace)? {
    try lookup.find(key, touch: touch, part: .head) { (info(of: $0), $0.place) }
  }

  @usableFromInline
  package func info(forKey key: RawSpan) throws(StoreError) -> EntryInfo? {
    try lookup.find(key, touch: false, part: .head) { info(of: $0) }
  }

  @usableFromInline
  package func entry(forKey key: RawSpan) throws(StoreError) -> ByteEntry? {
    try lookup.find(key, touch: true) { (found) throws(StoreError) in try entry(of: found) }
  }

  /// Like `entry(forKey:)`, but does not count as an access.
  @usableFromInline
  package func peekEntry(forKey key: RawSpan) throws(StoreError) -> ByteEntry? {
    try lookup.find(key, touch: false) { (found) throws(StoreError) in try entry(of: found) }
  }

  /// Checks the value, unless an earlier read has, and one check is enough.
  @inline(__always)
  func check(_ record: borrowing Record) throws(StoreError) {
    if !verifiesEveryRead, record.isVerified { return }
    try record.checkValue()
    if !verifiesEveryRead { record.noteVerified() }
  }

  @inline(__always)
  private func value(of record: borrowing Record) throws(StoreError) -> [UInt8] {
    if !verifiesEveryRead, record.isVerified { return record.value.copied() }
    let value = try record.checkedValue()
    if !verifiesEveryRead { record.noteVerified() }
    return value
  }

  func entry(of found: borrowing FoundRecord) throws(StoreError) -> ByteEntry {
    ByteEntry(
      key: found.record.key.copied(), value: try value(of: found.record),
      metadata: found.record.metadata.copied(), info: info(of: found))
  }

  func info(of found: borrowing FoundRecord) -> EntryInfo {
    var info = found.info
    info.accessed = max(info.written, lookup.index.recency.time(of: found.tick))
    return info
  }
}

extension FoundRecord {
  /// Information about the entry. The record does not have the time of the last access, so
  /// `accessed` is the time of the write.
  var info: EntryInfo {
    let header = header
    let written = record.pinned.withOwner { $0.written(header) }
    return header.info(version: record.sequence, written: written)
  }
}

extension RecordHeader {
  /// Information about the record's entry, which was last accessed when it was written.
  func info(version: SequenceNumber, written: Timestamp) -> EntryInfo {
    EntryInfo(
      version: version, valueByteCount: valueByteCount, written: written, accessed: written,
      expires: flags.contains(.expiry) ? Timestamp(millisecondsSinceEpoch: expires) : nil,
      idleLimit: flags.contains(.idleLimit) ? .milliseconds(Int64(clamping: idleLimit)) : nil,
      cost: flags.contains(.cost) ? Int(clamping: cost) : nil,
      metadataByteCount: metadataByteCount)
  }
}

/// A value's bytes in place. They stay unchanged as long as this `PinnedValue` exists, whatever
/// happens to the key, because it holds the segment.
@usableFromInline
package struct PinnedValue: ~Copyable {
  private let pinned: PinnedBytes<Segment>
  private let range: Range<Int>

  @inline(__always)
  init(_ found: consuming FoundRecord) {
    range = found.record.header.valueRange
    found.record.keep()
    pinned = found.record.pinned
  }

  @usableFromInline
  package var bytes: RawSpan {
    @_lifetime(borrow self) get { pinned.bytes.extracting(range) }
  }
}

/// A record in place, for callers that need several of its parts. They stay unchanged as long as
/// this `PinnedEntry` exists.
package struct PinnedEntry: ~Copyable {
  fileprivate let found: FoundRecord

  @inline(__always)
  init(_ found: consuming FoundRecord) {
    found.record.keep()
    self.found = found
  }

  package var version: SequenceNumber { found.record.sequence }
  package var place: RecordPlace { found.place }

  /// Information about the entry, except the time of its last access.
  package var info: EntryInfo { found.info }

  package var key: RawSpan {
    @_lifetime(borrow self) get { found.record.key }
  }

  package var metadata: RawSpan {
    @_lifetime(borrow self) get { found.record.metadata }
  }

  /// The value, if the whole record was requested.
  package var value: RawSpan {
    @_lifetime(borrow self) get { found.record.value }
  }
}
