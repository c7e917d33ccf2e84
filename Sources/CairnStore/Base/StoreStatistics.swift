/// The state of a store at one moment.
public struct StoreStatistics: Sendable, Hashable {
  /// Keys in the index, including expired keys not yet removed.
  public var indexedKeyCount: Int
  /// Bytes of the records that hold a key's newest value. If a record was
  /// unreadable when its key was overwritten or removed, this count includes it until its segment
  /// is compacted.
  public var liveByteCount: Int
  /// Bytes of all other records: overwritten and removed values, tombstones, ends of segments.
  public var deadByteCount: Int
  /// Bytes that the segments take on disk, including preallocated space.
  public var allocatedByteCount: Int
  /// Segments of the log.
  public var segmentCount: Int
  /// The segments, in no particular order.
  public var segments: [SegmentStatistics]
  /// Tombstones in the log.
  public var tombstoneCount: Int
  /// Bytes of removed segments that are still being read. Their space is reclaimed when the last of
  /// these reads ends.
  public var pinnedByteCount: Int
  /// Dead bytes that a compaction could reclaim, as of the last background pass. Excludes the
  /// active segment and damaged segments.
  public var reclaimableByteCount = 0
  /// Dead bytes above a limit: half more than `spaceBound` allows, and at least two segments more.
  /// While compaction can reclaim them, overwrites wait for it. Also counts the bytes that it cannot
  /// reclaim because of damage: the dead bytes of damaged segments, and tombstones that must be kept
  /// for them. So if this stays above zero, `Store.verify` of the module `CairnRepair` tells
  /// what is damaged.
  public var excessByteCount = 0
  /// Bytes that compaction has written since the store was opened. Compare them with the bytes that
  /// callers have written to see how much compaction adds to the wear of the disk.
  public var compactedByteCount = 0
  /// Writes that have waited for compaction, for room on the disk or for room within
  /// `diskByteLimit` since the store was opened.
  public var delayedWriteCount = 0
  /// The total time that these writes have waited.
  public var writeDelay: Duration = .zero
  /// Bytes of memory that the index takes.
  public var indexByteCount: Int
  /// The version of the newest write.
  public var lastVersion: UInt64
  /// The format version, as major and minor numbers.
  public var formatVersion: String
  /// The version of Cairn.
  public var libraryVersion = LibraryVersion.text
  /// The result of the last open.
  public var recovery: RecoveryReport
  /// How far the clock is ahead of the time at the open plus the time elapsed since then. It is a
  /// few milliseconds, unless the clock was set. If it is negative, the clock is behind, and
  /// lifetimes follow the elapsed time. `recovery.clockLag` is the part that the open found.
  public var clockOffset: Duration = .zero
  /// The progress and the results of scrubs. If maintenance does the scrubbing, the results of
  /// earlier sessions are included.
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

/// The usage of a store, as far as it is known without a system call.
package struct StoreUsage: Sendable, Hashable {
  package var indexedKeyCount = 0
  package var liveByteCount = 0
  package var deadByteCount = 0
  /// Bytes allocated for the segments' files.
  package var allocatedByteCount = 0
  package var pinnedByteCount = 0
}

/// One segment of the log at one moment.
public struct SegmentStatistics: Sendable, Hashable {
  /// The number in the file's name, which is never reused.
  public var id: UInt64
  /// Bytes of records that hold a key's newest value.
  public var liveByteCount: Int
  /// Bytes of all other records.
  public var deadByteCount: Int
  /// Tombstones in the segment.
  public var tombstoneCount: Int
  /// Bytes of the header and the records.
  public var byteCount: Int
  /// Bytes that the segment takes on disk.
  public var allocatedByteCount: Int
  /// Whether the segment is sealed: complete, durable and listed as such. Compaction reclaims only
  /// sealed segments.
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
