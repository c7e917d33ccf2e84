internal import CairnStore

/// Counts of a ``DiskCache``'s operations since it was opened, and its current size.
///
/// Getting these statistics makes no system call, so a metrics library can poll them. The counts
/// only grow.
public struct DiskCacheStatistics: Sendable, Hashable {
  /// Reads that found a value, in memory or on disk. `contains` and `info` do not count.
  public var hitCount: UInt64 = 0
  /// Reads that found no value, including reads of expired values.
  public var missCount: UInt64 = 0
  /// Values that were set.
  public var insertionCount: UInt64 = 0
  /// Insertions that replaced another value.
  public var replacementCount: UInt64 = 0
  /// Values that callers removed, including by `removeAll`.
  public var removalCount: UInt64 = 0
  /// Expired values that were removed.
  public var expirationCount: UInt64 = 0
  /// Evictions because of the limit on the number of entries.
  public var countEvictionCount: UInt64 = 0
  /// Evictions because of the limit on bytes.
  public var byteEvictionCount: UInt64 = 0
  /// Evictions to free space on the disk.
  public var spaceEvictionCount: UInt64 = 0
  /// Evictions by a trim.
  public var trimEvictionCount: UInt64 = 0
  /// Reads of values that could not be decoded or had another tag.
  public var undecodableCount: UInt64 = 0
  /// Values that were removed because they could not be decoded, or replaced by a load because they
  /// were damaged.
  public var dropCount: UInt64 = 0
  /// Failed reads and writes through subscripts.
  public var subscriptFailureCount: UInt64 = 0

  /// Whether the disk takes no more writes, because a sync failed or the directory was removed.
  /// Memory then keeps new values alone, and loses them with the process. Close the cache and open
  /// it again to heal it.
  public var isMemoryOnly: Bool = false
  /// Entries in the cache, including expired entries that have not been removed yet.
  public var heldCount: Int = 0
  /// Removed tags whose entries are still being removed in the background. `heldCount` includes
  /// these entries.
  public var sweepingTagCount: Int = 0
  /// Live bytes of the log, which the byte limit counts.
  public var liveByteCount: Int = 0
  /// Dead bytes of the log, which compaction reclaims.
  public var deadByteCount: Int = 0
  /// Bytes that the log takes on disk, including preallocated space.
  public var allocatedByteCount: Int = 0
  /// Bytes of removed segments that are still being read. Their space is reclaimed when the last of
  /// these reads ends.
  public var pinnedByteCount: Int = 0

  /// The statistics of the memory tier, or `nil` without one.
  public var memory: MemoryCacheStatistics?
  /// Counts of the cache's loads.
  public var loads = LoadStatistics()
  /// Disk reads by duration, counted while ``DiskCache/slowCallThreshold`` is set. Reads that find
  /// their value in memory are not included.
  public var readDurations = DurationHistogram()
  /// Writes, removals and batches by duration, counted while ``DiskCache/slowCallThreshold`` is
  /// set.
  public var writeDurations = DurationHistogram()

  init() {}

  /// All numbers with their names, for a metrics library. Those that only grow come first. The
  /// names for the memory tier begin with `memory.`, and the names for loads with `loads.`.
  public var metrics: [(name: String, value: UInt64)] {
    func named(_ prefix: String, _ metrics: [Metric]?) -> [Metric] {
      (metrics ?? []).map { (prefix + $0.name, $0.value) }
    }
    return counters + named("memory.", memory?.counters) + named("loads.", loads.counters)
      + gauges + named("memory.", memory?.gauges)
  }

  var gauges: [Metric] {
    [
      ("count", UInt64(heldCount)), ("memoryOnly", isMemoryOnly ? 1 : 0),
      ("sweepingTags", UInt64(sweepingTagCount)),
      ("liveBytes", UInt64(liveByteCount)),
      ("deadBytes", UInt64(deadByteCount)), ("allocatedBytes", UInt64(allocatedByteCount)),
      ("pinnedBytes", UInt64(pinnedByteCount)),
    ]
  }

  /// The counts since earlier statistics of the same cache, including those of the memory tier and
  /// of loads. Current sizes, such as `heldCount`, are not subtracted.
  ///
  /// For example, pass statistics that are a minute old to get the ``hitRatio`` of the last minute.
  ///
  /// - Parameter earlier: earlier statistics. If one of their counts is higher, the cache has been
  ///   reopened, and the result covers everything since then.
  public func since(_ earlier: Self) -> Self {
    guard var difference = subtracting(earlier) else { return self }
    if let before = earlier.memory { difference.memory = memory?.since(before) }
    difference.loads = loads.since(earlier.loads)
    difference.readDurations = readDurations.since(earlier.readDurations)
    difference.writeDurations = writeDurations.since(earlier.writeDurations)
    return difference
  }

