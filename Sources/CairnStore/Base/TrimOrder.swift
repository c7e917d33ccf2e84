/// The order in which a trim removes entries.
public enum TrimOrder: Sendable, Hashable {
  /// The entries whose last read or write is longest ago go first.
  case leastRecentlyUsed
  /// The entries that take the most bytes in the log go first. Among entries of equal size, the
  /// least recently used goes first.
  case largestFirst
}

/// The moment from which an entry's age counts.
public enum AgeBasis: Sendable, Hashable {
  /// The entry's last read or write.
  case access
  /// The write that made the entry.
  case write
}
