/// The result of a backup.
public struct BackupReport: Sendable, Hashable {
  /// The version of the newest write in the backup.
  public package(set) var version: UInt64 = 0
  /// Entries in the backup, including expired ones.
  public package(set) var entryCount = 0
  /// Copied segments of the log.
  package var segmentCount = 0
  /// Bytes that the call has copied: fewer than the backup has if it renewed an earlier one.
  public package(set) var byteCount = 0
  /// Values that were copied and are damaged in the store, and so in the backup. Reading one throws.
  /// All other bytes that were copied were read back and verified. A key may have a sound current
  /// value if the damaged record is not the key's newest.
  public package(set) var damage: [Damage] = []
}
