public import CairnStore

/// Counts of a cache's operations and loads since it was opened or made, and its current size.
///
/// The properties are the numbers that most programs need; ``metrics`` has all of them. Getting
/// statistics makes no system call, so a metrics library can poll them. The counts only grow.
public struct CacheStatistics: Sendable, Hashable {
  /// All numbers with their names, for a metrics library. The names for the memory tier of a
  /// ``DiskCache`` begin with `memory.`, and the names for loads with `loads.`.
  public package(set) var metrics: [Metric]
  /// Finished loaders by duration, whatever their result. Loads are timed by the cache's clock, to
  /// the millisecond.
  package var loadDurations: DurationHistogram
  /// Disk reads by duration, counted while ``DiskCache/slowCallThreshold`` is set. Reads that find
  /// their value in memory are not included.
  package var readDurations = DurationHistogram()
  /// Writes, removals and batches by duration, counted while ``DiskCache/slowCallThreshold`` is
  /// set.
  package var writeDurations = DurationHistogram()

  /// - Parameters:
  ///   - metrics: the numbers of the cache itself.
  ///   - memory: those of the memory tier of a cache on disk.
  ///   - loads: the counts of its loads, or `nil` for a memory tier.
  init(_ metrics: [Metric] = [], memory: [Metric] = [], loads: LoadCounts? = nil) {
    self.metrics =
      metrics + memory.map { Metric("memory.\($0.name)", $0.value, isCounter: $0.isCounter) }
      + (loads?.metrics ?? [])
    loadDurations = loads?.durations ?? DurationHistogram()
  }

  /// Reads that found a value, in memory or on disk. `contains` and `info` do not count.
  public var hitCount: UInt64 { self["hits"] }
  /// Reads that found no value, including reads of expired values.
  public var missCount: UInt64 { self["misses"] }
  /// Values that were evicted to make room, whatever the limit. `metrics` has them by cause.
  public var evictionCount: UInt64 { evictionCount("") }
  /// Loaders that were called.
  public var loadCount: UInt64 { self["loads.started"] }
  /// Callers that waited for another caller's load.
  public var joinedLoadCount: UInt64 { self["loads.joined"] }
  /// Loaders that threw.
  public var failedLoadCount: UInt64 { self["loads.failed"] }

  /// Entries in the cache, including expired entries that have not been removed yet.
  public var count: Int { Int(clamping: self["count"]) }
  /// The total cost of the entries in memory, at most `Int.max`.
  public var cost: Int { Int(clamping: self[isOnDisk ? "memory.cost" : "cost"]) }
  /// Live bytes on disk, which the byte limit counts.
  public var liveByteCount: Int { Int(clamping: self["liveBytes"]) }
  /// Bytes that the cache takes on disk, including preallocated space.
  public var allocatedByteCount: Int { Int(clamping: self["allocatedBytes"]) }
  /// Whether the disk takes no more writes, because a sync failed or the directory was removed.
  /// Memory then keeps new values alone, and loses them with the process. Close the cache and open
  /// it again to heal it.
  public var isMemoryOnly: Bool { self["memoryOnly"] > 0 }

  /// The fraction of reads that found a value, or `nil` before the first read.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  var isOnDisk: Bool { has("allocatedBytes") }

  /// The number with a name, or 0 if the cache has no such number.
  package subscript(name: String) -> UInt64 {
    UInt64(exactly: (metrics.first { $0.name == name }?.value ?? 0).rounded()) ?? .max
  }

  /// The evictions of a tier, whose names begin with `prefix`.
  func evictionCount(_ prefix: String) -> UInt64 {
    metrics.lazy.map(\.name).filter { $0.hasPrefix(prefix + "evictions.") }
      .reduce(0) { $0 + self[$1] }
  }

  func has(_ name: String) -> Bool { metrics.contains { $0.name == name } }

  /// The counts since earlier statistics of the same cache. Current sizes, such as `count`, are not
  /// subtracted.
  ///
  /// For example, pass statistics that are a minute old to get the ``hitRatio`` of the last minute.
  ///
  /// - Parameter earlier: earlier statistics. If one of their counts is higher, the cache has been
  ///   reopened, and the result covers everything since then.
  public func since(_ earlier: Self) -> Self {
    var difference = self
    for (index, metric) in metrics.enumerated() where metric.isCounter {
      guard let before = earlier.metrics.first(where: { $0.name == metric.name }) else { continue }
      if before.value > metric.value { return self }
      difference.metrics[index].value -= before.value
    }
    difference.loadDurations = loadDurations.since(earlier.loadDurations)
    difference.readDurations = readDurations.since(earlier.readDurations)
    difference.writeDurations = writeDurations.since(earlier.writeDurations)
    return difference
  }
}
