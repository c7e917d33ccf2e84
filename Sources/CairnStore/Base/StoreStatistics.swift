/// The state of a store at one moment.
public struct StoreStatistics: Sendable, Hashable {
  /// Keys in the index, including expired keys not yet removed.
  public package(set) var count: Int
  /// Bytes of the records that hold a key's newest value. If a record was
  /// unreadable when its key was overwritten or removed, this count includes it until its segment
  /// is compacted.
  public package(set) var liveByteCount: Int
  /// Bytes of all other records: overwritten and removed values, tombstones, ends of segments.
  package var deadByteCount: Int
  /// Bytes that the segments take on disk, including preallocated space.
  public package(set) var allocatedByteCount: Int
  /// Segments of the log.
  package var segmentCount: Int { segments.count }
  /// The segments, in no particular order.
  package var segments: [SegmentStatistics]
  /// Tombstones in the log.
  package var tombstoneCount: Int
  /// Bytes of removed segments that are still being read. Their space is reclaimed when the last of
  /// these reads ends.
  package var pinnedByteCount: Int
  /// Dead bytes that a compaction could reclaim, as of the last background pass. Excludes the
  /// active segment and damaged segments.
  package var reclaimableByteCount = 0
  /// Dead bytes above a limit: half more than `spaceBound` allows, and at least two segments more.
  /// While compaction can reclaim them, overwrites wait for it. Also counts the bytes that it cannot
  /// reclaim because of damage: the dead bytes of damaged segments, and tombstones that must be kept
  /// for them. So if this stays above zero, `Store.verify` of the module `CairnRepair` tells
  /// what is damaged.
  package var excessByteCount = 0
  /// Bytes that compaction has written since the store was opened. Compare them with the bytes that
  /// callers have written to see how much compaction adds to the wear of the disk.
  package var compactedByteCount = 0
  /// Writes that have waited for compaction, for room on the disk or for room within
  /// `diskByteLimit` since the store was opened.
  package var delayedWriteCount = 0
  /// The total time that these writes have waited.
  package var writeDelay: Duration = .zero
  /// Bytes of memory that the index takes.
  package var indexByteCount: Int
  /// The version of the newest write.
  public package(set) var lastVersion: UInt64
  /// The format version, as major and minor numbers.
  package var formatVersion: String
  /// The version of Cairn.
  package var libraryVersion = LibraryVersion.text
  /// The result of the last open.
  public package(set) var recovery: RecoveryReport
  /// How far the clock is ahead of the time at the open plus the time elapsed since then. It is a
  /// few milliseconds, unless the clock was set. If it is negative, the clock is behind, and
  /// lifetimes follow the elapsed time. `recovery.clockLag` is the part that the open found.
  package var clockOffset: Duration = .zero
  /// The progress and the results of scrubs. If maintenance does the scrubbing, the results of
  /// earlier sessions are included.
  package var scrub = ScrubStatistics()
}
