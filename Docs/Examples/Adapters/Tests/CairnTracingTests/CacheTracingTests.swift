import Cairn
import CairnTracing
import Foundation
import InMemoryTracing
import Synchronization
import Testing
import Tracing

@Suite("The spans of a cache")
final class CacheTracingTests {
  private let path = NSTemporaryDirectory() + "/tracing-\(UUID().uuidString)"
  private let tracer = InMemoryTracer()

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func withCache(
    _ body: (DiskCache<String, String>) async throws -> Void
  ) async throws {
    let cache = try await DiskCache<String, String>.open(
      .path(path), configuration: .init())
    do { try await body(cache) } catch {
      try await cache.close()
      throw error
    }
    try await cache.close()
  }

  private func text(_ span: FinishedInMemorySpan, _ attribute: String) -> String? {
    guard case .string(let text) = span.attributes.get(attribute) else { return nil }
    return text
  }

  @Test("The span of a load is a child of the request's span, and a hit has none")
  func loads() async throws {
    let tracing = CacheTracing(of: "pages", tracer: tracer)
    try await withCache { cache in
      for _ in 1...3 {
        try await tracer.withSpan("request") { _ in
          let page = try await cache.value(
            forKey: "/secret", lifetime: .hours(1), orLoad: tracing.loading { "page" })
          #expect(page == "page")
        }
      }
    }
    let spans = tracer.finishedSpans
    let load = try #require(spans.first { $0.operationName == "cache.load" })
    #expect(spans.map(\.operationName) == ["cache.load", "request", "request", "request"])
    #expect(load.parentSpanID == spans[1].spanID)
    #expect(text(load, "cache.name") == "pages")
    #expect(!"\(load.attributes)".contains("secret"))
  }

  @Test("A loader's error is recorded in its span")
  func failures() async throws {
    struct Unreachable: Error {}
    let tracing = CacheTracing(of: "pages", tracer: tracer)
    try await withCache { cache in
      await #expect(throws: Unreachable.self) {
        try await cache.value(forKey: "/", orLoad: tracing.loading { throw Unreachable() })
      }
    }
    #expect(tracer.finishedSpans.map { $0.errors.count } == [1])
    #expect(tracer.finishedSpans.first?.errors.first?.error is Unreachable)
  }

  @Test("The span of a loader that gets the old value says whether there was one")
  func priors() async throws {
    let tracing = CacheTracing(of: "pages", tracer: tracer)
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(60)
    try await withCache { cache in
      for _ in 1...2 {
        // The page has expired before the next request.
        let page = try await cache.loaded(
          forKey: "/", policy: policy,
          orLoad: tracing.loading { _ in .loaded("page", lifetime: .after(.zero)) })
        #expect(page?.value == "page")
      }
    }
    #expect(tracer.finishedSpans.map { text($0, "cache.prior") } == ["none", "stale"])
  }

  @Test("A slow call has a span from its start to its end; a fast call has none")
  func slow() async throws {
    let time = Mutex<UInt64>(1_000_000_000)
    let tracing = CacheTracing(
      of: "pages", slowerThan: .milliseconds(10), tracer: tracer,
      now: { time.withLock { DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: $0) } })
    let take = { (milliseconds: UInt64) in time.withLock { $0 += milliseconds * 1_000_000 } }
    struct Full: Error {}

    tracing.slow("get") { take(9) }
    #expect(tracer.finishedSpans.isEmpty)
    #expect(
      tracing.slow("get") {
        take(10); return 5
      } == 5)
    await tracing.slow("setValue") { () async in take(30) }
    #expect(throws: Full.self) {
      try tracing.slow("sync") { () throws(Full) in
        take(20)
        throw Full()
      }
    }

    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName) == ["cache.get", "cache.setValue", "cache.sync"])
    #expect(
      spans.map(\.startInstant.nanosecondsSinceEpoch)
        == [1_009, 1_019, 1_049].map { $0 * 1_000_000 })
    #expect(
      spans.map(\.endInstant.nanosecondsSinceEpoch) == [1_019, 1_049, 1_069].map { $0 * 1_000_000 })
    #expect(spans.map(\.errors.count) == [0, 0, 1])
    #expect(spans.allSatisfy { text($0, "cache.name") == "pages" })
  }
}
