public import CairnStore

/// Counts of a cache's loads. The counts only grow.
public struct LoadStatistics: Sendable, Hashable {
  /// Loaders that were called.
  public var startedCount: UInt64 = 0
  /// Callers that waited for another caller's load.
  public var joinedCount: UInt64 = 0
  /// Loaders that threw.
  public var failedCount: UInt64 = 0
  /// Loads cancelled because no caller was waiting.
  public var cancelledCount: UInt64 = 0
  /// Loaded values that were not kept, because the key was written or removed or the load was
  /// cancelled in the meantime.
  public var outdatedCount: UInt64 = 0
  /// Loaded values that could not be written to disk. The waiting callers got them. The log reports
  /// why they could not be written.
  public var unkeptCount: UInt64 = 0
  /// Loads that returned a value for a key that had none.
  public var freshCount: UInt64 = 0
  /// Loads that replaced a key's value, or found it still valid.
  public var refreshedCount: UInt64 = 0
  /// Loads that found the value still valid. Included in `refreshedCount`.
  public var notModifiedCount: UInt64 = 0
  /// Loads that reported that no value exists.
  public var absentCount: UInt64 = 0
  /// Loads that exceeded their time limit. These do not count as failed.
  public var timedOutCount: UInt64 = 0
  /// Callers that received a stale value.
  public var staleServedCount: UInt64 = 0

  /// Finished loaders by duration, whatever their result. Loads are timed by the cache's clock, to
  /// the millisecond.
  public var durations = DurationHistogram()

  /// Makes empty statistics.
  package init() {}

  /// All counts with their names, for a metrics library.
  public var metrics: [(name: String, value: UInt64)] { counters }

  /// The counts and durations since an earlier reading of the same cache's statistics.
  ///
  /// - Parameter earlier: earlier statistics. If one of their counts is higher, the cache has been
  ///   reopened, and the result covers everything since then.
  public func since(_ earlier: Self) -> Self {
    guard var difference = subtracting(earlier) else { return self }
    difference.durations = durations.since(earlier.durations)
    return difference
  }

  /// The statistics as text for Prometheus to scrape, in exposition format 0.0.4
  /// (`text/plain; version=0.0.4`). The durations are a histogram, in seconds.
  ///
  /// - Parameter prefix: begins each name, followed by `_`. Several caches in one response need
  ///   different prefixes. Characters that a name may not contain become `_`.
  public func prometheus(prefix: String) -> String {
    var text = PrometheusText(prefix: prefix)
    text.add(self)
    return text.text
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
  /// The counts on one line, without those that are zero.
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

/// A count as text, with the noun for what it counts.
func counted(_ count: UInt64, _ singular: String? = nil, _ plural: String? = nil) -> String {
  let count = Int(clamping: count)
  return singular.map { DisplayText.count(count, $0, plural) } ?? DisplayText.count(count)
}

/// Counts of lookups, insertions and removals as text, for both kinds of cache.
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

/// A loaded value, with the options for keeping it.
///
///     let page = try await cache.value(forKey: url) {
///       let (bytes, age) = try await fetch(url)
///       return Loaded(bytes, options: .lifetime(.after(age)))
///     }
public struct Loaded<Value: Sendable>: Sendable {
  /// The value, which all waiters receive.
  public var value: Value
  /// The options for keeping the value. A lifetime begins when the load ends. The metadata may be
  /// the ETag that came with the value. For a value that was not loaded, no option is set.
  public var options: EntryOptions
  /// The time since the value was written, or since this process found it still valid. Zero for a
  /// value that was just loaded.
  public package(set) var age: Duration = .zero
  /// Whether the value's lifetime has ended, but a ``LoadPolicy`` allowed the call to return the
  /// value.
  public package(set) var isStale = false

  /// Makes the result of a loader.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - options: the options for keeping the value.
  public init(_ value: Value, options: EntryOptions = .standard) {
    self.value = value
    self.options = options
  }
}

extension Loaded: Equatable where Value: Equatable {}
extension Loaded: Hashable where Value: Hashable {}
