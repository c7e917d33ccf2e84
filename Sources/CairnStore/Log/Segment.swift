internal import Synchronization

/// One file of the log: a header, then records that are only ever appended.
///
/// Readers share it by reference and keep its file and mapping alive, also after it was unlinked.
/// The appender writes only behind the last record; a record's location reaches readers through
/// the index's locks, after its bytes.
package final class Segment: Sendable {
  package let header: SegmentHeader
  package let file: File
  /// The mapping, or `nil` where reads and writes are system calls.
  package let mapping: MappedMemory?
  /// The most bytes the file may have.
  package let capacity: Int
  /// Its first granule in the address space of locations.
  package let granule: Int
  /// Where the header checksums of its records go on from.
  package let seed: CRC32C
  /// Bytes from the start that lie in the file and may be touched in the mapping.
  private let allocated: Atomic<Int>
  /// Bytes from the start that are known to be durable.
  private let synced: Atomic<Int>
  private let retired = Atomic(false)
  /// Who reads how much of the file, once a part was cut off its end.
  private let readers: FileReaders
  /// How much of the file it reads as one of those, or 0.
  private let readEnd = Atomic(0)
  /// Bytes that are cut off and still there, since this one may be read from.
  private let cutByteCount = Atomic(0)
  /// 0, or the newest sequence number when the compaction that wrote it began.
  package let compactedAt: SequenceNumber
  /// What its records amount to; changed under the appender's lock only.
  package let usage: SegmentUsage

  package convenience init(
    header: SegmentHeader, file: File, mapping: MappedMemory?, capacity: Int, granule: Int,
    allocatedByteCount: Int, syncedByteCount: Int, compactedAt: SequenceNumber,
    usage: SegmentUsage
  ) {
    self.init(
      header: header, file: file, mapping: mapping, capacity: capacity, granule: granule,
      allocatedByteCount: allocatedByteCount, syncedByteCount: syncedByteCount,
      compactedAt: compactedAt, usage: usage, readers: FileReaders())
  }

  private init(
    header: SegmentHeader, file: File, mapping: MappedMemory?, capacity: Int, granule: Int,
    allocatedByteCount: Int, syncedByteCount: Int, compactedAt: SequenceNumber,
    usage: SegmentUsage, readers: FileReaders
  ) {
    self.readers = readers
    self.header = header
    self.file = file
    self.mapping = mapping
    self.capacity = capacity
    self.granule = granule
    seed = header.recordSeed
    allocated = Atomic(allocatedByteCount)
    synced = Atomic(syncedByteCount)
    self.compactedAt = compactedAt
    self.usage = usage
  }

  package var id: SegmentID { header.id }
  package var name: String { file.name }

  /// What the manifest says of it once it is sealed.
  package var sealedEntry: Manifest.SealedSegment {
    Manifest.SealedSegment(
      id: id, salt: header.salt, byteCount: usage.end, lowestSequence: usage.lowestSequence,
      highestSequence: usage.highestSequence, compactedAt: compactedAt)
  }

  /// What a checkpoint says of it: all that it holds.
  package var covered: Checkpoint.CoveredSegment {
    var covered = Checkpoint.CoveredSegment(id: id, salt: header.salt, end: usage.end)
    covered.granule = granule
    covered.granuleCount = SegmentTable.granuleCount(capacity: capacity)
    usage.save(to: &covered)
    return covered
  }

  package var storeIdentifier: [UInt8] { header.storeIdentifier }

  package var allocatedByteCount: Int {
    @inline(__always) get { allocated.load(ordering: .acquiring) }
  }

  package var syncedByteCount: Int {
    @inline(__always) get { synced.load(ordering: .relaxed) }
  }

  /// What a record may claim to be durable of this segment and all before it: 0 until a sync of
  /// the whole log has been through this segment, since the header alone was synced by itself.
  package var syncMark: Int {
    @inline(__always) get {
      let byteCount = syncedByteCount
      return byteCount > SegmentHeader.byteCount ? byteCount : 0
    }
  }

  package func didSync(through byteCount: Int) {
    synced.store(byteCount, ordering: .relaxed)
  }

  @inline(__always)
  package func location(at offset: Int) -> Location { Location(granule: granule, offset: offset) }

  @inline(__always)
  package func offset(of location: Location) -> Int { location.offset(fromGranule: granule) }

  package func sequence(of header: RecordHeader) -> SequenceNumber {
    self.header.baseSequence + UInt64(header.sequenceDelta)
  }

  package func written(_ header: RecordHeader) -> Timestamp {
    Timestamp(
      millisecondsSinceEpoch: (self.header.baseTime + Int64(header.writtenDelta)) * 1000)
  }

  /// No record was written earlier.
  package var created: Timestamp {
    Timestamp(millisecondsSinceEpoch: header.baseTime * 1000)
  }

  package func corruption(at offset: Int, _ cause: Corruption.Cause) -> StoreError {
    .corrupt(Corruption(file: name, offset: offset, cause: cause))
  }

  // MARK: Appending, by the one appender only

  /// Makes the first `byteCount` bytes of the file safe to write, or throws before anything
  /// changed.
  package func allocate(to byteCount: Int) throws(StoreError) {
    let old = allocatedByteCount
    guard byteCount > old else { return }
    try file.allocate(from: old, to: byteCount, orExtend: mapping == nil)
    allocated.store(byteCount, ordering: .releasing)
  }

  /// Writes bytes at an allocated offset: into the mapping, or by pwrite where there is none or
  /// the bytes are to be synced at once (syncing a page that was dirtied through a mapping takes
  /// three times as long).
  package func write(_ bytes: RawSpan, at offset: Int, forSync: Bool) throws(StoreError) {
    if !forSync, let mapping {
      mapping.write(at: offset, count: bytes.byteCount) { $0.copy(bytes, to: 0) }
    } else {
      try file.write(bytes, at: offset)
    }
  }

  /// Makes the file end at `byteCount`, beyond which there is nothing that counts.
  ///
  /// Readers are kept inside first: memory beyond the end of the file must not be touched, even by
  /// way of a damaged length.
  package func trim(to byteCount: Int) throws(StoreError) {
    allocated.store(min(byteCount, allocatedByteCount), ordering: .releasing)
    try file.truncate(to: byteCount)
  }

  /// Whether a removal of all or a compaction took the segment out of the log.
  package var isRetired: Bool { retired.load(ordering: .acquiring) }

  /// It is out of the log, and nothing in it is live any more.
  package func retire() {
    retired.store(true, ordering: .releasing)
    usage.killAll()
    usage.total.pinnedBytes.wrappingAdd(allocatedByteCount, ordering: .relaxed)
  }

  /// The same segment without what lies at `end` or behind it, to take this one's place.
  ///
  /// What is cut off stays in the file until nobody reads from this one any more.
  package func shortened(to end: Int, mapping: MappedMemory?) -> Segment {
    let segment = Segment(
      header: header, file: file, mapping: mapping, capacity: end, granule: granule,
      allocatedByteCount: end, syncedByteCount: end, compactedAt: compactedAt, usage: usage,
      readers: readers)
    if readEnd.load(ordering: .relaxed) == 0 {
      readEnd.store(allocatedByteCount, ordering: .relaxed)
      readers.add(allocatedByteCount)
    }
    segment.readEnd.store(end, ordering: .relaxed)
    readers.add(end)
    return segment
  }

  /// A shorter one has taken its place.
  package func didCut(to end: Int) {
    let byteCount = max(0, allocatedByteCount - end)
    cutByteCount.store(byteCount, ordering: .relaxed)
    usage.total.pinnedBytes.wrappingAdd(byteCount, ordering: .relaxed)
  }

  deinit {
    // Nobody reads from it any more, so the system has its space back.
    let pinned = isRetired ? allocatedByteCount : cutByteCount.load(ordering: .relaxed)
    if pinned > 0 { usage.total.pinnedBytes.wrappingSubtract(pinned, ordering: .relaxed) }
    let end = readEnd.load(ordering: .relaxed)
    if end > 0 { readers.remove(end, of: file) }
  }
}

