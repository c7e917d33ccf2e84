/// The order in which a trim removes entries.
public enum TrimOrder: Sendable, Hashable {
  /// Entries whose last read or write is longest ago first.
  case leastRecentlyUsed
  /// Entries that take the most bytes in the log first. Among entries of equal size, the least
  /// recently used goes first.
  case largestFirst
}

/// The start of an entry's age.
public enum AgeBasis: Sendable, Hashable {
  /// Its last read or write.
  case access
  /// The write that made the entry.
  case write
}
