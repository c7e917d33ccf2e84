internal import CairnStore

/// What a ``DiskCache`` has done since it was opened, and what it holds.
///
/// A value as of one moment; getting it makes no system call, so a metrics library can poll it. The counts
/// only grow.
public struct DiskCacheStatistics: Sendable, Hashable {
  /// Reads that found a value, in memory or on disk. `contains` and `info` do not count.
  public var hitCount: UInt64 = 0
  /// Reads that found none, those of an expired one included.
  public var missCount: UInt64 = 0
  /// Values that were set.
  public var insertionCount: UInt64 = 0
  /// Of these, those that took the place of another.
  public var replacementCount: UInt64 = 0
  /// Values that somebody removed, with all that `removeAll` did.
  public var removalCount: UInt64 = 0
  /// Values that were found to have expired, and removed.
  public var expirationCount: UInt64 = 0
  /// Values that went to keep the limit on the number of entries.
  public var countEvictionCount: UInt64 = 0
  /// Values that went to keep the limit on their bytes.
  public var byteEvictionCount: UInt64 = 0
  /// Values that went to keep space free on the disk.
  public var spaceEvictionCount: UInt64 = 0
  /// Values that went in a trim.
  public var trimEvictionCount: UInt64 = 0
  /// Reads of values that could not be decoded or had another tag, whatever became of them.
  public var undecodableCount: UInt64 = 0
  /// Of the values that were removed, those that went since they could not be decoded, or were
  /// damaged and loaded anew.
  public var dropCount: UInt64 = 0
  /// Failed reads and writes through subscripts.
  public var subscriptFailureCount: UInt64 = 0

  /// Entries that are held, also those that have expired and were not removed yet.
  public var heldCount: Int = 0
  /// Removed tags whose entries are still being removed in the background. Until they are gone they count as held.
  public var sweepingTagCount: Int = 0
  /// Bytes of the log that are live: what the byte limit counts.
  public var liveByteCount: Int = 0
  /// Bytes of the log that are dead, and given back by compaction.
  public var deadByteCount: Int = 0
  /// Bytes that the log takes on disk, space allocated ahead included.
  public var allocatedByteCount: Int = 0
  /// Bytes whose space is given back when the last read of them ends.
  public var pinnedByteCount: Int = 0

  /// What the tier in memory has done, and what it holds; `nil` without one. A value that came there while the disk was
  /// looked at is a miss first and then a hit.
  public var memory: MemoryCacheStatistics?
  /// What was loaded by `value(forKey:orLoad:)`.
  public var loads = LoadStatistics()

  init() {}

  /// All counts with their names, for a metrics library; those that only grow first. Those of the tier in memory
  /// have `memory.` before their names, those of loads `loads.`.
  public var metrics: [(name: String, value: UInt64)] {
    func named(_ prefix: String, _ metrics: [Metric]?) -> [Metric] {
      (metrics ?? []).map { (prefix + $0.name, $0.value) }
    }
    return counters + named("memory.", memory?.counters) + named("loads.", loads.counters)
      + gauges + named("memory.", memory?.gauges)
  }

  var gauges: [Metric] {
    [
      ("count", UInt64(heldCount)), ("sweepingTags", UInt64(sweepingTagCount)),
      ("liveBytes", UInt64(liveByteCount)),
      ("deadBytes", UInt64(deadByteCount)), ("allocatedBytes", UInt64(allocatedByteCount)),
      ("pinnedBytes", UInt64(pinnedByteCount)),
    ]
  }

  /// The difference from earlier statistics of the same cache. Counts are subtracted, those of the memory tier and of loads
  /// too; what the cache holds is as it is now.
  ///
  /// Subtract statistics that are a minute old to get the ``hitRatio`` of the last minute.
  ///
  /// - Parameter earlier: statistics that were taken before. If one of their counts is higher, the cache was reopened in
  ///   between, and the result covers everything since the reopening.
  public func since(_ earlier: Self) -> Self {
    guard var difference = subtracting(earlier) else { return self }
    if let before = earlier.memory { difference.memory = memory?.since(before) }
    difference.loads = loads.since(earlier.loads)
    return difference
  }

  /// The text that a server answers to a scrape by Prometheus, in its exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The label `tier` is `memory` or `disk`: a hit
  /// of the one is none of the other.
  ///
  /// - Parameter prefix: comes before each name, with `_` between; several caches in one answer need a prefix each. What no
  ///   name may have in it becomes `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add([memory?.tier, tier].compactMap { $0 })
    text.counter(
      "undecodable_reads", "Reads of values that could not be decoded.", [([:], undecodableCount)])
    text.counter(
      "unusable_removals", "Values that went since they could not be decoded or were damaged.",
      [([:], dropCount)])
    text.counter(
      "subscript_failures", "Reads and writes through subscripts that failed.",
      [([:], subscriptFailureCount)])
    text.gauge("live_bytes", "Bytes of the log that are live.", [([:], liveByteCount)])
    text.gauge("dead_bytes", "Bytes of the log that are dead.", [([:], deadByteCount)])
    text.gauge(
      "allocated_bytes", "Bytes that the log takes on disk.", [([:], allocatedByteCount)])
    text.gauge(
      "pinned_bytes", "Bytes given back when the last read of them ends.", [([:], pinnedByteCount)])
    memory?.addGauges(to: &text)
    text.add(loads)
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

  /// The share of reads that found a value; `nil` where there were none.
  public var hitRatio: Double? {
    let reads = hitCount + missCount
    return reads == 0 ? nil : Double(hitCount) / Double(reads)
  }

  /// How many bytes the log takes for each that is live; `nil` where none is.
  public var spaceAmplification: Double? {
    liveByteCount == 0 ? nil : Double(allocatedByteCount) / Double(liveByteCount)
  }

  /// Values that had to make room, for whatever cause.
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
  /// What the cache holds and what it has done, a line each; then the tier in memory and the loads.
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
    if !failures.isEmpty { lines.append(failures.joined(separator: ", ")) }
    if let memory {
      lines += "\(memory)".split(separator: "\n").map { "memory: \($0)" }
    }
    if loads.startedCount > 0 { lines.append("\(loads)") }
    return lines.joined(separator: "\n")
  }
}

/// The counts of ``DiskCacheStatistics``, to be counted up from any thread.
final class DiskCounters: Sendable {
  // Reads write them.
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
    // The store has no other causes.
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
