public import CairnStore

/// What a cache has loaded for callers of `value(forKey:orLoad:)` that found nothing. The counts only
/// grow.
public struct LoadStatistics: Sendable, Hashable {
  /// Loaders that were called.
  public var startedCount: UInt64 = 0
  /// Callers that waited for a load that another had begun.
  public var joinedCount: UInt64 = 0
  /// Of the loaders that were called, those that threw.
  public var failedCount: UInt64 = 0
  /// Loads that were cancelled since nobody waited any more.
  public var cancelledCount: UInt64 = 0
  /// Values that were loaded and not kept, since the key was written or removed meanwhile.
  public var outdatedCount: UInt64 = 0
  /// Values that were loaded and could not be kept, since they could not be written to disk. Those who
  /// waited got them; the log tells why.
  public var unkeptCount: UInt64 = 0
  /// Loads that brought a value where there was none.
  public var freshCount: UInt64 = 0
  /// Loads that brought a value where there was one, or found that one not modified.
  public var refreshedCount: UInt64 = 0
  /// Of those, the loads that found it not modified.
  public var notModifiedCount: UInt64 = 0
  /// Loads that found that there is no value.
  public var absentCount: UInt64 = 0
  /// Loads that took longer than their time limit. They are not among those that failed.
  public var timedOutCount: UInt64 = 0
  /// Callers that were given a stale value.
  public var staleServedCount: UInt64 = 0

  /// The upper bounds of the buckets of ``durationCounts``: those of Prometheus' clients, from 5 ms to 10 s.
  public static let durationBounds: [Duration] =
    [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map { .milliseconds($0) }
  /// Loaders that have ended, however they did, by how long they took: first those that took at most the first of
  /// ``durationBounds``, then those that took longer but at most the second, and last those that took longer than all bounds.
  public var durationCounts = [UInt64](repeating: 0, count: durationBounds.count + 1)
  /// How long these loaders took in all, to the millisecond each.
  public var totalDuration: Duration = .zero

  /// Makes counts of nothing, for who has a cache of his own.
  package init() {}

  /// All counts with their names, for a metrics library.
  public var metrics: [(name: String, value: UInt64)] { counters }

  /// The difference from earlier statistics of the same cache, in counts and durations.
  ///
  /// - Parameter earlier: statistics that were taken before. If one of their counts is higher, the cache was reopened in
  ///   between, and the result covers everything since the reopening.
  public func since(_ earlier: Self) -> Self {
    guard var difference = subtracting(earlier) else { return self }
    for index in difference.durationCounts.indices where index < earlier.durationCounts.count {
      difference.durationCounts[index] &-= earlier.durationCounts[index]
    }
    difference.totalDuration -= earlier.totalDuration
    return difference
  }

  /// The text that a server answers to a scrape by Prometheus, in its exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The durations are a histogram in seconds.
  ///
  /// - Parameter prefix: comes before each name, with `_` between; several caches in one answer need a prefix each. What no
  ///   name may have in it becomes `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add(self)
    return text.text
  }

  /// Counts a loader that has ended.
  mutating func note(_ duration: Duration) {
    let bucket = Self.durationBounds.firstIndex { duration <= $0 } ?? Self.durationBounds.count
    durationCounts[bucket] += 1
    totalDuration += duration
  }
}

extension LoadStatistics: CountedStatistics {
  static let counts: [Count] = [
    ("started", \.startedCount), ("joined", \.joinedCount), ("failed", \.failedCount),
    ("cancelled", \.cancelledCount), ("outdated", \.outdatedCount), ("unkept", \.unkeptCount),
    ("fresh", \.freshCount), ("refreshed", \.refreshedCount),
    ("notModified", \.notModifiedCount), ("absent", \.absentCount),
    ("timedOut", \.timedOutCount), ("staleServed", \.staleServedCount),
  ]
}

extension LoadStatistics: CustomStringConvertible {
  /// The counts on one line, but for those of what happened never.
  public var description: String {
    let others: [(UInt64, String)] = [
      (joinedCount, "joined"), (failedCount, "failed"), (cancelledCount, "cancelled"),
      (outdatedCount, "outdated"), (unkeptCount, "not kept"), (refreshedCount, "refreshed"),
      (notModifiedCount, "not modified"), (absentCount, "absent"), (timedOutCount, "timed out"),
      (staleServedCount, "served stale"),
    ]
    return
      (["\(counted(startedCount, "load"))"]
      + others.filter { $0.0 > 0 }.map { "\(counted($0.0)) \($0.1)" }).joined(separator: ", ")
  }
}

/// A count as a person reads it, with the word for what is counted.
func counted(_ count: UInt64, _ singular: String? = nil, _ plural: String? = nil) -> String {
  let count = Int(clamping: count)
  return singular.map { DisplayText.count(count, $0, plural) } ?? DisplayText.count(count)
}

/// What reads found and what came and went, in parts of a line, for both kinds of caches.
func describe(
  hits: UInt64, misses: UInt64, insertions: UInt64, removals: UInt64, expirations: UInt64,
  evictions: UInt64
) -> String {
  let share =
    hits + misses == 0
    ? "" : " (\(DisplayText.percents([Int(clamping: hits), Int(clamping: misses)])[0]) of reads)"
  return [
    counted(hits, "hit") + share, counted(misses, "miss", "misses"),
    counted(insertions, "insertion"),
    counted(removals) + " removed", counted(expirations) + " expired",
    counted(evictions) + " evicted",
  ].joined(separator: ", ")
}

/// A value that was loaded, with how it is to be kept.
///
///     let page = try await cache.value(forKey: url) {
///       let (bytes, age) = try await fetch(url)
///       return Loaded(bytes, options: .lifetime(.after(age)))
///     }
public struct Loaded<Value: Sendable>: Sendable {
  /// The value, for all who wait for it.
  public var value: Value
  /// How it is kept; of a value that was not loaded, nothing is said. A lifetime begins when the load ends; metadata may be the ETag that came with it.
  public var options: EntryOptions
  /// How long ago the value was written, or found not modified by this process. Zero from the load that brought it.
  public package(set) var age: Duration = .zero
  /// Whether its lifetime has ended: it is given as a ``LoadPolicy`` allows.
  public package(set) var isStale = false

  /// Makes what a loader returns.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - options: how it is kept.
  public init(_ value: Value, options: EntryOptions = .standard) {
    self.value = value
    self.options = options
  }
}

extension Loaded: Equatable where Value: Equatable {}
extension Loaded: Hashable where Value: Hashable {}
