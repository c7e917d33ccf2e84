/// Why an entry left a store or a cache. A minor version may add cases.
public enum RemovalCause: Sendable, Hashable {
  /// A caller removed the entry, or a load replaces a value that cannot be read.
  case removed
  /// The store or cache needed room.
  case evicted(EvictionCause)
  /// A newer value replaced the old one.
  case replaced
  /// The entry's lifetime had ended, or the entry had been idle for too long. Reported when the
  /// entry is removed: by a write to its key, a trim, maintenance or, in memory, a
  /// read.
  case expired
}

/// A removal from the store, as the configuration's `removalObserver` receives it. A minor version
/// may add cases.
public enum RemovalEvent: Sendable, Hashable {
  /// One entry was removed. `version` is the version that the entry had.
  case entry(key: [UInt8], version: UInt64, cause: RemovalCause)
  /// All `count` entries with versions up to `throughVersion` were removed at once, including
  /// expired ones.
  case all(throughVersion: UInt64, count: Int)
}
