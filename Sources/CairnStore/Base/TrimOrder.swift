/// Which entries a trim takes first.
public enum TrimOrder: Sendable, Hashable {
  /// Those whose last read or write is longest ago.
  case leastRecentlyUsed
  /// Those that take the most bytes in the log. Among entries of equal size, the least recently
  /// used goes first.
  case largestFirst
}

/// What the age of an entry is counted from.
public enum AgeBasis: Sendable, Hashable {
  /// Its last read or write.
  case access
  /// The write that made it.
  case write
}
