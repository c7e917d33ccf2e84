internal import CairnStore

/// The counts of a cache tier, for both kinds of caches.
struct TierCounts {
  /// The value of the label `tier`.
  var name: String
  var hits: UInt64
  var misses: UInt64
  var insertions: UInt64
  var replacements: UInt64
  var removals: UInt64
  var expirations: UInt64
  /// Evictions, with the values of the label `cause`.
  var evictions: [(cause: String, count: UInt64)]
  var held: Int
}

extension PrometheusText {
  mutating func add(_ tiers: [TierCounts]) {
    let counters: [(String, String, KeyPath<TierCounts, UInt64>)] = [
      ("hits", "Reads that found a value in the tier.", \.hits),
      ("misses", "Reads that found no value in the tier.", \.misses),
      ("insertions", "Values that were set.", \.insertions),
      ("replacements", "Values that another value replaced.", \.replacements),
      ("removals", "Values that callers removed.", \.removals),
      ("expirations", "Expired values that were removed.", \.expirations),
    ]
    for (name, help, count) in counters {
      counter(name, help, tiers.map { (["tier": $0.name], $0[keyPath: count]) })
    }
    counter(
      "evictions", "Values evicted to make room, by cause.",
      tiers.flatMap { tier in
        tier.evictions.map { (["tier": tier.name, "cause": $0.cause], $0.count) }
      })
    gauge("entries", "Entries held.", tiers.map { (["tier": $0.name], $0.held) })
  }

  mutating func add(_ loads: LoadStatistics) {
    let outcomes: [(String, UInt64)] = [
      ("fresh", loads.freshCount),
      ("refreshed", loads.refreshedCount - min(loads.notModifiedCount, loads.refreshedCount)),
      ("not_modified", loads.notModifiedCount), ("absent", loads.absentCount),
      ("failed", loads.failedCount), ("timed_out", loads.timedOutCount),
      ("cancelled", loads.cancelledCount),
    ]
    counter(
      "loads", "Loads by outcome. A load that ignores its cancellation may count twice.",
      outcomes.map { (["outcome": $0.0], $0.1) })
    let counters: [(String, String, UInt64)] = [
      ("load_starts", "Loaders that were called.", loads.startedCount),
      ("load_joins", "Callers that waited for another caller's load.", loads.joinedCount),
      ("loads_outdated", "Loaded values outdated by a write or cancellation.", loads.outdatedCount),
      ("loads_unkept", "Loaded values that could not be written to disk.", loads.unkeptCount),
      ("stale_served", "Callers that received a stale value.", loads.staleServedCount),
    ]
    for (name, help, count) in counters { counter(name, help, [([:], count)]) }
    add(loads.durations, "load_duration_seconds", "How long finished loaders took.")
  }

  mutating func add(_ durations: DurationHistogram, _ name: String, _ help: String) {
    histogram(
      name, help, bounds: DurationHistogram.bounds, counts: durations.counts, sum: durations.total)
  }
}
