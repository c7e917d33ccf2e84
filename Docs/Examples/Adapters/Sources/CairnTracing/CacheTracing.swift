import Cairn
import Tracing

/// Spans around what takes long in a cache: loads always, and other calls when they were slow.
///
///     let tracing = CacheTracing(of: "pages")
///     let page = try await pages.value(
///       forKey: url, lifetime: .hours(1), orLoad: tracing.loading { try await fetch(url) })
///     try await tracing.slow("setValue") { try await pages.setValue(page, forKey: url) }
///
/// A get that finds its value makes no span: it takes a microsecond, and a span costs more than that. A
/// load has the span of the request that began it as its parent, because Cairn runs it with the task-local
/// values of who came first. Who joins a load has no span of it.
///
/// Spans have the attributes `cache.name` and `cache.operation`, and an error if one was thrown. They
/// never have keys or values.
public struct CacheTracing: Sendable {
  private let name: String
  private let limit: Duration
  private let tracer: any Tracer
  private let now: @Sendable () -> DefaultTracerClock.Timestamp

  /// Makes spans for a cache.
  ///
  /// - Parameters:
  ///   - name: the attribute `cache.name`.
  ///   - limit: how long a call of `slow` takes at least for a span.
  ///   - tracer: where the spans go.
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

  /// A loader with a span, for `value(forKey:orLoad:)`.
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

  /// A loader with a span, for `loaded(forKey:orLoad:)`. The attribute `cache.prior` is `none`, `fresh`
  /// or `stale`.
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

  /// Makes a call, and a span of it if it took long. The span begins when the call began.
  ///
  /// - Parameters:
  ///   - operation: the name of the call: the span is `cache.` and this.
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

  /// The same for an asynchronous call.
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
