/// What a ``TieredCache`` has done since it was opened, and what it holds.
///
/// A value as of one moment; getting it takes O(1) but for a look at each segment of the log, and no system
/// call, so a metrics library can poll it:
///
///     for (name, value) in try cache.statistics().metrics { gauge(name).record(value) }
public struct TieredCacheStatistics: Sendable, Hashable {
  /// What the tier in memory has done, and what it holds. A value that came there while the disk was looked at is a
  /// miss first and then a hit.
  public var memory: MemoryCacheStatistics
  /// What the tier on disk has done, and what it holds. Its hits and misses are those of reads that memory did not answer.
  public var disk: DiskCacheStatistics
  /// What was loaded by `value(forKey:orLoad:)`.
  public var loads: LoadStatistics

  /// Reads that found a value, in memory or on disk.
  public var hitCount: UInt64 { memory.hitCount + disk.hitCount }
  /// Reads that found none in either.
  public var missCount: UInt64 { disk.missCount }

  /// The share of reads that found a value; `nil` where there were none.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  /// All counts with their names, those that only grow first: `hits` and `misses`, then those of both tiers and of
  /// the loads, each with `memory.`, `disk.` or `loads.` before its name.
  public var metrics: [(name: String, value: UInt64)] {
    func named(_ prefix: String, _ metrics: [Metric]) -> [Metric] {
      metrics.map { (prefix + $0.name, $0.value) }
    }
    return [("hits", hitCount), ("misses", missCount)]
      + named("memory.", memory.counters) + named("disk.", disk.counters)
      + named("loads.", loads.counters) + named("memory.", memory.gauges)
      + named("disk.", disk.gauges)
  }
}

extension TieredCache {
  /// What the cache has done, and what it holds.
  ///
  /// - Throws: as `DiskCache.statistics`.
  public func statistics() throws(CacheError) -> TieredCacheStatistics {
    TieredCacheStatistics(
      memory: held.statistics(), disk: try disk.statistics(), loads: loadStatistics)
  }
}
