import Cairn
import Tracing

/// Creates spans for all loads of a cache, and for other calls if they were slow.
///
///     let tracing = CacheTracing(of: "pages")
///     let page = try await pages.value(
///       forKey: url, lifetime: .hours(1), orLoad: tracing.loading { try await fetch(url) })
///     try await tracing.slow("setValue") { try await pages.setValue(page, forKey: url) }
///
/// A hit gets no span, because the span would take longer than the hit. The parent of a load's span
/// is the span of the request that began the load, because Cairn runs the load with that request's
/// task-local values. A request that joins a load gets no span for it.
///
/// Spans have the attributes `cache.name` and `cache.operation`, and an error if one was thrown.
/// They never contain the keys or values of the cache.
public struct CacheTracing: Sendable {
  private let name: String
  private let limit: Duration
  private let tracer: any Tracer
  private let now: @Sendable () -> DefaultTracerClock.Timestamp

  /// Creates the tracing of one cache.
  ///
  /// - Parameters:
  ///   - name: the attribute `cache.name`.
  ///   - limit: the minimum duration of a `slow` call that gets a span.
  ///   - tracer: receives the spans.
  ///   - now: the time of day. For tests.
  public init(
    of name: String, slowerThan limit: Duration = .milliseconds(10),
    tracer: any Tracer = InstrumentationSystem.tracer,
    now: @escaping @Sendable () -> DefaultTracerClock.Timestamp = { DefaultTracerClock.now }
  ) {
    self.name = name
    self.limit = limit
    self.tracer = tracer
    self.now = now
  }

  /// Returns a loader with a span, for `value(forKey:orLoad:)`.
  public func loading<Value: Sendable>(
    _ load: @escaping @Sendable () async throws -> Value
  ) -> @Sendable () async throws -> Value {
    { [self] in
      try await tracer.withSpan("cache.load", ofKind: .internal) { span in
        span.attributes["cache.name"] = name
        span.attributes["cache.operation"] = "load"
        return try await load()
      }
    }
  }

  /// Returns a loader with a span, for `loaded(forKey:orLoad:)`. The attribute `cache.prior` is
  /// `none`, `fresh` or `stale`.
  public func loading<Value: Sendable>(
    _ load: @escaping @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value>
  ) -> @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value> {
    { [self] prior in
      try await tracer.withSpan("cache.load", ofKind: .internal) { span in
        span.attributes["cache.name"] = name
        span.attributes["cache.operation"] = "load"
        span.attributes["cache.prior"] = prior.map { $0.isStale ? "stale" : "fresh" } ?? "none"
        return try await load(prior)
      }
    }
  }

  /// Makes a call, and creates a span for it if it was slow. The span begins with the call.
  ///
  /// - Parameters:
  ///   - operation: the name of the call. The span's name is `cache.` followed by this name.
  ///   - body: makes the call.
  public func slow<Result, Failure>(
    _ operation: String, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let start = now()
    do {
      let result = try body()
      note(operation, from: start, nil)
      return result
    } catch {
      note(operation, from: start, error)
      throw error
    }
  }

  /// Makes an asynchronous call, and creates a span for it if it was slow.
  public nonisolated(nonsending) func slow<Result, Failure>(
    _ operation: String,
    _ body: nonisolated(nonsending) () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let start = now()
    do {
      let result = try await body()
      note(operation, from: start, nil)
      return result
    } catch {
      note(operation, from: start, error)
      throw error
    }
  }

  private func note(
    _ operation: String, from start: DefaultTracerClock.Timestamp, _ error: (any Error)?
  ) {
    let end = now()
    // The time of day may have been set back.
    guard end >= start else { return }
    let length = end.nanosecondsSinceEpoch - start.nanosecondsSinceEpoch
    guard .nanoseconds(Int64(clamping: length)) >= limit else { return }
    let span = tracer.startSpan("cache.\(operation)", ofKind: .internal, at: start)
    span.attributes["cache.name"] = name
    span.attributes["cache.operation"] = operation
    if let error { span.recordError(error) }
    span.end(at: end)
  }
}
