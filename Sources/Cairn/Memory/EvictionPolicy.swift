/// Which entry is evicted where there is one too many.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// The one whose last read or write is longest ago.
  case leastRecentlyUsed
  /// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024): entries stand in the order in which
  /// they were made. A hand walks from the oldest to the newest and evicts the first entry that was not used since
  /// it came by last.
  ///
  /// A read sets one bit and moves nothing. Entries that are used once go early, so SIEVE often has more hits than
  /// the order of use on web and content traffic, where most keys are read once. It has fewer where recent keys are
  /// read again soon, as by a file server, and no more on a loop over more keys than fit. Measure your own load.
  ///
  /// One addition keeps the hand from following the newest entries for ever, without a hit: it starts over at the
  /// oldest when it has evicted as many entries as there are and passed hardly any. So when the keys in use change,
  /// the cache may have no hits for about as many misses as it has entries.
  ///
  /// Finding an entry to evict takes amortised O(1).
  case sieve
}
