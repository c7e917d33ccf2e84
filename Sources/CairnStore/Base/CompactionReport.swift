/// What a compaction did.
public struct CompactionReport: Sendable, Hashable {
  /// Segments that were given up.
  public var removedSegmentCount: Int = 0
  /// Segments that were written in their place.
  public var writtenSegmentCount: Int = 0
  /// Bytes that all segments took before.
  public var byteCountBefore: Int = 0
  /// Bytes that all segments take now, those still read from not counted.
  public var byteCountAfter: Int = 0
  /// Live records that were copied.
  public var copiedRecordCount: Int = 0
  /// Tombstones that nothing needs any more.
  public var droppedTombstoneCount: Int = 0
  /// Bytes of segments that are out of the log and whose space is given back when the last read of
  /// them ends.
  public var pinnedByteCount: Int = 0
  /// Segments that were left as they are, since they are damaged or could not be read.
  public var unreadableSegmentCount: Int = 0

  /// Makes a report, for who has a cache of his own say what it did.
  ///
  /// - Parameters: as the properties of these names.
  package init(
    removedSegmentCount: Int = 0, writtenSegmentCount: Int = 0, byteCountBefore: Int = 0,
    byteCountAfter: Int = 0, copiedRecordCount: Int = 0, droppedTombstoneCount: Int = 0,
    pinnedByteCount: Int = 0, unreadableSegmentCount: Int = 0
  ) {
    self.removedSegmentCount = removedSegmentCount
    self.writtenSegmentCount = writtenSegmentCount
    self.byteCountBefore = byteCountBefore
    self.byteCountAfter = byteCountAfter
    self.copiedRecordCount = copiedRecordCount
    self.droppedTombstoneCount = droppedTombstoneCount
    self.pinnedByteCount = pinnedByteCount
    self.unreadableSegmentCount = unreadableSegmentCount
  }
}
