/// Why an entry left a store or a cache. A minor version may add cases.
public enum RemovalCause: Sendable, Hashable {
  /// Somebody removed it.
  case removed
  /// It had to make room.
  case evicted(EvictionCause)
  /// A newer value took its place.
  case replaced
  /// Its lifetime had ended, or it was idle for too long. Told when a write to its key, a trim or `removeExpired` finds it,
  /// in memory also a read.
  case expired
}

/// What an entry had to make room for. A minor version may add cases.
public enum EvictionCause: Sendable, Hashable, CaseIterable {
  /// The limit on the number of entries.
  case countLimit
  /// The limit on their bytes on disk.
  case byteLimit
  /// The limit on their cost in memory. A value that costs more than the limit by itself goes at once, and nothing else on
  /// its account.
  case costLimit
  /// Free space on the disk: `freeDiskSpaceFloor`, or a trim to so much of it.
  case freeDiskSpace
  /// A trim to a number, a size or an age that somebody asked for.
  case trim
  /// The system's shortage of memory.
  case memoryPressure
  /// The program went to the background.
  case background
}

/// Something that left the store, told to the configuration's `removalObserver`.
/// A minor version may add cases.
public enum RemovalEvent: Sendable, Hashable {
  /// One entry went; `version` is the version it had.
  case entry(key: [UInt8], version: UInt64, cause: RemovalCause)
  /// Everything up to and including `throughVersion` went at once: `count` entries, which includes the expired
  /// ones that were still held; 0 if there was nothing.
  case all(throughVersion: UInt64, count: Int)
}
