internal import Synchronization

/// One file of the log: a header, then records that are only ever appended.
///
/// Readers share a segment by reference and keep its mapping alive, even after its file has been
/// unlinked. The appender writes only after the last record. A record's location reaches readers
/// through the index's locks, after the bytes are written.
package final class Segment: Sendable {
  /// Allocated space in the active segment that only removals may use. They then work even on a
  /// full disk.
  package static let slack = 16 << 10

  package let header: SegmentHeader
  package let file: SegmentFile
  /// The mapping, or `nil` if system calls read and write the file.
  package let mapping: MappedMemory?
  /// The maximum size of the file in bytes.
  package let capacity: Int
  /// The segment's first granule in the address space of locations.
  package let granule: Int
  /// The initial state of the records' header checksums.
  package let seed: CRC32C
  /// How many bytes from the start are in the file and may be touched in the mapping.
  private let allocated: Atomic<Int>
  /// How many bytes from the start are known to be durable.
  private let synced: Atomic<Int>
  private let isActive = Atomic(false)
  /// Whether a failed write may have left bytes beyond the allocated ones.
  private let hasRemains = Atomic(false)
  /// Marks the first page of each large value that a read has found sound.
  private let verified: PageBits
  private let retired = Atomic(false)
  /// The number of snapshots that show the segment.
  private let snapshots = Atomic(0)
  /// The newest sequence number when the compaction that wrote this segment began, or 0 if none
  /// did.
  package let compactedAt: SequenceNumber
  /// The usage of the segment's records; changed only under the log's lock.
  package let usage: SegmentUsage

  package init(
    header: SegmentHeader, file: SegmentFile, mapping: MappedMemory?, capacity: Int, granule: Int,
    allocatedByteCount: Int, syncedByteCount: Int, compactedAt: SequenceNumber,
    usage: SegmentUsage
  ) {
    verified = PageBits(ofFile: capacity)
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

  /// The segment's entry in the manifest once it is sealed.
  package var sealedEntry: Manifest.SealedSegment {
    Manifest.SealedSegment(
      id: id, salt: header.salt, byteCount: usage.end, lowestSequence: usage.lowestSequence,
      highestSequence: usage.highestSequence, compactedAt: compactedAt)
  }

  /// The segment's entry in a checkpoint that covers all of its records.
  package var covered: Checkpoint.CoveredSegment {
    var covered = Checkpoint.CoveredSegment(id: id, salt: header.salt, end: usage.end)
    covered.granule = granule
    covered.granuleCount = granuleCount
    usage.save(to: &covered)
    return covered
  }

  /// The number of granules that the segment takes.
  package var granuleCount: Int { Location.granuleCount(forCapacity: capacity) }
  package var granules: Range<Int> { granule..<(granule + granuleCount) }

  package var storeIdentifier: [UInt8] { header.storeIdentifier }

  package var allocatedByteCount: Int {
    @inline(__always) get { allocated.load(ordering: .acquiring) }
  }

  package var syncedByteCount: Int {
    @inline(__always) get { synced.load(ordering: .relaxed) }
  }

  /// The sync mark for new records: this segment up to here, and all earlier ones, are durable. 0
  /// until a sync of the log has covered this segment, because the header was synced alone.
  package var syncMark: Int {
    @inline(__always) get {
      let byteCount = syncedByteCount
      return byteCount > SegmentHeader.byteCount ? byteCount : 0
    }
  }

  package func didSync(through byteCount: Int) {
    synced.store(byteCount, ordering: .relaxed)
  }

  /// Whether a read found the value at an offset sound. Returns `false` while the segment is
  /// written to.
  @inline(__always)
  package func isVerified(at offset: Int) -> Bool {
    verified[offset] && !isActive.load(ordering: .relaxed)
  }

  /// Records that the value at an offset is sound. Does nothing while the segment is written to.
  package func noteVerified(at offset: Int) {
    if mapping != nil && !isActive.load(ordering: .relaxed) { verified.set(offset) }
  }

  package func setActive(_ isActive: Bool) { self.isActive.store(isActive, ordering: .relaxed) }

  @inline(__always)
  package func location(at offset: Int) -> Location { Location(granule: granule, offset: offset) }

  @inline(__always)
  package func offset(of location: Location) -> Int { location.offset(fromGranule: granule) }

  /// Prefetches the first bytes of a record, at most `count`.
  @inline(__always)
  package func prefetch(_ location: Location, count: Int) {
    let offset = offset(of: location)
    let count = min(count, allocatedByteCount - offset)
    if count > 0 { mapping?.prefetch(at: offset, count: count) }
  }

  package func sequence(of header: RecordHeader) -> SequenceNumber {
    self.header.baseSequence + UInt64(header.sequenceDelta)
  }

  package func written(_ header: RecordHeader) -> Timestamp {
    Timestamp(
      millisecondsSinceEpoch: (self.header.baseTime + Int64(header.writtenDelta)) * 1000)
  }

  /// The earliest time at which a record can have been written.
  package var created: Timestamp {
    Timestamp(millisecondsSinceEpoch: header.baseTime * 1000)
  }

  package func corruption(at offset: Int, _ cause: Corruption.Cause) -> StoreError {
    .corrupt(
      Corruption(directory: file.directoryPath, file: name, offset: offset, cause: cause))
  }

  // MARK: Appending, only by the one appender

  /// Makes the first `byteCount` bytes of the file safe to write, or throws before changing
  /// anything.
  package func allocate(to byteCount: Int) throws(StoreError) {
    let old = allocatedByteCount
    guard byteCount > old else { return }
    if hasRemains.load(ordering: .relaxed) { try trim(to: old) }
    try file.open().allocate(from: old, to: byteCount, orExtend: mapping == nil)
    allocated.store(byteCount, ordering: .releasing)
  }

  /// Writes bytes at an allocated offset: into the mapping, or by pwrite if there is no mapping or
  /// `byCalls` is set.
  package func write(_ bytes: RawSpan, at offset: Int, byCalls: Bool) throws(StoreError) {
    if !byCalls, let mapping {
      mapping.write(at: offset, count: bytes.byteCount) { $0.copy(bytes, to: 0) }
    } else {
      try file.open().write(bytes, at: offset)
    }
  }

  /// Writes a record into the mapping. Returns `false` without a mapping.
  package func write(
    _ header: RecordHeader, at offset: Int, key: RawSpan, metadata: RawSpan, value: RawSpan
  ) -> Bool {
    guard let mapping = mapping.map({ Unretained($0) }) else { return false }
    mapping.withObject { mapping in
      mapping.write(at: offset, count: header.byteCount) { bytes in
        header.encode(key: key, metadata: metadata, value: value, into: &bytes)
        header.seal(&bytes, at: offset, seed: seed)
      }
    }
    return true
  }

  /// Counts a record that was written at the end.
  package func count(_ header: RecordHeader, sequence: SequenceNumber, end: Int) {
    usage.add(header, sequence: sequence, end: end, isLive: header.kind != .tombstone)
  }

  /// Truncates the file to `byteCount` bytes.
  ///
  /// Limits the readers first: they must not touch memory beyond the end of the file, even if a
  /// length is damaged. If the call fails, the next allocation repeats it.
  package func trim(to byteCount: Int) throws(StoreError) {
    allocated.store(min(byteCount, allocatedByteCount), ordering: .releasing)
    hasRemains.store(true, ordering: .relaxed)
    try file.open().truncate(to: byteCount)
    hasRemains.store(false, ordering: .relaxed)
  }

  /// Lets readers read what another process has appended. For segments of a followed store.
  package func extend(to byteCount: Int) {
    allocated.store(byteCount, ordering: .releasing)
  }

  // MARK: The file

  /// The segment's bytes, for reading by system calls, or from the mapping if the file has lost its
  /// name.
  ///
  /// - Parameter isShared: whether the file may stay open for the next caller.
  /// - Throws: `corrupt` if the file has neither a name nor a mapping; `system`.
  package func bytes(isShared: Bool = false) throws(StoreError) -> SegmentBytes {
    if let file = try file.openIfNamed(isShared: isShared) { return .file(file) }
    if mapping == nil { throw file.missing }
    return .mapping(of: self)
  }

  /// Calls fdatasync on the file's original descriptor. Does nothing if the segment has left the
  /// log.
  package func synchronizeData() throws(StoreError) {
    guard let file = file.syncable else {
      if isRetired { return }
      throw .closed(path: file.directoryPath)
    }
    try file.synchronizeData()
  }

  /// Opens the file before the first record is written. It stays open until `closeFile`.
  package func openFile() throws(StoreError) {
    try file.keepForWriting { (file) throws(StoreError) in
      // DURABILITY: a header that was never synced is written again. The descriptor that wrote it
      // was closed, and a failed write may not be reported to the new one.
      guard syncedByteCount == 0 else { return }
      try file.write(header.encoded().rawSpan, at: 0)
    }
  }

  /// Gives the end of the file blocks of its own. Call before appending to a segment that an earlier
  /// session left.
  ///
  /// A copy of a store may share blocks with the original, or have holes. A store into such a page
  /// of a mapping takes a block, and raises SIGBUS if there is none. A write takes it, or throws.
  package func ownEnd() throws(StoreError) {
    if mapping == nil { return }
    let file = try file.open()
    try file.rewrite((allocatedByteCount & ~4095)..<file.status().byteCount, skippingZeros: false)
  }

  /// Closes the file. Call when all of it is on disk and nothing is being written to it.
  package func closeFile() { file.release() }

  /// Keeps the file open for current readers if they have no mapping. Call before the file loses
  /// its name.
  package func keepFileUnlessMapped() throws(StoreError) {
    if mapping == nil { try file.keep() } else { file.release() }
  }

  /// Records that a snapshot shows the segment. `endSnapshot` reverses this.
  package func beginSnapshot() { snapshots.add(1, ordering: .relaxed) }
  package func endSnapshot() { snapshots.subtract(1, ordering: .relaxed) }
  package var isInSnapshot: Bool { snapshots.load(ordering: .relaxed) > 0 }

  /// Whether a removal of all or a compaction took the segment out of the log.
  package var isRetired: Bool { retired.load(ordering: .acquiring) }

  /// Records that the segment has left the log and none of its records is live.
  ///
  /// - Parameter isOnDisk: whether this change is on disk. If not, a power cut may bring the
  ///   segment back. So the file stays open until it loses its name, and a sync in progress still
  ///   reaches it.
  package func retire(isOnDisk: Bool = true) {
    retired.store(true, ordering: .releasing)
    if mapping != nil, isOnDisk { file.release() }
    usage.killAll()
    usage.total.retirements.wrappingAdd(1, ordering: .relaxed)
    usage.total.pinnedBytes.wrappingAdd(allocatedByteCount, ordering: .relaxed)
  }

  /// Truncates the file of a sealed segment after its records, unless another session may read
  /// beyond them. The next open then does so.
  func shortenFile() { file.shorten(to: usage.end) }

  deinit {
    // No reader is left, so the system reclaims the segment's space.
    if isRetired {
      usage.total.pinnedBytes.wrappingSubtract(allocatedByteCount, ordering: .relaxed)
    }
  }
}

/// The bytes of a segment, for as long as they are read.
package enum SegmentBytes: Sendable {
  case file(File)
  /// The bytes of a file that has lost its name.
  case mapping(of: Segment)

  /// Reads up to `byteCount` bytes at `offset` into the buffer from `bufferOffset`. Returns the
  /// number read, which is lower only at the end of the segment.
  func read(
    into buffer: inout [UInt8], bufferOffset: Int, byteCount: Int, at offset: Int
  ) throws(StoreError) -> Int {
    switch self {
    case .file(let file):
      return try file.read(
        into: &buffer, bufferOffset: bufferOffset, byteCount: byteCount, at: offset)
    case .mapping(let segment):
      guard let mapping = segment.mapping else { return 0 }
      // Memory beyond the allocation must not be touched.
      let count = max(0, min(byteCount, segment.allocatedByteCount - offset))
      buffer.withMutableSpan(in: bufferOffset..<(bufferOffset + count)) { target in
        target.copy(mapping.bytes(at: offset, count: count), to: 0)
      }
      return count
    }
  }

  /// Where bytes that are not a hole begin, from `offset` on.
  func nextData(from offset: Int) -> Int {
    guard case .file(let file) = self else { return offset }
    return file.fileSystem.nextData(file.descriptor, from: offset)
  }

  /// Copies bytes to the same place in a file.
  package func copy(
    from start: Int = 0, byteCount: Int, into target: File
  ) throws(StoreError) {
    switch self {
    case .file(let file): try target.copy(from: file, at: start, byteCount: byteCount)
    case .mapping(let segment):
      guard let mapping = segment.mapping else { return }
      let end = start + byteCount
      for offset in stride(from: start, to: end, by: 1 << 20) {
        let piece = mapping.bytes(at: offset, count: min(1 << 20, end - offset))
        try target.write(piece, at: offset)
      }
    }
  }

  var name: String {
    switch self {
    case .file(let file): file.name
    case .mapping(let segment): segment.name
    }
  }

  var directoryPath: String {
    switch self {
    case .file(let file): file.directoryPath
    case .mapping(let segment): segment.file.directoryPath
    }
  }
}
