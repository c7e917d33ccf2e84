/// Which entries a trim removes.
///
/// An argument of zero or less removes every entry, except for `toFreeDiskSpace`, where it removes
/// none.
public enum Trim: Sendable, Hashable {
  /// Expired entries, then others until at most this many entries are left.
  case toCount(_ count: Int, order: TrimOrder = .leastRecentlyUsed)
  /// Expired entries, then others until the entries take at most this many bytes in the log: those of
  /// whole records, which are keys, values, metadata and at least 24 bytes each. In memory, until
  /// the total cost of the entries is at most this number.
  case toBytes(_ byteCount: Int, order: TrimOrder = .leastRecentlyUsed)
  /// The least recently used entries, after all dead space has been reclaimed, until this many bytes
  /// of the filesystem are free for an unprivileged process, or nothing is left to remove. In
  /// memory, no entries.
  ///
  /// Free space depends on all files in the filesystem: if other programs fill the disk, the store
  /// gives up its own entries. Use this for data that you can recreate. Space that is reclaimed, but
  /// still held by reads in progress, counts as free.
  case toFreeDiskSpace(_ byteCount: Int)
  /// Entries that were last read or written more than this long ago. Accurate to 1 % of the time and
  /// 100 ms, and never too early.
  case unused(for: Duration)
  /// Entries that were written more than this long ago. Accurate to the second.
  case older(than: Duration)
  /// Entries whose lifetime has ended or that have been idle for too long. No read finds them, but
  /// until they are removed they take memory and count towards the limits. Maintenance also removes
  /// them.
  case expired
}

/// The order in which a trim removes entries.
public enum TrimOrder: Sendable, Hashable {
  /// The entries whose last read or write is longest ago go first. In memory, the order of the
  /// configured policy.
  case leastRecentlyUsed
  /// The entries that take the most bytes in the log, or in memory have the largest cost, go first.
  /// Among equals, the least recently used goes first.
  case largestFirst
}
