/// Which tiers of a cache hold an entry.
public enum EntryPlacement: Sendable, Hashable {
  /// The disk, and memory too if it has room.
  case standard
  /// Only memory: the value is never written to disk. The value is lost when memory needs the room
  /// or the cache is closed. Its metadata is not kept.
  case memory
  /// The disk. The write does not put the value into memory, but the first read does.
  case disk
}
