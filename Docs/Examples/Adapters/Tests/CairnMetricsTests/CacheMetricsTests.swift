import Cairn
import CairnMetrics
import Foundation
import Logging
import Metrics
import MetricsTestKit
import ServiceLifecycle
import Testing

@Suite("The metrics of a cache")
final class CacheMetricsTests {
  private let path = NSTemporaryDirectory() + "/metrics-\(UUID().uuidString)"
  private let factory = TestMetrics()

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func withCache(
    _ body: (DiskCache<String, String>) async throws -> Void
  ) async throws {
    let configuration = DiskCacheConfiguration(
      countLimit: 10, byteLimit: nil, memory: MemoryConfiguration(countLimit: 5)
    )
    let cache = try await DiskCache<String, String>.open(
      .path(path), configuration: configuration)
    do { try await body(cache) } catch {
      try await cache.close()
      throw error
    }
    try await cache.close()
  }

  private func total(_ label: String, _ key: String, _ value: String) -> Int64 {
    factory.counterTotal(label: label, dimensions: [("cache", "pages"), (key, value)])
  }

  @Test("A report advances the counters by the changes since the last report, and sets the gauges")
  func statistics() async throws {
    try await withCache { cache in
      let metrics = try CacheMetrics(of: cache, named: "pages", factory: factory)
      for number in 1...3 { try await cache.setValue("page", forKey: "/\(number)") }
      _ = try cache.value(forKey: "/1")
      _ = try cache.value(forKey: "/none")
      for _ in 1...2 { try metrics.report() }
      #expect(total("cairn_operations_total", "operation", "hits") == 1)
      #expect(total("cairn_operations_total", "operation", "misses") == 1)
      #expect(total("cairn_operations_total", "operation", "insertions") == 3)
      _ = try cache.value(forKey: "/2")
      try metrics.report()
      #expect(total("cairn_operations_total", "operation", "hits") == 2)
      let held = try factory.expectGauge("cairn_held", [("cache", "pages"), ("unit", "count")])
      #expect(held.values == [3, 3, 3])
      let bytes = try factory.expectGauge(
        "cairn_held", [("cache", "pages"), ("unit", "allocatedBytes")])
      #expect(bytes.lastValue == Double(try cache.statistics().allocatedByteCount))
    }
  }

  @Test("Removals are counted by cause at once, without a report")
  func events() async throws {
    try await withCache { cache in
      let metrics = try CacheMetrics(of: cache, named: "pages", factory: factory)
      for number in 1...25 { try await cache.setValue("page", forKey: "/\(number)") }
      try await cache.setValue("new", forKey: "/25")
      try await cache.removeValue(forKey: "/25")
      let evicted = total("cairn_removals_total", "cause", "countLimit")
      #expect(evicted >= 15)
      #expect(total("cairn_removals_total", "cause", "replaced") == 1)
      #expect(total("cairn_removals_total", "cause", "removed") == 1)
      let left = try cache.count()
      try await cache.removeAll()
      #expect(total("cairn_removals_total", "cause", "removed") == Int64(1 + left))
      withExtendedLifetime(metrics) {}
    }
  }

  @Test("Loads are counted by result and timed, with failures separate")
  func loads() async throws {
    struct Unreachable: Error {}
    try await withCache { cache in
      let metrics = try CacheMetrics(of: cache, named: "pages", factory: factory)
      for _ in 1...3 {
        let page = try await cache.value(forKey: "/", orLoad: metrics.timing { "page" })
        #expect(page == "page")
      }
      await #expect(throws: Unreachable.self) {
        try await cache.value(forKey: "/none", orLoad: metrics.timing { throw Unreachable() })
      }
      try metrics.report()
      #expect(total("cairn_loads_total", "result", "started") == 2)
      #expect(total("cairn_loads_total", "result", "failed") == 1)
      for result in ["loaded", "failed"] {
        let timer = try factory.expectTimer(
          "cairn_load_duration", [("cache", "pages"), ("result", result)])
        #expect(timer.values.count == 1)
        #expect(timer.values.allSatisfy { $0 >= 0 })
      }
    }
  }

  @Test("The number of series does not depend on the number of keys")
  func bounded() async throws {
    try await withCache { cache in
      let metrics = try CacheMetrics(of: cache, named: "pages", factory: factory)
      try metrics.report()
      let before = factory.counters.count + factory.recorders.count + factory.timers.count
      for number in 1...500 {
        try await cache.setValue("page", forKey: "/\(number)")
        _ = try await cache.value(forKey: "/\(number)-", orLoad: metrics.timing { "page" })
      }
      try metrics.report()
      let after = factory.counters.count + factory.recorders.count + factory.timers.count
      #expect(before == after)
      #expect(after < 70)
    }
  }

  @Test("As a service, it reports until the shutdown, and once more at the end")
  func service() async throws {
    try await withCache { cache in
      let metrics = try CacheMetrics(
        of: cache, named: "pages", interval: .seconds(3600), factory: factory)
      let group = ServiceGroup(
        configuration: ServiceGroupConfiguration(
          services: [.init(service: metrics)], logger: Logger(label: "test")))
      async let run: Void = group.run()
      try await cache.setValue("page", forKey: "/")
      await group.triggerGracefulShutdown()
      try await run
      #expect(total("cairn_operations_total", "operation", "insertions") == 1)
    }
  }
}
