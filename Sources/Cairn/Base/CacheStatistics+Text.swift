internal import CairnStore

extension CacheStatistics {
  private typealias Family = (metric: String, name: String, help: String)

  /// The numbers of each tier. The label `tier` tells them apart.
  private static let tierFamilies: [Family] = [
    ("hits", "hits", "Reads that found a value in the tier."),
    ("misses", "misses", "Reads that found no value in the tier."),
    ("insertions", "insertions", "Values that were set."),
    ("replacements", "replacements", "Values that another value replaced."),
    ("removals", "removals", "Values that callers removed."),
    ("expirations", "expirations", "Expired values that were removed."),
    ("count", "entries", "Entries held."),
  ]
  private static let families: [Family] = [
    ("undecodable", "undecodable_reads", "Reads of values that could not be decoded."),
    ("drops", "unusable_removals", "Values removed as undecodable or damaged."),
    ("subscriptFailures", "subscript_failures", "Reads and writes through subscripts that failed."),
    ("memoryOnly", "memory_only", "1 if the disk takes no more writes until a reopen."),
    ("liveBytes", "live_bytes", "Live bytes of the log."),
    ("deadBytes", "dead_bytes", "Dead bytes of the log."),
    ("allocatedBytes", "allocated_bytes", "Bytes that the log takes on disk."),
    ("pinnedBytes", "pinned_bytes", "Bytes reclaimed when the last read of them ends."),
    ("sweepingTags", "sweeping_tags", "Removed tags whose entries are still being removed."),
    ("loads.started", "load_starts", "Loaders that were called."),
    ("loads.joined", "load_joins", "Callers that waited for another caller's load."),
    ("loads.outdated", "loads_outdated", "Loaded values outdated by a write or cancellation."),
    ("loads.unkept", "loads_unkept", "Loaded values that could not be written to disk."),
    ("loads.staleServed", "stale_served", "Callers that received a stale value."),
  ]
  private static let memoryFamilies: [Family] = [
    ("cost", "memory_cost", "The cost of the entries in memory."),
    ("overheadBytes", "memory_overhead_bytes", "Bytes of the cache's own structures."),
  ]
  private static let outcomes = [
    "fresh", "refreshed", "notModified", "absent", "failed", "timedOut", "cancelled",
  ]
  private static let evictions = [
    ("count", "count_limit"), ("bytes", "byte_limit"), ("cost", "cost_limit"),
    ("space", "free_disk_space"), ("trim", "trim"), ("pressure", "memory_pressure"),
    ("background", "background"),
  ]

  /// The statistics as text for Prometheus to scrape, in exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The label `tier` is `memory` or `disk`, and each tier counts
  /// only its own hits. The durations of loads are a histogram, in seconds. Those of reads and
  /// writes follow once the cache has timed a call.
  ///
  /// - Parameter prefix: begins each name, followed by `_`. Several caches in one response need
  ///   different prefixes. Characters that a name may not contain become `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    func add(
      _ name: String, _ help: String,
      _ samples: [(labels: KeyValuePairs<String, String>, metric: String)]
    ) {
      let metrics = samples.compactMap { sample in
        self.metrics.first { $0.name == sample.metric }.map { (sample.labels, $0) }
      }
      guard let first = metrics.first else { return }
      text.add(
        name, help, isCounter: first.1.isCounter,
        metrics.map { ($0, owned($1)) })
    }
    let memory = isOnDisk ? "memory." : ""
    let tiers = isOnDisk ? [("memory", memory), ("disk", "")] : [("memory", "")]
    for (metric, name, help) in Self.tierFamilies {
      add(name, help, tiers.map { tier, prefix in (["tier": tier], prefix + metric) })
    }
    add(
      "evictions", "Values evicted to make room, by cause.",
      tiers.flatMap { tier, prefix in
        Self.evictions.map { metric, cause in
          (["tier": tier, "cause": cause], "\(prefix)evictions.\(metric)")
        }
      })
    for (metric, name, help) in Self.families { add(name, help, [([:], metric)]) }
    for (metric, name, help) in Self.memoryFamilies { add(name, help, [([:], memory + metric)]) }
    add(
      "loads", "Loads by outcome. A load that ignores its cancellation may count twice.",
      Self.outcomes.map { (["outcome": PrometheusText.words($0)], "loads.\($0)") })
    if has("loads.started") {
      text.add(loadDurations, "load_duration_seconds", "How long finished loaders took.")
    }
    if readDurations.count &+ writeDurations.count > 0 {
      text.add(readDurations, "read_duration_seconds", "How long timed reads of the disk took.")
      text.add(
        writeDurations, "write_duration_seconds",
        "How long timed writes, removals and batches took.")
    }
    return text.text
  }

  /// A number without the part that another sample of the same name has.
  private func owned(_ metric: Metric) -> Double {
    let other = ["hits": "memory.hits", "loads.refreshed": "loads.notModified"][metric.name]
    return max(0, metric.value - Double(other.map { self[$0] } ?? 0))
  }
}

