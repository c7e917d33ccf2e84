/// A segment that a compaction writes. It is not part of the log yet: if the compaction does not
/// finish, the segment is removed and nothing is lost.
final class CompactionOutput {
  /// The size of one write, which begins at a multiple of it, so that few and large folios of the
  /// page cache take it. On a virtual machine that gives free memory back to its host, still larger
  /// folios take 10 times as long to fill.
  static let pieceByteCount = 256 << 10

  let header: SegmentHeader
  let file: File
  /// The usage of the records. No record is live before an index entry names it.
  let usage: SegmentUsage
  /// The offset of the next record.
  private(set) var offset = SegmentHeader.byteCount
  private let seed: CRC32C
  /// Begins with the bytes not written yet. A head, which is shorter than 256 KiB, may extend beyond
  /// the piece.
  private var buffer = [UInt8](unfilled: 2 * pieceByteCount)
  private var filledByteCount = 0
  /// The offset of the buffer in the file.
  private var bufferOffset = 0

  init(header: SegmentHeader, file: File, total: UsageTotal) {
    self.header = header
    self.file = file
    usage = SegmentUsage(total: total)
    seed = header.recordSeed
    fill(header.encoded().rawSpan)
  }

  var isEmpty: Bool { offset == SegmentHeader.byteCount }

  /// Whether a record's number and time can be encoded relative to those of the header.
  func reaches(_ sequence: SequenceNumber, writtenAt second: Int64) -> Bool {
    sequence >= header.baseSequence && sequence - header.baseSequence <= UInt64(UInt32.max)
      && second >= header.baseTime && second - header.baseTime <= Int64(UInt32.max)
  }

  /// Appends the head of a record. `appendValue` adds its value, then `endRecord` ends it.
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
    let (seed, offset) = (seed, offset)
    let end = filledByteCount + copy.headByteCount
    buffer.withMutableSpan(in: filledByteCount..<end) { bytes in
      copy.encodeHead(
        key: head.rawSpan.extracting(header.keyRange),
        metadata: head.rawSpan.extracting(header.metadataRange),
        into: &bytes)
      copy.seal(&bytes, at: offset, seed: seed)
    }
    filledByteCount = end
    return copy
  }

  /// Appends a part of a record's value, read into the buffer by `read`, which gets the part's
  /// place there and returns how many bytes it has read.
  ///
  /// - Returns: that number, at most `byteCount`.
  func appendValue(
    byteCount: Int, by read: (inout [UInt8], Range<Int>) throws(StoreError) -> Int
  ) throws(StoreError) -> Int {
    try writeFullPiece()
    let end = min(filledByteCount + byteCount, Self.pieceByteCount)
    let count = try read(&buffer, filledByteCount..<end)
    filledByteCount += count
    return count
  }

  /// Pads a record after its complete value.
  func endRecord(_ header: RecordHeader, sequence: SequenceNumber) throws(StoreError) {
    offset += header.byteCount
    let end = offset - bufferOffset
    let paddingByteCount = end - filledByteCount
    buffer.withMutableSpan(in: filledByteCount..<end) { $0.zero(at: 0, count: paddingByteCount) }
    filledByteCount = end
    usage.add(header, sequence: sequence, end: offset, isLive: false)
    try writeFullPiece()
  }

  private func fill(_ bytes: RawSpan) {
    let end = filledByteCount + bytes.byteCount
    buffer.withMutableSpan(in: filledByteCount..<end) { $0.copy(bytes, to: 0) }
    filledByteCount = end
  }

  private func writeFullPiece() throws(StoreError) {
    if filledByteCount < Self.pieceByteCount { return }
    let rest = Array(buffer[Self.pieceByteCount..<filledByteCount])
    filledByteCount = Self.pieceByteCount
    try flush()
    fill(rest.rawSpan)
  }

  /// Writes the remaining bytes.
  func flush() throws(StoreError) {
    let end = bufferOffset + filledByteCount
    // Allocate before the write, to tell a full disk from a failing one.
    try file.allocate(from: bufferOffset, to: end, orExtend: true)
    do {
      let bytes = buffer
      try file.write(bytes.rawSpan.extracting(0..<filledByteCount), at: bufferOffset)
    }
    bufferOffset = end
    filledByteCount = 0
  }
}
