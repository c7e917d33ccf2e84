import Cairn
import Metrics
import ServiceLifecycle
import Synchronization

/// Hands what a cache counts to swift-metrics.
///
///     let metrics = CacheMetrics(of: pages, named: "pages")
///     let app = Application(router: router, services: [metrics])
///
///     let page = try await pages.value(
///       forKey: url, lifetime: .hours(1), orLoad: metrics.timing { try await fetch(url) })
///
/// | metric | kind | dimensions beside `cache` |
/// |---|---|---|
/// | `cairn_operations_total` | counter, from the statistics | `operation`: hits, misses, memory.hits, … |
/// | `cairn_loads_total` | counter, from the statistics | `result`: started, joined, failed, … |
/// | `cairn_held` | gauge, from the statistics | `unit`: count, liveBytes, … |
/// | `cairn_removals_total` | counter, from the events | `cause`: removed, replaced, expired, an eviction's |
/// | `cairn_damaged_total` | counter, from the events | |
/// | `cairn_load_duration` | timer, from the loaders | `result`: loaded, failed |
///
/// The values of the dimensions are names in Cairn, and the one of `cache` is yours: no key becomes a
/// label, so the number of time series is bounded, at about 50 for each cache.
///
/// A get or a set does nothing for the counters from statistics: they are advanced by each `report()`,
/// which `run()` calls. Each removal advances a counter from the events when it happens.
public final class CacheMetrics<Key: Hashable & Sendable, Value: Sendable>: Service {
  private let cache: DiskCache<Key, Value>
  private let interval: Duration
  /// What was told to the counters so far, by the names of the statistics.
  private let told = Mutex<[String: UInt64]>([:])
  private let counters: [String: Counter]
  private let gauges: [String: Gauge]
  private let observation: CacheObservation
  private let loaded: Metrics.Timer
  private let failed: Metrics.Timer

  /// Begins to count events. Call `report()`, or have `run()` call it.
  ///
  /// - Parameters:
  ///   - cache: the cache. Counts from before this call are told by the first report.
  ///   - name: the value of the dimension `cache`: one for each cache of the program.
  ///   - interval: how often `run()` reports.
  ///   - factory: where the metrics go.
  /// - Throws: `CacheError`, if the cache is closed.
  public init(
    of cache: DiskCache<Key, Value>, named name: String, interval: Duration = .seconds(10),
    factory: any MetricsFactory = MetricsSystem.factory
  ) throws(CacheError) {
    self.cache = cache
    self.interval = interval
    var counters: [String: Counter] = [:]
    var gauges: [String: Gauge] = [:]
    for metric in try cache.statistics().metrics {
      let (label, key, value) = StatisticName(metric.name).place
      let dimensions = [("cache", name), (key, value)]
      if StatisticName(metric.name).isHeld {
        gauges[metric.name] = Gauge(label: label, dimensions: dimensions, factory: factory)
      } else {
        counters[metric.name] = Counter(label: label, dimensions: dimensions, factory: factory)
      }
    }
    self.counters = counters
    self.gauges = gauges
    func timer(_ result: String) -> Metrics.Timer {
      Metrics.Timer(
        label: "cairn_load_duration", dimensions: [("cache", name), ("result", result)],
        factory: factory)
    }
    loaded = timer("loaded")
    failed = timer("failed")
    let causes = CauseCounters(cache: name, factory: factory)
    observation = cache.observe { event in
      switch event {
      case .removed(_, let cause): causes.counter(of: cause).increment()
      case .removedAll(let count): causes.removed.increment(by: count)
      case .damaged: causes.damaged.increment()
      default: break
      }
    }
  }

  deinit { observation.cancel() }

  /// Advances the counters by what happened since the last report, and sets the gauges.
  ///
  /// - Throws: `CacheError`, if the cache is closed.
  public func report() throws(CacheError) {
    let metrics = try cache.statistics().metrics
    let news = told.withLock { told in
      metrics.map { name, value in
        defer { told[name] = max(value, told[name] ?? 0) }
        return value - min(value, told[name] ?? 0)
      }
    }
    for (metric, new) in zip(metrics, news) {
      gauges[metric.name]?.record(Double(metric.value))
      if new > 0 { counters[metric.name]?.increment(by: Int64(clamping: new)) }
    }
  }

  /// Reports once per interval until the graceful shutdown, and then once more. Stand it behind the
  /// service that closes the cache, so that it ends before that one.
  public func run() async throws {
    do {
      try await cancelWhenGracefulShutdown { [self] in
        while true {
          try report()
          try await Task.sleep(for: interval)
        }
      }
    } catch is CancellationError {}
    try report()
  }

  /// A loader that is timed. What it throws goes on.
  public func timing<Result: Sendable>(
    _ load: @escaping @Sendable () async throws -> Result
  ) -> @Sendable () async throws -> Result {
    { [loaded, failed] in
      let start = ContinuousClock.now
      do {
        let result = try await load()
        loaded.record(duration: ContinuousClock.now - start)
        return result
      } catch {
        failed.record(duration: ContinuousClock.now - start)
        throw error
      }
    }
  }
}

/// The name of a count in Cairn's statistics, such as `memory.hits`.
private struct StatisticName {
  let name: String

  init(_ name: String) { self.name = name }

  /// Whether it is what a cache holds now. All other counts only grow.
  var isHeld: Bool {
    let held: Set = [
      "count", "sweepingTags", "liveBytes", "deadBytes", "allocatedBytes", "pinnedBytes",
      "memory.count", "memory.cost", "memory.overheadBytes",
    ]
    return held.contains(name)
  }

  /// The label of the metric, and the dimension that tells it from the others.
  var place: (label: String, key: String, value: String) {
    if isHeld { return ("cairn_held", "unit", name) }
    let prefix = "loads."
    guard name.hasPrefix(prefix) else { return ("cairn_operations_total", "operation", name) }
    return ("cairn_loads_total", "result", String(name.dropFirst(prefix.count)))
  }
}
