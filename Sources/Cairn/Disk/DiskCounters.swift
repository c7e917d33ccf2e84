internal import CairnStore

/// The counters of a ``DiskCache``. Any thread may increment them.
final class DiskCounters: Sendable {
  // Spread, because every read increments one of them.
  let hits = SpreadCounter()
  let misses = SpreadCounter()
  let insertions = Counter()
  /// Reads of values that could not be decoded or had another tag.
  let undecodable = Counter()
  /// Values that were removed because they could not be decoded, or replaced by a load because they
  /// were damaged.
  let drops = Counter()
  let subscriptFailures = Counter()
  private let replacements = Counter()
  private let removals = Counter()
  private let expirations = Counter()
  private let countEvictions = Counter()
  private let byteEvictions = Counter()
  private let spaceEvictions = Counter()
  private let trimEvictions = Counter()

  func note(_ cause: RemovalCause, count: Int = 1) {
    switch cause {
    case .removed: removals.add(count)
    case .replaced: replacements.add(count)
    case .expired: expirations.add(count)
    case .evicted(.countLimit): countEvictions.add(count)
    case .evicted(.byteLimit): byteEvictions.add(count)
    case .evicted(.freeDiskSpace): spaceEvictions.add(count)
    // The store reports no other causes.
    case .evicted: trimEvictions.add(count)
    }
  }

  /// The counts. Hits in memory are hits of the cache too.
  func metrics(memoryHitCount: Double) -> [Metric] {
    [
      Metric("hits", Double(hits.value) + memoryHitCount), Metric("misses", misses.value),
      Metric("insertions", insertions.value), Metric("replacements", replacements.value),
      Metric("removals", removals.value), Metric("expirations", expirations.value),
      Metric("evictions.count", countEvictions.value),
      Metric("evictions.bytes", byteEvictions.value),
      Metric("evictions.space", spaceEvictions.value),
      Metric("evictions.trim", trimEvictions.value),
      Metric("undecodable", undecodable.value), Metric("drops", drops.value),
      Metric("subscriptFailures", subscriptFailures.value),
    ]
  }
}
