import Cairn
import Metrics
import ServiceLifecycle
import Synchronization

/// Reports a cache's statistics and events to swift-metrics.
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
/// You choose the value of the dimension `cache`; the other values are names in Cairn. Keys never
/// become labels, so each cache has about 50 time series.
///
/// Counters from the statistics add no cost to a get or a set: `report()`, which `run()` calls,
/// advances them. Each removal advances a counter from the events at once.
public final class CacheMetrics<Key: Hashable & Sendable, Value: Sendable>: Service {
  private let cache: DiskCache<Key, Value>
  private let interval: Duration
  /// The values reported to the counters so far, by the names of the statistics.
  private let told = Mutex<[String: Double]>([:])
  private let counters: [String: Counter]
  private let gauges: [String: Gauge]
  private let observation: CacheObservation
  private let loaded: Metrics.Timer
  private let failed: Metrics.Timer

  /// Begins to count events. Call `report()` or `run()` to report statistics.
  ///
  /// - Parameters:
  ///   - cache: the cache. The first report includes counts from before this call.
  ///   - name: the value of the dimension `cache`, unique in the program.
  ///   - interval: how often `run()` reports.
  ///   - factory: creates the metrics.
  /// - Throws: `StoreError`, if the cache is closed.
  public init(
    of cache: DiskCache<Key, Value>, named name: String, interval: Duration = .seconds(10),
    factory: any MetricsFactory = MetricsSystem.factory
  ) throws(StoreError) {
    self.cache = cache
    self.interval = interval
    var counters: [String: Counter] = [:]
    var gauges: [String: Gauge] = [:]
    for metric in try cache.statistics().metrics {
      let (label, key, value) = metric.place
      let dimensions = [("cache", name), (key, value)]
      if metric.isCounter {
        counters[metric.name] = Counter(label: label, dimensions: dimensions, factory: factory)
      } else {
        gauges[metric.name] = Gauge(label: label, dimensions: dimensions, factory: factory)
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

  /// Advances the counters by the changes since the last report, and sets the gauges.
  ///
  /// - Throws: `StoreError`, if the cache is closed.
  public func report() throws(StoreError) {
    let metrics = try cache.statistics().metrics
    let news = told.withLock { told in
      metrics.map { metric in
        let old = told[metric.name] ?? 0
        told[metric.name] = max(metric.value, old)
        return max(0, metric.value - old)
      }
    }
    for (metric, new) in zip(metrics, news) {
      gauges[metric.name]?.record(metric.value)
      if new > 0 { counters[metric.name]?.increment(by: Int64(new)) }
    }
  }

  /// Reports once per interval until the graceful shutdown, and then once more. List this service
  /// after the one that closes the cache, so that this one ends first.
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

  /// Returns a loader that measures the duration of `load` and rethrows its errors.
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

extension Metric {
  /// The label of the metric, and the dimension that distinguishes it from others of that label.
  fileprivate var place: (label: String, key: String, value: String) {
    if !isCounter { return ("cairn_held", "unit", name) }
    let prefix = "loads."
    guard name.hasPrefix(prefix) else { return ("cairn_operations_total", "operation", name) }
    return ("cairn_loads_total", "result", String(name.dropFirst(prefix.count)))
  }
}
