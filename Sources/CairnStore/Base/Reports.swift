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
  /// Bytes of memory that the index takes.
  public var indexByteCount: Int
  /// The version of the newest write.
  public var lastVersion: UInt64
  /// The version of the format, as major and minor.
  public var formatVersion: String
  /// What the last open did.
  public var recovery: RecoveryReport

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

/// What opening a store found and did.
public struct RecoveryReport: Sendable, Hashable {
  /// Where the index came from.
  public enum Source: String, Sendable, Hashable {
    /// The store was new.
    case created
    /// Every record header was read.
    case scan
    /// A checkpoint was loaded and what followed it was read.
    case checkpoint
  }

  /// Where the index came from.
  public var source: Source = .created
  /// Whether the store had been closed before, or nothing was written since.
  public var wasClean: Bool = true
  /// Records read to build the index.
  public var replayedRecordCount: Int = 0
  /// Bytes at the end of the log that no acknowledged durable write needed and that were
  /// discarded.
  public var tornByteCount: Int = 0
  /// Values found damaged while their keys were intact: reading one of them throws.
  public var damagedValues: [Corruption] = []
  /// Files that the manifest does not know, moved to the folder `quarantine`.
  public var quarantinedFiles: [String] = []
  /// Whether the clock stood more than a day before the last time recorded in the store; expiry
  /// then goes by the clock.
  public var clockWentBack: Bool = false

  package init() {}
}

/// What a check of every byte of a store's files found.
public struct VerificationReport: Sendable, Hashable {
  /// Records that are sound: head and value. Tombstones and extensions, which have no value, count too.
  public var recordCount: Int = 0
  /// Bytes read.
  public var byteCount: Int = 0
  /// Bytes at the end of the log of a store that was not closed, which opening it discards.
  public var tornByteCount: Int = 0
  /// All that is wrong.
  public var errors: [Corruption] = []
  /// The keys of those errors that are damaged values.
  public var keys: [Corruption: [UInt8]] = [:]
  /// Of the damaged values those that no read asks for any more: a later record of the key replaces or removes
  /// them. A compaction drops them.
  public var replaced: Set<Corruption> = []

  package init() {}
}

/// How far a check of every byte has come.
public struct VerificationProgress: Sendable, Hashable {
  /// Bytes that were read.
  public var byteCount: Int
  /// Bytes that there are. Of a store that was not closed, this grows when the end of its log is found.
  public var totalByteCount: Int

  package init(byteCount: Int, totalByteCount: Int) {
    self.byteCount = byteCount
    self.totalByteCount = totalByteCount
  }
}
