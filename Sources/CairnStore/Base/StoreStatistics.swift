/// The state of a store at one moment. Getting it takes time proportional to the number of
/// segments, not of keys.
public struct StoreStatistics: Sendable, Hashable {
  /// Keys in the index: those a read would find, and expired ones still held.
  public var indexedKeyCount: Int
  /// Bytes of the records that hold a key's newest value or extend its lifetime. If a record was
  /// unreadable when it was overwritten or removed, its bytes stay in this count until its segment
  /// is compacted.
  public var liveByteCount: Int
  /// Bytes of all other records: overwritten, removed, tombstones, ends of segments.
  public var deadByteCount: Int
  /// Bytes the segments take on disk, including preallocated space.
  public var allocatedByteCount: Int
  /// Segments of the log.
  public var segmentCount: Int
  /// The segments, in no particular order.
  public var segments: [SegmentStatistics]
  /// Tombstones in the log.
  public var tombstoneCount: Int
  /// Bytes of segments that are out of the log; their space is reclaimed when their last read ends.
  public var pinnedByteCount: Int
  /// Dead bytes that a compaction could reclaim, as of the last pass of housekeeping. Excludes the
  /// active segment and unreadable ones.
  public var reclaimableByteCount = 0
  /// By how many reclaimable bytes the log exceeds one and a half times the dead bytes that
  /// `spaceBound` allows. While above zero, overwriting waits for compaction.
  public var excessByteCount = 0
  /// Bytes that compaction has written since the store was opened. Divided by the bytes that callers
  /// have written meanwhile, it is the share that compaction adds to the wear of a disk.
  public var compactedByteCount = 0
  /// Writes that have waited, since the store was opened, for compaction, for room on the disk or
  /// for room within `diskByteLimit`.
  public var delayedWriteCount = 0
  /// The total time these writes waited.
  public var writeDelay: Duration = .zero
  /// Bytes of memory that the index takes.
  public var indexByteCount: Int
  /// The version of the newest write.
  public var lastVersion: UInt64
  /// The version of the format, as major and minor.
  public var formatVersion: String
  /// The result of the last open.
  public var recovery: RecoveryReport
  /// How far the clock is ahead of the time at the open plus the time elapsed since; negative if it
  /// is behind. A few milliseconds, unless the clock was set. If it is behind, lifetimes use that
  /// time instead; `recovery.clockLag` is the part that the open found.
  public var clockOffset: Duration = .zero
  /// The history of scrubs. Includes earlier sessions if maintenance scrubs.
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

/// What a store holds, as far as it is known without a system call.
package struct StoreUsage: Sendable, Hashable {
  package var indexedKeyCount = 0
  package var liveByteCount = 0
  package var deadByteCount = 0
  /// Bytes allocated for the segments' files.
  package var allocatedByteCount = 0
  package var pinnedByteCount = 0
  package var segmentCount = 0
}

/// One segment of the log at one moment.
public struct SegmentStatistics: Sendable, Hashable {
  /// The number in the name of its file, which is never reused.
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
  /// Whether it is complete and listed as such, so that compaction can reclaim its dead bytes.
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
