/// Why an entry went. A minor version may add cases.
public enum RemovalCause: Sendable, Hashable {
  /// Somebody removed it: `removeValue`, `remove`, a batch or a compare-and-remove.
  case removed
  /// It had to make room.
  case evicted(EvictionCause)
  /// A newer value took its place.
  case replaced
  /// It had expired when a write to its key, a trim or `removeExpired` found it.
  case expired
}

/// What an entry had to make room for. A minor version may add cases.
public enum EvictionCause: Sendable, Hashable, CaseIterable {
  /// The configuration's `countLimit`.
  case countLimit
  /// The configuration's `liveByteLimit`.
  case liveByteLimit
  /// Free space on the disk: the configuration's `freeDiskSpaceFloor`, or a trim to it.
  case freeDiskSpace
  /// A trim to a number, a size or an age that somebody asked for.
  case trim
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
