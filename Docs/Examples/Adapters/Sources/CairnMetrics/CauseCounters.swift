import Cairn
import Metrics

/// A counter for each cause of a removal.
struct CauseCounters: Sendable {
  let removed: Counter
  let replaced: Counter
  let expired: Counter
  let damaged: Counter
  private let evicted: @Sendable (_ cause: EvictionCause) -> Counter

  init(cache: String, factory: any MetricsFactory) {
    @Sendable func counter(_ cause: String) -> Counter {
      Counter(
        label: "cairn_removals_total", dimensions: [("cache", cache), ("cause", cause)],
        factory: factory)
    }
    removed = counter("removed")
    replaced = counter("replaced")
    expired = counter("expired")
    evicted = { counter("\($0)") }
    damaged = Counter(
      label: "cairn_damaged_total", dimensions: [("cache", cache)], factory: factory)
  }

  /// The counter of a cause.
  func counter(of cause: RemovalCause) -> Counter {
    switch cause {
    case .removed: removed
    case .replaced: replaced
    case .expired: expired
    case .evicted(let cause): evicted(cause)
    }
  }
}
