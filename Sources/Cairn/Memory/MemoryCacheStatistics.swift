internal import CairnStore

/// What a ``MemoryCache`` has done since it was made, and what it holds.
///
/// A value as of one moment; getting it takes O(1), so a metrics library can poll it. The counts only
/// grow.
public struct MemoryCacheStatistics: Sendable, Hashable {
  /// Reads that found a value. `contains` and `info` do not count.
  public var hitCount: UInt64 = 0
  /// Reads that found none, those of an expired one included.
  public var missCount: UInt64 = 0
  /// Values that were set, those that were not kept included.
  public var insertionCount: UInt64 = 0
  /// Of these, those that took the place of another.
  public var replacementCount: UInt64 = 0
  /// Values that somebody removed, with all that `removeAll` did.
  public var removalCount: UInt64 = 0
  /// Values that went since they had expired.
  public var expirationCount: UInt64 = 0
  /// Values that went to keep the limit on the number of entries.
  public var countEvictionCount: UInt64 = 0
  /// Values that went to keep the limit on the cost, those that cost too much by themselves included.
  public var costEvictionCount: UInt64 = 0
  /// Values that went in a trim.
  public var trimEvictionCount: UInt64 = 0
  /// Values that went for the system's shortage of memory.
  public var pressureEvictionCount: UInt64 = 0
  /// Values that went since the program went to the background.
  public var backgroundEvictionCount: UInt64 = 0

  /// Entries that are held, also those that have expired and were not noticed yet.
  public var heldCount: Int = 0
  /// What they cost, or the greatest number where it is more.
  public var heldCost: Int = 0
  /// Bytes that the cache takes for its own order, without what keys and values refer to.
  public var overheadByteCount: Int = 0

  @usableFromInline init() {}

  /// All counts with their names, for a metrics library; those that only grow first.
  public var metrics: [(name: String, value: UInt64)] { counters + gauges }

  var gauges: [Metric] {
    [
      ("count", UInt64(heldCount)), ("cost", UInt64(heldCost)),
      ("overheadBytes", UInt64(overheadByteCount)),
    ]
  }

  /// The difference from earlier statistics of the same cache. Counts are subtracted; what the cache holds is as it is now.
  ///
  /// Subtract statistics that are a minute old to get the ``hitRatio`` of the last minute.
  ///
  /// - Parameter earlier: statistics that were taken before. If one of their counts is higher, the cache was reopened in
  ///   between, and the result covers everything since the reopening.
  public func since(_ earlier: Self) -> Self { subtracting(earlier) ?? self }

  /// The text that a server answers to a scrape by Prometheus, in its exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The label `tier` is `memory`.
  ///
  /// - Parameter prefix: comes before each name, with `_` between; several caches in one answer need a prefix each. What no
  ///   name may have in it becomes `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add([tier])
    addGauges(to: &text)
    return text.text
  }

  func addGauges(to text: inout PrometheusText) {
    text.gauge("memory_cost", "What the entries in memory cost.", [([:], heldCost)])
    text.gauge(
      "memory_overhead_bytes", "Bytes of the order in memory, without keys and values.",
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

  /// The share of reads that found a value; `nil` where there were none.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  /// Values that had to make room, for whatever cause.
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
    // What goes from the disk for its bytes goes from the tier above it.
    case .evicted(.costLimit), .evicted(.byteLimit): costEvictionCount += count
    // No cache in memory knows of a disk.
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
  /// What the cache holds, and what it has done, a line each.
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
