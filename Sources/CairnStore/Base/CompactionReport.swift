/// The result of a compaction.
public struct CompactionReport: Sendable, Hashable {
  /// Segments that were removed.
  package var removedSegmentCount: Int = 0
  /// Segments written in their place.
  package var writtenSegmentCount: Int = 0
  /// Bytes of all segments before the compaction.
  public package(set) var byteCountBefore: Int = 0
  /// Bytes of all segments after the compaction, excluding removed segments that are still being
  /// read.
  public package(set) var byteCountAfter: Int = 0
  /// Live records that were copied.
  package var copiedRecordCount: Int = 0
  /// Tombstones that were dropped because no older record of their keys is left.
  package var droppedTombstoneCount: Int = 0
  /// Bytes of removed segments that are still being read. Their space is reclaimed when the last of
  /// these reads ends.
  package var pinnedByteCount: Int = 0
  /// Segments left unchanged because records that entries need are damaged or unreadable.
  public package(set) var unreadableSegmentCount: Int = 0
}
