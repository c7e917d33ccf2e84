import CairnLibC

/// The time of a clock that never goes backwards, in nanoseconds. Reading it takes about 25 ns.
@inline(__always)
func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  // SAFETY: the call fills the structure.
  unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// How long a round lasts, and how often a single operation is timed.
struct Pace: Sendable {
  /// The round ends after this many calls at the latest.
  var maximumCallCount: Int
  /// The round ends after this time, which is checked after each timed call.
  var nanosecondLimit: UInt64 = .max
  var sampleInterval: Int
}

/// The results of one round.
struct Measurement: Sendable {
  /// Keys read or written: the number of calls times the keys of each.
  var operationCount = 0
  var nanoseconds: UInt64 = 0
  /// The latencies of calls.
  var latencies = LatencyHistogram()

  /// Calls `body` with 0, 1, 2, … and measures the total time. Also times every `sampleInterval`-th
  /// call, but not all calls, so that the clock does not distort the rate.
  @inline(__always)
  static func run(
    _ pace: Pace, operationsPerCall: Int = 1, _ body: (Int) throws -> Void
  ) rethrows -> Measurement {
    var measurement = Measurement()
    var call = 0
    let begin = monotonicNanoseconds()
    var now = begin
    while call < pace.maximumCallCount {
      let before = monotonicNanoseconds()
      try body(call)
      now = monotonicNanoseconds()
      measurement.latencies.record(now &- before)
      call += 1
      let blockEnd = min(call + pace.sampleInterval - 1, pace.maximumCallCount)
      while call < blockEnd {
        try body(call)
        call += 1
      }
      if now &- begin >= pace.nanosecondLimit { break }
    }
    measurement.nanoseconds = max(1, monotonicNanoseconds() &- begin)
    measurement.operationCount = call * operationsPerCall
    return measurement
  }

  /// Adds a later measurement.
  mutating func append(_ next: Measurement) {
    operationCount += next.operationCount
    nanoseconds += next.nanoseconds
    latencies.merge(next.latencies)
  }

  /// The total of concurrent threads: the sum of their operations, over the longest time.
  static func together(_ measurements: [Measurement]) -> Measurement {
    var sum = Measurement()
    for measurement in measurements {
      sum.operationCount += measurement.operationCount
      sum.nanoseconds = max(sum.nanoseconds, measurement.nanoseconds)
      sum.latencies.merge(measurement.latencies)
    }
    return sum
  }
}
