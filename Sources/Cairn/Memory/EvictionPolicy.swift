/// Which entry goes where there is one too many.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// The one whose last read or write is longest ago.
  case leastRecentlyUsed
  /// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024): entries stand in the order in which
  /// they were made, and a hand that walks from the oldest to the newest takes the first one that was
  /// not used since it came by last.
  ///
  /// A read sets one bit and moves nothing, and entries that are used once go early: it keeps more of
  /// what is wanted than the order of use does where many keys are read only once, as in a scan. Finding an
  /// entry to go takes amortised O(1).
  case sieve
}
