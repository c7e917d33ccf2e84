/// Which tiers of a cache hold an entry.
public enum EntryPlacement: Sendable, Hashable {
  /// The disk, and memory if it has room.
  case standard
  /// Only memory: the value is never written to disk. It is lost when memory needs the room, when
  /// the cache is closed, and at the end of the process. Its metadata is not kept.
  case memory
  /// The disk. The write does not bring the value to memory; the first read does.
  case disk
}