extension CacheStatistics: CustomStringConvertible {
  /// The cache's contents and counts, one line each, then the memory tier and the loads. Later
  /// versions may change the text.
  public var description: String {
    var lines = tier("")
    let failures = parts([
      ("undecodable", "undecodable"), ("drops", "dropped"),
      ("subscriptFailures", "failed by subscript"),
    ])
    if isMemoryOnly { lines.append("the disk takes no more writes: open the cache again") }
    if !failures.isEmpty { lines.append(failures.joined(separator: ", ")) }
    if has("memory.hits") { lines += tier("memory.").map { "memory: \($0)" } }
    if loadCount > 0 {
      let others = parts([
        ("loads.joined", "joined"), ("loads.failed", "failed"), ("loads.cancelled", "cancelled"),
        ("loads.outdated", "outdated"), ("loads.unkept", "not kept"),
        ("loads.refreshed", "refreshed"), ("loads.notModified", "not modified"),
        ("loads.absent", "absent"), ("loads.timedOut", "timed out"),
        ("loads.staleServed", "served stale"),
      ])
      lines.append(([counted("loads.started", "load")] + others).joined(separator: ", "))
    }
    return lines.joined(separator: "\n")
  }

  /// The size and the counts of a tier, one line each.
  private func tier(_ prefix: String) -> [String] {
    func size(_ name: String) -> String { DisplayText.size(Int(clamping: self[name])) }
    let evictions = DisplayText.count(Int(clamping: evictionCount(prefix)))
    let reads = ["hits", "misses"].map { Int(clamping: self[prefix + $0]) }
    let share = reads == [0, 0] ? "" : " (\(DisplayText.percents(reads)[0]) of reads)"
    return [
      counted(prefix + "count", "entry", "entries")
        + (isOnDisk && prefix.isEmpty
          ? ", \(size("liveBytes")) live, \(size("deadBytes")) dead, "
            + "\(size("allocatedBytes")) on disk"
          : ", cost \(counted(prefix + "cost")), \(size(prefix + "overheadBytes")) of overhead"),
      counted(prefix + "hits", "hit") + share + ", "
        + counted(prefix + "misses", "miss", "misses") + ", "
        + counted(prefix + "insertions", "insertion") + ", \(counted(prefix + "removals")) removed"
        + ", \(counted(prefix + "expirations")) expired, \(evictions) evicted",
    ]
  }

  /// The numbers that are not zero, with a word for each.
  private func parts(_ names: [(String, String)]) -> [String] {
    names.filter { self[$0.0] > 0 }.map { "\(counted($0.0)) \($0.1)" }
  }

  private func counted(_ name: String, _ singular: String? = nil, _ plural: String? = nil)
    -> String
  {
    let count = Int(clamping: self[name])
    return singular.map { DisplayText.count(count, $0, plural) } ?? DisplayText.count(count)
  }
}

extension PrometheusText {
  fileprivate mutating func add(_ durations: DurationHistogram, _ name: String, _ help: String) {
    histogram(
      name, help, bounds: DurationHistogram.bounds, counts: durations.counts, sum: durations.total)
  }
}