/// Who reads how much of a file of which parts were cut off: it gets shorter when nobody reads the
/// rest any more. Memory beyond the end of a file must not be touched.
private final class FileReaders: Sendable {
  private let ends = Lock<[Int]>([])

  func add(_ end: Int) { ends.withLock { $0.append(end) } }

  func remove(_ end: Int, of file: File) {
    ends.withLock { ends in
      if let index = ends.firstIndex(of: end) { ends.remove(at: index) }
      // Nobody is left where the store was closed; then the next open does it.
      guard let longest = ends.max(), longest < end,
        let status = try? file.status(), status.byteCount > longest
      else { return }
      // Where it fails, the next open does it.
      try? file.truncate(to: longest)
    }
  }
}

/// Bytes of the records of all segments that hold a key's newest value.
package final class UsageTotal: Sendable {
  fileprivate let liveBytes = Atomic(0)
  fileprivate let pinnedBytes = Atomic(0)

  package init() {}

  package var liveByteCount: Int { liveBytes.load(ordering: .relaxed) }
  /// Bytes of segments that are out of the log and that somebody still reads from.
  package var pinnedByteCount: Int { pinnedBytes.load(ordering: .relaxed) }
}

/// What the records of a segment amount to. Atomics, so that statistics need no lock; only the
/// holder of the appender's lock changes them.
package final class SegmentUsage: Sendable {
  fileprivate let total: UsageTotal
  private let liveBytes = Atomic(0)
  private let puts = Atomic(0)
  private let livePuts = Atomic(0)
  private let tombstones = Atomic(0)
  private let tombstoneBytes = Atomic(0)
  private let highestTombstone = Atomic(UInt64(0))
  private let extensions = Atomic(0)
  private let liveExtensions = Atomic(0)
  private let records = Atomic(0)
  private let endOffset = Atomic(SegmentHeader.byteCount)
  private let lowest = Atomic(UInt64.max)
  private let highest = Atomic(UInt64(0))
  /// No lifetime of a live record ends earlier, and none has a shorter idle limit; in milliseconds.
  private let earliestExpiry = Atomic(Int64.max)
  private let shortestIdleLimit = Atomic(UInt64.max)

  package init(total: UsageTotal) { self.total = total }

  /// Bytes of records that hold a key's newest value, and of extensions that are in force.
  package var liveByteCount: Int { liveBytes.load(ordering: .relaxed) }
  /// Puts that are not their key's newest record, exactly: a tombstone of one of their keys must be
  /// kept.
  package var deadPutCount: Int {
    puts.load(ordering: .relaxed) - livePuts.load(ordering: .relaxed)
  }
  package var livePutCount: Int { livePuts.load(ordering: .relaxed) }
  package var tombstoneCount: Int { tombstones.load(ordering: .relaxed) }
  package var tombstoneByteCount: Int { tombstoneBytes.load(ordering: .relaxed) }
  /// The sequence number of the newest tombstone, or 0.
  package var highestTombstoneSequence: SequenceNumber { highestTombstone.load(ordering: .relaxed) }
  package var liveExtensionCount: Int { liveExtensions.load(ordering: .relaxed) }
  /// Extensions that are not in force, exactly: they can go.
  package var deadExtensionCount: Int {
    extensions.load(ordering: .relaxed) - liveExtensionCount
  }
  package var recordCount: Int { records.load(ordering: .relaxed) }
  /// Where the records end.
  package var end: Int { endOffset.load(ordering: .relaxed) }
  /// 0 where there are no records.
  package var lowestSequence: SequenceNumber {
    let value = lowest.load(ordering: .relaxed)
    return value == .max ? 0 : value
  }
  package var highestSequence: SequenceNumber { highest.load(ordering: .relaxed) }
  package var deadByteCount: Int { end - SegmentHeader.byteCount - liveByteCount }

  /// A record was added at the end.
  @inline(__always)
  package func add(_ header: RecordHeader, sequence: SequenceNumber, end: Int, isLive: Bool) {
    endOffset.store(end, ordering: .relaxed)
    if header.kind == .roll { return }
    records.wrappingAdd(1, ordering: .relaxed)
    if header.kind == .put { puts.wrappingAdd(1, ordering: .relaxed) }
    if header.kind == .extension {
      extensions.wrappingAdd(1, ordering: .relaxed)
      if isLive { reviveExtension(byteCount: header.byteCount) }
    } else if isLive {
      revive(byteCount: header.byteCount)
    }
    if header.kind == .tombstone { noteTombstone(header, sequence: sequence) }
    if sequence < lowest.load(ordering: .relaxed) { lowest.store(sequence, ordering: .relaxed) }
    if sequence > highest.load(ordering: .relaxed) { highest.store(sequence, ordering: .relaxed) }
    if header.canExpire, header.kind == .put { noteExpiry(header) }
  }

  private func noteTombstone(_ header: RecordHeader, sequence: SequenceNumber) {
    tombstones.wrappingAdd(1, ordering: .relaxed)
    tombstoneBytes.wrappingAdd(header.byteCount, ordering: .relaxed)
    if sequence > highestTombstone.load(ordering: .relaxed) {
      highestTombstone.store(sequence, ordering: .relaxed)
    }
  }

  @inline(never)
  private func noteExpiry(_ header: RecordHeader) {
    if header.flags.contains(.expiry), header.expires < earliestExpiry.load(ordering: .relaxed) {
      earliestExpiry.store(header.expires, ordering: .relaxed)
    }
    if header.flags.contains(.idleLimit),
      header.idleLimit < shortestIdleLimit.load(ordering: .relaxed)
    {
      shortestIdleLimit.store(header.idleLimit, ordering: .relaxed)
    }
  }

  /// What a checkpoint says of it goes on from here, before anything was added.
  package func restore(_ covered: Checkpoint.CoveredSegment) {
    if planted(.usageForgotten) { return endOffset.store(covered.end, ordering: .relaxed) }
    endOffset.store(covered.end, ordering: .relaxed)
    puts.store(covered.putCount, ordering: .relaxed)
    livePuts.store(covered.livePutCount, ordering: .relaxed)
    tombstones.store(covered.tombstoneCount, ordering: .relaxed)
    tombstoneBytes.store(covered.tombstoneByteCount, ordering: .relaxed)
    highestTombstone.store(covered.highestTombstone, ordering: .relaxed)
    extensions.store(covered.extensionCount, ordering: .relaxed)
    liveExtensions.store(covered.liveExtensionCount, ordering: .relaxed)
    records.store(
      covered.putCount + covered.tombstoneCount + covered.extensionCount, ordering: .relaxed)
    liveBytes.store(covered.liveByteCount, ordering: .relaxed)
    total.liveBytes.wrappingAdd(covered.liveByteCount, ordering: .relaxed)
    highest.store(covered.highestSequence, ordering: .relaxed)
    lowest.store(
      covered.lowestSequence == 0 ? .max : covered.lowestSequence, ordering: .relaxed)
    earliestExpiry.store(covered.earliestExpiry, ordering: .relaxed)
    shortestIdleLimit.store(covered.shortestIdleLimit, ordering: .relaxed)
  }

  /// What lay behind a mark was cut off, and nothing of it is live.
  package func shorten(to mark: SegmentOutline.Mark) {
    endOffset.store(mark.offset, ordering: .relaxed)
    puts.store(mark.putCount, ordering: .relaxed)
    tombstones.store(mark.tombstoneCount, ordering: .relaxed)
    tombstoneBytes.store(mark.tombstoneByteCount, ordering: .relaxed)
    highestTombstone.store(mark.highestTombstone, ordering: .relaxed)
    extensions.store(mark.extensionCount, ordering: .relaxed)
    records.store(
      mark.putCount + mark.tombstoneCount + mark.extensionCount, ordering: .relaxed)
    lowest.store(mark.lowestSequence, ordering: .relaxed)
    highest.store(mark.highestSequence, ordering: .relaxed)
  }

  /// Puts it into what a checkpoint says of a segment.
  package func save(to covered: inout Checkpoint.CoveredSegment) {
    covered.putCount = puts.load(ordering: .relaxed)
    // A checkpoint whose counts are not those of its entries can have left less than nothing.
    covered.livePutCount = max(0, livePutCount)
    covered.tombstoneCount = tombstoneCount
    covered.tombstoneByteCount = tombstoneByteCount
    covered.highestTombstone = highestTombstoneSequence
    covered.extensionCount = extensions.load(ordering: .relaxed)
    covered.liveExtensionCount = max(0, liveExtensionCount)
    covered.liveByteCount = max(0, liveByteCount)
    covered.lowestSequence = lowestSequence
    covered.highestSequence = highestSequence
    covered.earliestExpiry = earliestExpiry.load(ordering: .relaxed)
    covered.shortestIdleLimit = shortestIdleLimit.load(ordering: .relaxed)
  }

  /// Whether a record of this segment that was last accessed at a time can have expired: `false`
  /// saves a look at the record.
  package func mayHaveExpired(accessed: Timestamp, now: Timestamp) -> Bool {
    if mayHaveEnded(by: now) { return true }
    let limit = shortestIdleLimit.load(ordering: .relaxed)
    let idle = now.millisecondsSinceEpoch.subtractingReportingOverflow(
      accessed.millisecondsSinceEpoch)
    return limit < .max && (idle.overflow || idle.partialValue >= Int64(clamping: limit))
  }

  /// Whether the lifetime of a record of this segment can have ended.
  package func mayHaveEnded(by now: Timestamp) -> Bool {
    earliestExpiry.load(ordering: .relaxed) <= now.millisecondsSinceEpoch
  }

  /// No lifetime of a record that is live ends earlier.
  package func setEarliestExpiry(_ expires: Int64) {
    earliestExpiry.store(expires, ordering: .relaxed)
  }

  /// Whether both amount to the same; where `mayCountMore`, this may count more bytes as live.
  package func hasSameCounts(as other: SegmentUsage, mayCountMore: Bool = false) -> Bool {
    let byteCount = mayCountMore ? max(liveByteCount, other.liveByteCount) : other.liveByteCount
    return description == other.description(liveByteCount: byteCount)
  }

  /// A put is its key's newest record.
  @inline(__always)
  package func revive(byteCount: Int) {
    livePuts.wrappingAdd(1, ordering: .relaxed)
    liveBytes.wrappingAdd(byteCount, ordering: .relaxed)
    total.liveBytes.wrappingAdd(byteCount, ordering: .relaxed)
  }

  /// A put that was live is not any more.
  ///
  /// - Parameter byteCount: the record's size; where it cannot be read, 0: its bytes count as live until
  ///   its segment is compacted or read anew. All counts of records are exact nevertheless.
  package func kill(byteCount: Int) {
    livePuts.wrappingSubtract(1, ordering: .relaxed)
    liveBytes.wrappingSubtract(byteCount, ordering: .relaxed)
    total.liveBytes.wrappingSubtract(byteCount, ordering: .relaxed)
  }

  /// An extension is in force.
  package func reviveExtension(byteCount: Int) {
    liveExtensions.wrappingAdd(1, ordering: .relaxed)
    liveBytes.wrappingAdd(byteCount, ordering: .relaxed)
    total.liveBytes.wrappingAdd(byteCount, ordering: .relaxed)
  }

  /// An extension that was in force is not any more.
  package func killExtension(byteCount: Int) {
    liveExtensions.wrappingSubtract(1, ordering: .relaxed)
    liveBytes.wrappingSubtract(byteCount, ordering: .relaxed)
    total.liveBytes.wrappingSubtract(byteCount, ordering: .relaxed)
  }

  fileprivate func killAll() {
    livePuts.store(0, ordering: .relaxed)
    liveExtensions.store(0, ordering: .relaxed)
    let byteCount = liveBytes.exchange(0, ordering: .relaxed)
    total.liveBytes.wrappingSubtract(byteCount, ordering: .relaxed)
  }
}

extension SegmentUsage: CustomStringConvertible {
  package var description: String { description(liveByteCount: liveByteCount) }

  fileprivate func description(liveByteCount: Int) -> String {
    "live \(livePuts.load(ordering: .relaxed)) of \(puts.load(ordering: .relaxed)) puts, "
      + "\(liveByteCount) bytes, \(tombstoneCount) tombstones of \(tombstoneByteCount) bytes to "
      + "\(highestTombstoneSequence), \(liveExtensionCount) of "
      + "\(extensions.load(ordering: .relaxed)) extensions, \(recordCount) records to \(end), "
      + "numbers \(lowestSequence)...\(highestSequence)"
  }
}
