/// The state of a store at one moment. Getting it takes a time that grows with the number of
/// segments, not of keys.
public struct StoreStatistics: Sendable, Hashable {
  /// Keys in the index: those a read would find, and those that have expired but are still held.
  public var indexedKeyCount: Int
  /// Bytes of the records that hold a key's newest value or extend its lifetime. Of a record that could
  /// not be read when it was overwritten or removed, the bytes count on until its segment is compacted.
  public var liveByteCount: Int
  /// Bytes of all other records: overwritten, removed, tombstones, ends of segments.
  public var deadByteCount: Int
  /// Bytes the segments take on disk, space allocated ahead included.
  public var allocatedByteCount: Int
  /// Segments of the log.
  public var segmentCount: Int
  /// Each of them, in no order that means anything.
  public var segments: [SegmentStatistics]
  /// Tombstones in the log.
  public var tombstoneCount: Int
  /// Bytes of segments that are out of the log and whose space is given back when the last read of
  /// them ends.
  public var pinnedByteCount: Int
  /// Dead bytes that a compaction could give back, as of the last pass of housekeeping. What is still written to
  /// and what cannot be read is not among them.
  public var reclaimableByteCount = 0
  /// By how many of those the log is beyond half as much again as `spaceBound` allows. While there are any,
  /// overwriting waits for compaction.
  public var excessByteCount = 0
  /// Writes that have waited for compaction since the store was opened, or for room on the disk or within `diskByteLimit`.
  public var delayedWriteCount = 0
  /// How long these writes waited in all.
  public var writeDelay: Duration = .zero
  /// Bytes of memory that the index takes.
  public var indexByteCount: Int
  /// The version of the newest write.
  public var lastVersion: UInt64
  /// The version of the format, as major and minor.
  public var formatVersion: String
  /// What the last open did.
  public var recovery: RecoveryReport
  /// By how much the clock is ahead of the time at the open plus the time that has passed since; below zero where it is
  /// behind. A few milliseconds, unless the clock was set. Behind, lifetimes go by that time; `recovery.clockLag` is
  /// the part of it that the open found.
  public var clockOffset: Duration = .zero
  /// What scrubs have done, earlier sessions' included as far as maintenance scrubs.
  public var scrub = ScrubStatistics()

  package init(
    indexedKeyCount: Int, liveByteCount: Int, deadByteCount: Int, allocatedByteCount: Int,
    segments: [SegmentStatistics], tombstoneCount: Int, pinnedByteCount: Int,
    indexByteCount: Int, lastVersion: UInt64, formatVersion: String, recovery: RecoveryReport
  ) {
    self.indexedKeyCount = indexedKeyCount
    self.liveByteCount = liveByteCount
    self.deadByteCount = deadByteCount
    self.allocatedByteCount = allocatedByteCount
    segmentCount = segments.count
    self.segments = segments
    self.tombstoneCount = tombstoneCount
    self.pinnedByteCount = pinnedByteCount
    self.indexByteCount = indexByteCount
    self.lastVersion = lastVersion
    self.formatVersion = formatVersion
    self.recovery = recovery
  }
}

/// What a store holds, as far as it is known without asking the system.
package struct StoreUsage: Sendable, Hashable {
  package var indexedKeyCount = 0
  package var liveByteCount = 0
  package var deadByteCount = 0
  /// What was allocated of the segments' files.
  package var allocatedByteCount = 0
  package var pinnedByteCount = 0
  package var segmentCount = 0
}

/// One segment of the log at one moment.
public struct SegmentStatistics: Sendable, Hashable {
  /// The number in the name of its file, which is never given twice.
  public var id: UInt64
  /// Bytes of records that hold a key's newest value or extend its lifetime.
  public var liveByteCount: Int
  /// Bytes of its other records.
  public var deadByteCount: Int
  /// Tombstones in it.
  public var tombstoneCount: Int
  /// Bytes of its header and its records.
  public var byteCount: Int
  /// Bytes it takes on disk.
  public var allocatedByteCount: Int
  /// Whether it is complete and listed as such, so that compaction can give back its dead bytes.
  public var isSealed: Bool

  package init(
    id: UInt64, liveByteCount: Int, deadByteCount: Int, tombstoneCount: Int, byteCount: Int,
    allocatedByteCount: Int, isSealed: Bool
  ) {
    self.id = id
    self.liveByteCount = liveByteCount
    self.deadByteCount = deadByteCount
    self.tombstoneCount = tombstoneCount
    self.byteCount = byteCount
    self.allocatedByteCount = allocatedByteCount
    self.isSealed = isSealed
  }
}
