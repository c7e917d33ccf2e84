/// The result of a compaction.
public struct CompactionReport: Sendable, Hashable {
  /// Segments that were removed.
  public var removedSegmentCount: Int = 0
  /// Segments written in their place.
  public var writtenSegmentCount: Int = 0
  /// Bytes of all segments before the compaction.
  public var byteCountBefore: Int = 0
  /// Bytes of all segments after the compaction, excluding removed segments that are still being
  /// read.
  public var byteCountAfter: Int = 0
  /// Live records that were copied.
  public var copiedRecordCount: Int = 0
  /// Tombstones that were dropped because no older record of their keys is left.
  public var droppedTombstoneCount: Int = 0
  /// Bytes of removed segments that are still being read. Their space is reclaimed when the last of
  /// these reads ends.
  public var pinnedByteCount: Int = 0
  /// Segments left unchanged because records that entries need are damaged or unreadable.
  public var unreadableSegmentCount: Int = 0
}
