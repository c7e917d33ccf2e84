/// How far the log is complete: a segment, and the end of its last complete record or batch. The
/// position is one word, so one memory store can publish it.
///
///     63          37 36                     0
///     ┌─────────────┬────────────────────────┐
///     │ id, low (27)│ end in units of 8 bytes│
///     └─────────────┴────────────────────────┘
///
/// The open segments of one manifest have ids that differ in their lower 27 bits, and no segment is
/// longer than 2^40 bytes.
package struct LogPosition: Sendable, Hashable {
  private static let endBitCount = UInt64(37)

  package var rawValue: UInt64

  @inline(__always)
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  @inline(__always)
  package init(id: SegmentID, end: Int) {
    rawValue = id.rawValue << Self.endBitCount | UInt64(truncatingIfNeeded: end) >> 3
  }

  /// The end of the records in the segment.
  package var end: Int { Int(rawValue & (1 << Self.endBitCount - 1)) << 3 }

  /// Whether the position is in the segment.
  package func lies(in id: SegmentID) -> Bool {
    id.rawValue << Self.endBitCount == rawValue & ~(1 << Self.endBitCount - 1)
  }
}
