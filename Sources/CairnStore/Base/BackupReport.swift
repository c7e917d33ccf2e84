/// The result of a backup.
public struct BackupReport: Sendable, Hashable {
  /// The version of the newest write in the backup.
  public var version: UInt64 = 0
  /// Copied entries, including expired ones.
  public var entryCount: Int = 0
  /// Copied segments of the log.
  public var segmentCount: Int = 0
  /// Bytes of the copied segments.
  public var byteCount: Int = 0
  /// Values that are damaged in the store and so in the backup. Reading one throws. All other bytes
  /// of the backup were read back and verified.
  public var damagedValues: [Corruption] = []
  /// The keys of the damaged values. A key may have a sound current value if the damaged record is
  /// not the key's newest.
  public var keys: [Corruption: [UInt8]] = [:]
}
