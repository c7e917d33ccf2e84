internal import Synchronization

/// The limits of a write, checked before anything is written.
final class WriteLimits: Sendable {
  let keyByteLimit: Int
  let valueByteLimit: Int
  let metadataByteLimit: Int
  let batchByteLimit: Int
  /// Records of at least this many bytes are written outside the log: other writers would wait too
  /// long for them, or the records do not fit into a regular segment.
  let asideByteCount: Int
  /// What an entry takes beside its record, if disk space is limited: a place in two index files,
  /// and a tombstone when it is removed.
  let entryByteCount: Int
  /// The maximum of live bytes and entries' bytes that follows from the limit on disk space.
  private let liveByteLimit: Int
  private let count: Atomic<Int>
  private let bytes: Atomic<Int>
  /// How many entries do not count towards the limit.
  private let reserved = Atomic(0)
  /// The default lifetime of entries.
  let lifetime: Lifetime
  /// The default idle limit of entries, in milliseconds.
  let idleLimit: Int64?

  init(_ configuration: StoreConfiguration) {
    keyByteLimit = configuration.keyByteLimit
    valueByteLimit = configuration.valueByteLimit
    metadataByteLimit = configuration.metadataByteLimit
    batchByteLimit = configuration.batchByteLimit
    let room =
      configuration.segmentByteLimit - SegmentHeader.byteCount - RecordHeader.rollByteCount
    asideByteCount = min(SegmentSize.aside, room - RecordHeader.syncMarkByteCount + 1)
    entryByteCount = configuration.diskByteLimit == nil ? 0 : 112
    liveByteLimit = configuration.liveByteLimit
    count = Atomic(configuration.countLimit ?? .max)
    bytes = Atomic(configuration.byteLimit ?? .max)
    // The longest duration means none.
    let endless = Lifetime.after(.milliseconds(Int64.max))
    lifetime = configuration.lifetime == endless ? .unlimited : configuration.lifetime
    idleLimit = configuration.idleLimit.map(\.milliseconds).flatMap { $0 == .max ? nil : $0 }
  }

  /// The maximum number of entries; may change while the store is open.
  var countLimit: Int { withReserved(count.load(ordering: .relaxed)) }

  private func withReserved(_ count: Int) -> Int {
    count.adding(clamped: reserved.load(ordering: .relaxed))
  }

  /// The maximum number of live bytes; see `countLimit`.
  var byteLimit: Int { bytes.load(ordering: .relaxed) }

  /// The bytes to compare with `byteLimit`: live bytes; more if entries take more than the limit on
  /// disk space leaves beside them. An entry that is alone takes nothing.
  func byteCount(live: Int, count: Int) -> Int {
    live + max(0, (count - 1) * entryByteCount - (liveByteLimit - byteLimit))
  }

  /// How many entries and live bytes there may be.
  struct Bounds {
    var count: Int
    var byteCount: Int
  }

  var bounds: Bounds { Bounds(count: countLimit, byteCount: byteLimit) }

  /// The bounds that `set` would set.
  func bounds(countLimit: Int?, byteLimit: Int?) -> Bounds {
    Bounds(count: withReserved(countLimit ?? .max), byteCount: byteLimit ?? .max)
  }

  func set(countLimit: Int?, byteLimit: Int?) {
    count.store(countLimit ?? .max, ordering: .relaxed)
    bytes.store(byteLimit ?? .max, ordering: .relaxed)
  }

  func reserve(count: Int) { reserved.store(count, ordering: .relaxed) }

  @inline(__always)
  func checkKey(_ key: RawSpan) throws(StoreError) {
    guard key.byteCount > 0 && key.byteCount <= keyByteLimit else {
      throw invalidKey(byteCount: key.byteCount)
    }
  }

  // Apart, so that the text takes no instructions of a good key.
  @inline(never)
  private func invalidKey(byteCount: Int) -> StoreError {
    .invalidKey(reason: "it has \(byteCount) bytes; it must have 1 to \(keyByteLimit)")
  }

  func tombstoneHeader(key: RawSpan) throws(StoreError) -> RecordHeader {
    try checkKey(key)
    var header = RecordHeader(kind: .tombstone)
    header.keyByteCount = key.byteCount
    // The checksum of no bytes is 0.
    return header
  }

  /// The header of a put, without the parts that depend on its place in the log.
  ///
  /// - Complexity: O(value): it computes the value's checksum.
  @inline(__always)
  func putHeader(
    key: RawSpan, value: RawSpan, options: EntryOptions, now: Timestamp
  ) throws(StoreError) -> RecordHeader {
    try checkKey(key)
    if options.tags != nil { throw .unsupportedOption(name: "tags") }
    guard value.byteCount <= valueByteLimit else {
      throw .tooLarge("value", byteCount: value.byteCount, limit: valueByteLimit)
    }
    var header = RecordHeader(kind: .put)
    header.keyByteCount = key.byteCount
    header.valueByteCount = value.byteCount
    header.valueChecksum = CRC32C.checksum(of: value)
    if let end = (options.lifetime ?? .standard).or(lifetime).end(writtenAt: now) {
      header.flags.insert(.expiry)
      header.expires = end.millisecondsSinceEpoch
    }
    let standardIdleLimit = options.isNeverIdle ? nil : idleLimit
    if let idleLimit = options.idleLimit?.milliseconds ?? standardIdleLimit {
      header.flags.insert(.idleLimit)
      header.idleLimit = UInt64(max(0, idleLimit))
    }
    if let cost = options.cost {
      header.flags.insert(.cost)
      header.cost = UInt64(max(0, cost))
    }
    let metadataByteCount = options.metadataBytes.count
    if metadataByteCount > 0 {
      guard metadataByteCount <= metadataByteLimit else {
        throw .tooLarge("metadata", byteCount: metadataByteCount, limit: metadataByteLimit)
      }
      header.flags.insert(.metadata)
      header.metadataByteCount = metadataByteCount
    }
    try checkSize(of: header)
    return header
  }

  /// Throws if no removal could make room for a record.
  @inline(__always)
  func checkSize(of header: RecordHeader) throws(StoreError) {
    let markByteCount = header.flags.contains(.syncMark) ? 0 : RecordHeader.syncMarkByteCount
    let byteLimit = byteLimit
    guard header.byteCount + markByteCount > byteLimit else { return }
    let rest = header.headByteCount + markByteCount
    throw .tooLarge(
      "value", byteCount: header.valueByteCount, limit: max(0, byteLimit & ~7 - rest))
  }
}
