/// One segment of the log at one moment.
package struct SegmentStatistics: Sendable, Hashable {
  /// The number in the file's name, which is never reused.
  package let id: UInt64
  /// Bytes of records that hold a key's newest value.
  package let liveByteCount: Int
  /// Bytes of all other records.
  package let deadByteCount: Int
  /// Tombstones in the segment.
  package let tombstoneCount: Int
  /// Bytes of the header and the records.
  package let byteCount: Int
  /// Bytes that the segment takes on disk.
  package let allocatedByteCount: Int
  /// Whether the segment is sealed: complete, durable and listed as such. Compaction reclaims only
  /// sealed segments.
  package let isSealed: Bool
}
