/// A segment that a compaction writes. It is not part of the log yet: if the compaction does not
/// finish, the segment is removed and nothing is lost.
final class CompactionOutput {
  /// The size of one write.
  static let pieceByteCount = 1 << 20

  let header: SegmentHeader
  let file: File
  /// The usage of the records. No record is live before an index entry names it.
  let usage: SegmentUsage
  /// The offset of the next record.
  private(set) var offset = SegmentHeader.byteCount
  private let seed: CRC32C
  /// Bytes not written yet, and their offset.
  private var buffer: [UInt8] = []
  private var bufferOffset = 0
  private var allocatedByteCount = 0

  init(header: SegmentHeader, file: File, total: UsageTotal) {
    self.header = header
    self.file = file
    usage = SegmentUsage(total: total)
    seed = header.recordSeed
    buffer = header.encoded()
  }

  var isEmpty: Bool { offset == SegmentHeader.byteCount }

  /// Whether a record's number and time can be encoded relative to those of the header.
  func reaches(_ sequence: SequenceNumber, writtenAt second: Int64) -> Bool {
    sequence >= header.baseSequence && sequence - header.baseSequence <= UInt64(UInt32.max)
      && second >= header.baseTime && second - header.baseTime <= Int64(UInt32.max)
  }

  /// Appends the head of a record. `append` adds its value, then `endRecord` ends it.
  func beginRecord(
    _ header: RecordHeader, head: [UInt8], sequence: SequenceNumber, writtenAt second: Int64
  ) -> RecordHeader {
    var copy = header
    // The copy is synced on its own before anything refers to it, so a batch flag or a sync mark
    // would mean nothing here.
    copy.flags.remove(.batch)
    copy.flags.remove(.syncMark)
    copy.sequenceDelta = UInt32(sequence - self.header.baseSequence)
    copy.writtenDelta = UInt32(second - self.header.baseTime)
    let start = buffer.count
    let (seed, offset) = (seed, offset)
    buffer.append(contentsOf: repeatElement(0, count: copy.headByteCount))
    buffer.withMutableSpan(in: start..<start + copy.headByteCount) { bytes in
      copy.encodeHead(
        key: head.rawSpan.extracting(header.keyRange),
        metadata: head.rawSpan.extracting(header.metadataRange),
        into: &bytes)
      copy.seal(&bytes, at: offset, seed: seed)
    }
    return copy
  }

  /// Appends a part of a record's value.
  func append(_ bytes: RawSpan) throws(StoreError) {
    buffer.append(contentsOf: bytes.copied())
    if buffer.count >= Self.pieceByteCount { try flush() }
  }

  /// Pads a record after its complete value.
  func endRecord(_ header: RecordHeader, sequence: SequenceNumber) throws(StoreError) {
    offset += header.byteCount
    let padding = offset - bufferOffset - buffer.count
    if padding > 0 { buffer.append(contentsOf: repeatElement(0, count: padding)) }
    usage.add(header, sequence: sequence, end: offset, isLive: false)
    if buffer.count >= Self.pieceByteCount { try flush() }
  }

  /// Writes the remaining bytes.
  func flush() throws(StoreError) {
    let end = bufferOffset + buffer.count
    // Allocate before the write, to tell a full disk from a failing one.
    try file.allocate(from: allocatedByteCount, to: end, orExtend: true)
    allocatedByteCount = end
    do {
      let bytes = buffer
      try file.write(bytes.rawSpan, at: bufferOffset)
    }
    bufferOffset = end
    buffer.removeAll(keepingCapacity: true)
  }
}
