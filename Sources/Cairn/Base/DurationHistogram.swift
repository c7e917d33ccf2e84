/// Calls counted by duration, in fixed buckets, as in Prometheus clients.
package struct DurationHistogram: Sendable, Hashable {
  /// The upper bounds of the buckets of ``counts``, from 10 µs to 10 s.
  package static let bounds: [Duration] =
    [10, 50, 100, 500, 1000].map { .microseconds($0) }
    + [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map { .milliseconds($0) }
  /// The number of calls in each bucket. The first bucket contains calls up to the first of
  /// ``bounds``, the second contains longer calls up to the second bound, and so on. The last
  /// bucket contains calls above all bounds.
  package var counts = [UInt64](repeating: 0, count: bounds.count + 1)
  /// The total duration of all calls.
  package var total: Duration = .zero

  init() {}

  /// The number of calls.
  package var count: UInt64 { counts.reduce(0, &+) }

  /// The index in `counts` of a duration's bucket.
  static func bucket(of duration: Duration) -> Int {
    bounds.firstIndex { duration <= $0 } ?? bounds.count
  }

  /// Counts a call.
  mutating func note(_ duration: Duration) {
    counts[Self.bucket(of: duration)] += 1
    total += duration
  }

  /// The calls since an earlier histogram of the same cache.
  func since(_ earlier: Self) -> Self {
    var difference = self
    for index in counts.indices where index < earlier.counts.count {
      difference.counts[index] &-= earlier.counts[index]
    }
    difference.total -= earlier.total
    return difference
  }
}
