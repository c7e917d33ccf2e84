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

  /// All counts with their names, those that only grow first.
  public var metrics: [(name: String, value: UInt64)] {
    [
      ("hits", hitCount), ("misses", missCount),
      ("memory.hits", memory.hitCount), ("memory.misses", memory.missCount),
      ("memory.insertions", memory.insertionCount),
      ("memory.replacements", memory.replacementCount),
      ("memory.removals", memory.removalCount), ("memory.expirations", memory.expirationCount),
      ("memory.evictions.count", memory.countEvictionCount),
      ("memory.evictions.cost", memory.costEvictionCount),
      ("memory.evictions.trim", memory.trimEvictionCount),
      ("memory.evictions.pressure", memory.pressureEvictionCount),
      ("memory.evictions.background", memory.backgroundEvictionCount),
      ("disk.hits", disk.hitCount), ("disk.misses", disk.missCount),
      ("disk.insertions", disk.insertionCount), ("disk.replacements", disk.replacementCount),
      ("disk.removals", disk.removalCount), ("disk.expirations", disk.expirationCount),
      ("disk.evictions.count", disk.countEvictionCount),
      ("disk.evictions.bytes", disk.byteEvictionCount),
      ("disk.evictions.space", disk.spaceEvictionCount),
      ("disk.evictions.trim", disk.trimEvictionCount),
      ("disk.undecodable", disk.undecodableCount), ("disk.drops", disk.dropCount),
      ("disk.subscriptFailures", disk.subscriptFailureCount),
      ("loads.started", loads.startedCount), ("loads.joined", loads.joinedCount),
      ("loads.failed", loads.failedCount), ("loads.cancelled", loads.cancelledCount),
      ("loads.outdated", loads.outdatedCount), ("loads.unkept", loads.unkeptCount),
      ("memory.count", UInt64(memory.heldCount)), ("memory.cost", UInt64(memory.heldCost)),
      ("memory.overheadBytes", UInt64(memory.overheadByteCount)),
      ("disk.count", UInt64(disk.heldCount)), ("disk.liveBytes", UInt64(disk.liveByteCount)),
      ("disk.deadBytes", UInt64(disk.deadByteCount)),
      ("disk.allocatedBytes", UInt64(disk.allocatedByteCount)),
      ("disk.pinnedBytes", UInt64(disk.pinnedByteCount)),
    ]
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