  /// The statistics as text for Prometheus to scrape, in exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The label `tier` is `memory` or `disk`, and each tier counts
  /// only its own hits. The durations of reads and writes follow once the cache has timed a call.
  ///
  /// - Parameter prefix: begins each name, followed by `_`. Several caches in one response need
  ///   different prefixes. Characters that a name may not contain become `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add([memory?.tier, tier].compactMap { $0 })
    text.counter(
      "undecodable_reads", "Reads of values that could not be decoded.", [([:], undecodableCount)])
    text.counter(
      "unusable_removals", "Values removed because they could not be decoded or were damaged.",
      [([:], dropCount)])
    text.counter(
      "subscript_failures", "Reads and writes through subscripts that failed.",
      [([:], subscriptFailureCount)])
    text.gauge(
      "memory_only", "1 if the disk takes no more writes until the cache is opened again.",
      [([:], isMemoryOnly ? 1 : 0)])
    text.gauge("live_bytes", "Live bytes of the log.", [([:], liveByteCount)])
    text.gauge("dead_bytes", "Dead bytes of the log.", [([:], deadByteCount)])
    text.gauge(
      "allocated_bytes", "Bytes that the log takes on disk.", [([:], allocatedByteCount)])
    text.gauge(
      "pinned_bytes", "Bytes reclaimed when the last read of them ends.", [([:], pinnedByteCount)])
    text.gauge(
      "sweeping_tags", "Removed tags whose entries are still being removed.",
      [([:], sweepingTagCount)])
    memory?.addGauges(to: &text)
    text.add(loads)
    if readDurations.count &+ writeDurations.count > 0 {
      text.add(readDurations, "read_duration_seconds", "How long timed reads of the disk took.")
      text.add(
        writeDurations, "write_duration_seconds",
        "How long timed writes, removals and batches took.")
    }
    return text.text
  }

  private var tier: TierCounts {
    TierCounts(
      name: "disk", hits: hitCount - min(memory?.hitCount ?? 0, hitCount), misses: missCount,
      insertions: insertionCount, replacements: replacementCount, removals: removalCount,
      expirations: expirationCount,
      evictions: [
        ("count_limit", countEvictionCount), ("byte_limit", byteEvictionCount),
        ("free_disk_space", spaceEvictionCount), ("trim", trimEvictionCount),
      ], held: heldCount)
  }

  /// The fraction of reads that found a value, or `nil` before the first read.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  /// Bytes on disk per live byte, or `nil` if there are no live bytes.
  public var spaceAmplification: Double? {
    liveByteCount == 0 ? nil : Double(allocatedByteCount) / Double(liveByteCount)
  }

  /// All evictions, whatever the cause.
  public var evictionCount: UInt64 {
    countEvictionCount + byteEvictionCount + spaceEvictionCount + trimEvictionCount
  }
}

extension DiskCacheStatistics: CountedStatistics {
  static let counts: [Count] = [
    ("hits", \.hitCount), ("misses", \.missCount), ("insertions", \.insertionCount),
    ("replacements", \.replacementCount), ("removals", \.removalCount),
    ("expirations", \.expirationCount), ("evictions.count", \.countEvictionCount),
    ("evictions.bytes", \.byteEvictionCount), ("evictions.space", \.spaceEvictionCount),
    ("evictions.trim", \.trimEvictionCount), ("undecodable", \.undecodableCount),
    ("drops", \.dropCount), ("subscriptFailures", \.subscriptFailureCount),
  ]
}

extension DiskCacheStatistics: CustomStringConvertible {
  /// The cache's contents and counts, one line each, then the memory tier and the loads.
  public var description: String {
    let size = DisplayText.size
    var lines = [
      "\(DisplayText.count(heldCount, "entry", "entries")), \(size(liveByteCount)) live, "
        + "\(size(deadByteCount)) dead, \(size(allocatedByteCount)) on disk",
      describe(
        hits: hitCount, misses: missCount, insertions: insertionCount, removals: removalCount,
        expirations: expirationCount, evictions: evictionCount),
    ]
    let failures = [
      (undecodableCount, "undecodable"), (dropCount, "dropped"),
      (subscriptFailureCount, "failed by subscript"),
    ].filter { $0.0 > 0 }.map { "\(counted($0.0)) \($0.1)" }
    if isMemoryOnly { lines.append("the disk takes no more writes: open the cache again") }
    if !failures.isEmpty { lines.append(failures.joined(separator: ", ")) }
    if let memory {
      lines += "\(memory)".split(separator: "\n").map { "memory: \($0)" }
    }
    if loads.startedCount > 0 { lines.append("\(loads)") }
    return lines.joined(separator: "\n")
  }
}

/// The counters of ``DiskCacheStatistics``. Any thread may increment them.
final class DiskCounters: Sendable {
  // Spread, because every read increments one of them.
  let hits = SpreadCounter()
  let misses = SpreadCounter()
  let insertions = Counter()
  let undecodable = Counter()
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

  var statistics: DiskCacheStatistics {
    var statistics = DiskCacheStatistics()
    statistics.hitCount = hits.value
    statistics.missCount = misses.value
    statistics.insertionCount = insertions.value
    statistics.replacementCount = replacements.value
    statistics.removalCount = removals.value
    statistics.expirationCount = expirations.value
    statistics.countEvictionCount = countEvictions.value
    statistics.byteEvictionCount = byteEvictions.value
    statistics.spaceEvictionCount = spaceEvictions.value
    statistics.trimEvictionCount = trimEvictions.value
    statistics.undecodableCount = undecodable.value
    statistics.dropCount = drops.value
    statistics.subscriptFailureCount = subscriptFailures.value
    return statistics
  }
}
