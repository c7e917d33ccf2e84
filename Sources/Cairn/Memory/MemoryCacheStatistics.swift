internal import CairnStore

/// Counts of a ``MemoryCache``'s operations since its creation, and its current size.
///
/// Getting these statistics takes O(1), so a metrics library can poll them. The counts only grow.
public struct MemoryCacheStatistics: Sendable, Hashable {
  /// Reads that found a value. `contains` and `info` do not count.
  public var hitCount: UInt64 = 0
  /// Reads that found no value, including reads of expired values.
  public var missCount: UInt64 = 0
  /// Values that were set, including values that the cache did not keep.
  public var insertionCount: UInt64 = 0
  /// Insertions that replaced another value.
  public var replacementCount: UInt64 = 0
  /// Values that callers removed, including by `removeAll`.
  public var removalCount: UInt64 = 0
  /// Expired values that were removed.
  public var expirationCount: UInt64 = 0
  /// Evictions because of the limit on the number of entries.
  public var countEvictionCount: UInt64 = 0
  /// Evictions because of the limit on cost, including values that alone cost too much.
  public var costEvictionCount: UInt64 = 0
  /// Evictions by a trim.
  public var trimEvictionCount: UInt64 = 0
  /// Evictions because the system was short of memory.
  public var pressureEvictionCount: UInt64 = 0
  /// Evictions because the program went to the background.
  public var backgroundEvictionCount: UInt64 = 0

  /// Entries in the cache, including expired entries that have not been removed yet.
  public var heldCount: Int = 0
  /// The total cost of these entries, at most `Int.max`.
  public var heldCost: Int = 0
  /// Bytes of the cache's own structures, without the memory that keys and values refer to.
  public var overheadByteCount: Int = 0

  @usableFromInline init() {}

  /// All numbers with their names, for a metrics library. Those that only grow come first.
  public var metrics: [(name: String, value: UInt64)] { counters + gauges }

  var gauges: [Metric] {
    [
      ("count", UInt64(heldCount)), ("cost", UInt64(heldCost)),
      ("overheadBytes", UInt64(overheadByteCount)),
    ]
  }

  /// The counts since earlier statistics of the same cache. Current sizes, such as `heldCount`, are
  /// not subtracted.
  ///
  /// For example, pass statistics that are a minute old to get the ``hitRatio`` of the last minute.
  ///
  /// - Parameter earlier: earlier statistics. If one of their counts is higher, the cache is a new
  ///   one, and the result covers everything since then.
  public func since(_ earlier: Self) -> Self { subtracting(earlier) ?? self }

  /// The statistics as text for Prometheus to scrape, in exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The label `tier` is `memory`.
  ///
  /// - Parameter prefix: begins each name, followed by `_`. Several caches in one response need
  ///   different prefixes. Characters that a name may not contain become `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add([tier])
    addGauges(to: &text)
    return text.text
  }

  func addGauges(to text: inout PrometheusText) {
    text.gauge("memory_cost", "The cost of the entries in memory.", [([:], heldCost)])
    text.gauge(
      "memory_overhead_bytes", "Bytes of the cache's own structures, without keys and values.",
      [([:], overheadByteCount)])
  }

  var tier: TierCounts {
    TierCounts(
      name: "memory", hits: hitCount, misses: missCount, insertions: insertionCount,
      replacements: replacementCount, removals: removalCount, expirations: expirationCount,
      evictions: [
        ("count_limit", countEvictionCount), ("cost_limit", costEvictionCount),
        ("trim", trimEvictionCount), ("memory_pressure", pressureEvictionCount),
        ("background", backgroundEvictionCount),
      ], held: heldCount)
  }

  /// The fraction of reads that found a value, or `nil` before the first read.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  /// Evictions for all causes together.
  public var evictionCount: UInt64 {
    countEvictionCount + costEvictionCount + trimEvictionCount + pressureEvictionCount
      + backgroundEvictionCount
  }

  @usableFromInline
  mutating func note(_ cause: RemovalCause, count: Int = 1) {
    let count = UInt64(count)
    switch cause {
    case .removed: removalCount += count
    case .replaced: replacementCount += count
    case .expired: expirationCount += count
    case .evicted(.countLimit): countEvictionCount += count
    // The memory tier also drops entries that the disk evicts for its byte limit.
    case .evicted(.costLimit), .evicted(.byteLimit): costEvictionCount += count
    // A cache in memory has no disk.
    case .evicted(.trim), .evicted(.freeDiskSpace): trimEvictionCount += count
    case .evicted(.memoryPressure): pressureEvictionCount += count
    case .evicted(.background): backgroundEvictionCount += count
    }
  }
}

extension MemoryCacheStatistics: CountedStatistics {
  static let counts: [Count] = [
    ("hits", \.hitCount), ("misses", \.missCount), ("insertions", \.insertionCount),
    ("replacements", \.replacementCount), ("removals", \.removalCount),
    ("expirations", \.expirationCount), ("evictions.count", \.countEvictionCount),
    ("evictions.cost", \.costEvictionCount), ("evictions.trim", \.trimEvictionCount),
    ("evictions.pressure", \.pressureEvictionCount),
    ("evictions.background", \.backgroundEvictionCount),
  ]
}

extension MemoryCacheStatistics: CustomStringConvertible {
  /// The cache's contents and counts, one line each.
  public var description: String {
    """
    \(DisplayText.count(heldCount, "entry", "entries")), cost \(DisplayText.count(heldCost)), \
    \(DisplayText.size(overheadByteCount)) of overhead
    \(describe(
      hits: hitCount, misses: missCount, insertions: insertionCount, removals: removalCount,
      expirations: expirationCount, evictions: evictionCount))
    """
  }
}
