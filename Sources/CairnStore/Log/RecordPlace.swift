/// Identifies one record in an open store: its segment, its offset there, and the hash of its key. No
/// other record ever has the same place, because ids of segments are not reused. A copy that a
/// compaction makes has another place.
@usableFromInline
package struct RecordPlace: Sendable, Equatable, BitwiseCopyable {
  private static var offsetBitCount: Int { 28 }
  /// The number of bits in `rawValue`.
  package static var bitCount: Int { 61 }

  /// The segment and the offset.
  package let rawValue: UInt64
  /// The hash of the key in the index.
  package let hash: UInt64

  /// Stands for a place that is not known, or that does not fit.
  package static var unknown: RecordPlace { RecordPlace(rawValue: 0) }

  @inline(__always)
  package init(rawValue: UInt64, hash: UInt64 = 0) {
    self.rawValue = rawValue
    self.hash = hash
  }

  @inline(__always)
  init(_ id: SegmentID, offset: Int, hash: UInt64) {
    let unit = UInt64(truncatingIfNeeded: offset) >> 3
    let fits =
      unit >> Self.offsetBitCount == 0 && id.rawValue >> (Self.bitCount - Self.offsetBitCount) == 0
    rawValue = fits ? id.rawValue << Self.offsetBitCount | unit : 0
    self.hash = hash
  }
}
