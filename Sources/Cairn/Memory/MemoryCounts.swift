internal import CairnStore

/// The counts of a ``MemoryCache``'s operations, which the cache's lock guards.
@usableFromInline
struct MemoryCounts: Sendable {
  @usableFromInline var hitCount: UInt64 = 0
  @usableFromInline var missCount: UInt64 = 0
  /// Values that were set, including values that the cache did not keep.
  @usableFromInline var insertionCount: UInt64 = 0
  private var replacementCount: UInt64 = 0
  private var removalCount: UInt64 = 0
  private var expirationCount: UInt64 = 0
  private var countEvictionCount: UInt64 = 0
  /// Includes values that alone cost too much.
  private var costEvictionCount: UInt64 = 0
  private var trimEvictionCount: UInt64 = 0
  private var pressureEvictionCount: UInt64 = 0
  private var backgroundEvictionCount: UInt64 = 0

  @usableFromInline init() {}

  var metrics: [Metric] {
    [
      Metric("hits", hitCount), Metric("misses", missCount), Metric("insertions", insertionCount),
      Metric("replacements", replacementCount), Metric("removals", removalCount),
      Metric("expirations", expirationCount), Metric("evictions.count", countEvictionCount),
      Metric("evictions.cost", costEvictionCount), Metric("evictions.trim", trimEvictionCount),
      Metric("evictions.pressure", pressureEvictionCount),
      Metric("evictions.background", backgroundEvictionCount),
    ]
  }

  @usableFromInline
  mutating func note(_ cause: RemovalCause, count: Int = 1) {
    let count = UInt64(count)
    switch cause {
    case .removed: removalCount += count
    case .replaced: replacementCount += count
    case .expired: expirationCount += count
    case .evicted(let cause):
      switch cause.kind {
      case .countLimit: countEvictionCount += count
      // The memory tier also drops entries that the disk evicts for its byte limit.
      case .costLimit, .byteLimit: costEvictionCount += count
      // A cache in memory has no disk.
      case .trim, .freeDiskSpace: trimEvictionCount += count
      case .memoryPressure: pressureEvictionCount += count
      case .background: backgroundEvictionCount += count
      }
    }
  }
}
