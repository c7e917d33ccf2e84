/// The state of a store at one moment. Getting it takes a time that grows with the number of
/// segments, not of keys.
public struct StoreStatistics: Sendable, Hashable {
  /// Keys in the index: those a read would find, and those that have expired but are still held.
  public var indexedKeyCount: Int
  /// Bytes of the records that hold a key's newest value.
  public var liveByteCount: Int
  /// Bytes of all other records: overwritten, removed, tombstones, ends of segments.
  public var deadByteCount: Int
  /// Bytes the segments take on disk, space allocated ahead included.
  public var allocatedByteCount: Int
  /// Segments of the log.
  public var segmentCount: Int
  /// Tombstones in the log.
  public var tombstoneCount: Int
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
    segmentCount: Int, tombstoneCount: Int, indexByteCount: Int, lastVersion: UInt64,
    formatVersion: String, recovery: RecoveryReport
  ) {
    self.indexedKeyCount = indexedKeyCount
    self.liveByteCount = liveByteCount
    self.deadByteCount = deadByteCount
    self.allocatedByteCount = allocatedByteCount
    self.segmentCount = segmentCount
    self.tombstoneCount = tombstoneCount
    self.indexByteCount = indexByteCount
    self.lastVersion = lastVersion
    self.formatVersion = formatVersion
    self.recovery = recovery
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
  /// Records that are sound.
  public var recordCount: Int = 0
  /// Bytes read.
  public var byteCount: Int = 0
  /// Bytes at the end of the log of a store that was not closed, which opening it discards.
  public var tornByteCount: Int = 0
  /// All that is wrong.
  public var errors: [Corruption] = []

  package init() {}
}
