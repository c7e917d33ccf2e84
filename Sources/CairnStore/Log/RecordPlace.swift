/// Identifies one record in an open store: its segment, and its offset there. No other record ever
/// has the same place, because ids of segments are not reused. A copy that a compaction makes has
/// another place.
@usableFromInline
package struct RecordPlace: Sendable, Equatable, BitwiseCopyable {
  private static var offsetBitCount: Int { 28 }
  /// The number of bits in `rawValue`.
  @inlinable package static var bitCount: Int { 60 }

  @usableFromInline package let rawValue: UInt64

  /// Stands for a place that is not known, or that does not fit.
  @inlinable package static var unknown: RecordPlace { RecordPlace(rawValue: 0) }

  @inlinable package init(rawValue: UInt64) { self.rawValue = rawValue }

  @inline(__always)
  init(_ id: SegmentID, offset: Int) {
    let unit = UInt64(truncatingIfNeeded: offset) >> 3
    let fits =
      unit >> Self.offsetBitCount == 0 && id.rawValue >> (Self.bitCount - Self.offsetBitCount) == 0
    rawValue = fits ? id.rawValue << Self.offsetBitCount | unit : 0
  }
}
