/// What a backup made.
public struct BackupReport: Sendable, Hashable {
  /// The version of the newest write that is in it.
  public var version: UInt64 = 0
  /// Entries, those that have expired among them.
  public var entryCount: Int = 0
  /// Segments of the log.
  public var segmentCount: Int = 0
  /// Bytes of the segments.
  public var byteCount: Int = 0
  /// Values that are damaged in the store, and in the backup too: reading one of them throws. All other
  /// bytes of the backup were read again and found right.
  public var damagedValues: [Corruption] = []
  /// The keys of the damaged values. The record need not be the newest of its key, which may be sound.
  public var keys: [Corruption: [UInt8]] = [:]

  /// Makes a report, for who has a cache of his own say what it did.
  ///
  /// - Parameters: as the properties of these names.
  package init(
    version: UInt64 = 0, entryCount: Int = 0, segmentCount: Int = 0, byteCount: Int = 0,
    damagedValues: [Corruption] = [], keys: [Corruption: [UInt8]] = [:]
  ) {
    self.version = version
    self.entryCount = entryCount
    self.segmentCount = segmentCount
    self.byteCount = byteCount
    self.damagedValues = damagedValues
    self.keys = keys
  }
}
