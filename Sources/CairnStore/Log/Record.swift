/// A record that was read and whose header was checked. Its bytes stay valid as long as this value
/// exists, whatever happens to its segment.
package struct Record: ~Copyable {
  package let offset: Int
  package let header: RecordHeader
  private(set) var pinned: PinnedBytes<Segment>

  /// Which bytes of a record to read. The choice matters only if system calls read them.
  package enum Part: Sendable {
    case head, all
  }

  /// Reads the record at an offset, with its value only for `.all`.
  ///
  /// - Parameter byCalls: whether to use system calls even if there is a mapping, so that an I/O
  ///   error is thrown and does not raise a signal.
  /// - Throws: `corrupt` if the bytes are not a record with a valid header; `system`.
  /// - Complexity: O(head); a page fault or two system calls if the page is not in memory.
  @inline(__always)
  package init(
    in segment: consuming Segment, at offset: Int, part: Part, byCalls: Bool = false
  ) throws(StoreError) {
    // The bound is loaded again for each read, and every length below is loaded only once. So no
    // bytes on disk, not even changing ones, can lead outside the mapping.
    let limit = segment.allocatedByteCount &- offset
    guard offset >= SegmentHeader.byteCount, limit >= RecordHeader.fixedByteCount else {
      throw segment.corruption(at: offset, .badRecordHeader)
    }
    // The segment is moved, never copied, which costs only one retain and no release.
    let pinned =
      if !byCalls, let mapping = segment.mapping {
        mapping.pinned(at: offset, count: limit, by: segment)
      } else {
        try Self.readByCalls(
          in: segment, at: offset, limit: limit, part: part, mayTryLess: !byCalls)
      }
    guard let header = Self.header(in: pinned, limit: limit, at: offset, part: part) else {
      throw pinned.owner.corruption(at: offset, .badRecordHeader)
    }
    self.offset = offset
    self.header = header
    self.pinned = pinned
  }

  /// Reads the put that an index entry names.
  ///
  /// - Throws: `corrupt` also for another kind of record, which a forged checkpoint may name;
  ///   `system`.
  @inline(__always)
  static func put(
    in segment: Segment, at location: Location, part: Part
  ) throws(StoreError) -> Record {
    let offset = segment.offset(of: location)
    let record = try Record(in: segment, at: offset, part: part)
    guard record.header.kind == .put else {
      throw segment.corruption(at: offset, .badRecordHeader)
    }
    return record
  }

  /// The bytes from an offset, in a segment that a pin of this thread keeps. They are valid until
  /// the pin ends, or longer if `keep` is called. `nil` if there is no mapping.
  ///
  /// - Throws: `corrupt` if no record can be there.
  @inline(__always)
  static func bytes(
    in segment: Unretained<Segment>, at offset: Int
  ) throws(StoreError) -> PinnedBytes<Segment>? {
    let limit = segment.withObject { $0.allocatedByteCount } &- offset
    guard offset >= SegmentHeader.byteCount, limit >= RecordHeader.fixedByteCount else {
      throw segment.withObject { $0.corruption(at: offset, .badRecordHeader) }
    }
    return PinnedBytes(of: segment, at: offset, count: limit, in: { $0.mapping })
  }

  /// The record at the start of bytes from `bytes(in:at:)`.
  ///
  /// - Throws: `corrupt` if they are not a record with a valid header.
  @inline(__always)
  init(
    of pinned: consuming PinnedBytes<Segment>, at offset: Int, part: Part
  ) throws(StoreError) {
    guard let header = Self.header(in: pinned, limit: pinned.count, at: offset, part: part) else {
      throw pinned.owner.corruption(at: offset, .badRecordHeader)
    }
    self.offset = offset
    self.header = header
    self.pinned = pinned
  }

  /// Keeps the bytes valid after the pin under which they were read.
  @inline(__always)
  mutating func keep() { pinned.keep() }

  /// The header at the start of the bytes, if it is valid and they contain the whole record.
  @inline(__always)
  private static func header(
    in pinned: borrowing PinnedBytes<Segment>, limit: Int, at offset: Int, part: Part
  ) -> RecordHeader? {
    guard let header = RecordHeader(decoding: pinned.bytes, limit: limit),
      (part == .all ? header.byteCount : header.headByteCount) <= pinned.count,
      header.hasValidChecksum(pinned.bytes, at: offset, seed: pinned.withOwner { $0.seed })
    else { return nil }
    return header
  }

  /// The first bytes of the record at an offset: all that were requested, perhaps more.
  ///
  /// Trusts a length only after checking the header's checksum.
  ///
  /// - Parameter mayTryLess: whether to read less after a media error, which bytes after the record
  ///   may have caused. `false` in a recovery, which stops at any error.
  @inline(never)
  private static func readByCalls(
    in segment: Segment, at offset: Int, limit: Int, part: Part, mayTryLess: Bool
  ) throws(StoreError) -> PinnedBytes<Segment> {
    var buffer: [UInt8] = []
    let bytes = try segment.bytes(isShared: true)
    func read(to end: Int) throws(StoreError) {
      let start = buffer.count
      if end <= start { return }
      buffer.append(contentsOf: repeatElement(0, count: end - start))
      let count = try bytes.read(
        into: &buffer, bufferOffset: start, byteCount: end - start, at: offset + start)
      // The file may have been cut at its last record since the bound was loaded. Missing bytes
      // matter only if the record needs them.
      buffer.removeLast(end - start - count)
    }
    do throws(StoreError) {
      // One call is enough for a small record.
      try read(to: min(limit, part == .all ? 4096 : 512))
    } catch {
      // The record may end before the unreadable bytes.
      guard mayTryLess, error.isOfMedium else { throw error }
      buffer = []
      try read(to: RecordHeader.fixedByteCount)
      if buffer.count == RecordHeader.fixedByteCount {
        let flags = RecordFlags(rawValue: buffer[RecordHeader.fixedByteCount - 1])
        try read(
          to: min(limit, RecordHeader.fixedByteCount + RecordHeader.optionalByteCount(flags)))
      }
    }
    guard let header = RecordHeader(decoding: buffer.rawSpan, limit: limit) else {
      throw segment.corruption(at: offset, .badRecordHeader)
    }
    try read(to: header.headByteCount)
    guard buffer.count >= header.headByteCount,
      header.hasValidChecksum(buffer.rawSpan, at: offset, seed: segment.seed)
    else {
      throw segment.corruption(at: offset, .badRecordHeader)
    }
    if part == .all {
      try read(to: header.byteCount)
      guard buffer.count >= header.byteCount else {
        throw segment.corruption(at: offset, .fileTooShort)
      }
    }
    return PinnedBytes(owner: segment, copying: buffer)
  }

  package var segment: Segment {
    @inline(__always) get { pinned.owner }
  }

  /// Fields, key and metadata.
  package var head: RawSpan {
    @_lifetime(borrow self) get { pinned.bytes.extracting(0..<header.headByteCount) }
  }

  package var key: RawSpan {
    @_lifetime(borrow self) @inline(__always) get { pinned.bytes.extracting(header.keyRange) }
  }

  @inline(__always)
  package func hasKey(_ other: RawSpan) -> Bool { key.equals(other) }

  package func hasKey(prefix: RawSpan) -> Bool { key.starts(with: prefix) }

  package var metadata: RawSpan {
    @_lifetime(borrow self) get { pinned.bytes.extracting(header.metadataRange) }
  }

  package var value: RawSpan {
    @_lifetime(borrow self) @inline(__always) get { pinned.bytes.extracting(header.valueRange) }
  }

  package var sequence: SequenceNumber {
    @inline(__always) get { pinned.withOwner { $0.sequence(of: header) } }
  }

  /// - Throws: `corrupt` if the value does not match its checksum.
  @inline(__always)
  package func checkValue() throws(StoreError) {
    guard CRC32C.checksum(of: value) == header.valueChecksum else { throw badValue }
  }

  /// Whether the value is large, and an earlier read has checked it.
  @inline(__always)
  var isVerified: Bool {
    header.valueByteCount >= PageBits.pageByteCount
      && pinned.withOwner { $0.isVerified(at: offset + header.headByteCount) }
  }

  /// Remembers that the value is sound. No other value of a page or more begins in the same page.
  @inline(__always)
  func noteVerified() {
    if header.valueByteCount >= PageBits.pageByteCount {
      pinned.withOwner { $0.noteVerified(at: offset + header.headByteCount) }
    }
  }

  private var badValue: StoreError {
    segment.corruption(at: offset + header.headByteCount, .badValue)
  }

  /// A checked copy of the value.
  ///
  /// - Throws: `corrupt` if the value does not match its checksum.
  @inline(__always)
  package func checkedValue() throws(StoreError) -> [UInt8] {
    // For a small value, a second pass costs less than an array that code outside the standard
    // library fills.
    if header.valueByteCount < 1024 {
      try checkValue()
      return value.copied()
    }
    return try checkedLargeValue()
  }

  @inline(never)
  private func checkedLargeValue() throws(StoreError) -> [UInt8] {
    var checksum = CRC32C()
    let copy = checksum.update(copying: value)
    guard checksum.value == header.valueChecksum else { throw badValue }
    return copy
  }
}
