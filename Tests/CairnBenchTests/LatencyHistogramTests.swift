import FoundationEssentials
import Testing

@testable import CairnBench

@Suite("The latency histogram")
struct LatencyHistogramTests {
  /// Values over nine orders of magnitude, like latencies.
  private func sample(_ count: Int, seed: UInt64) -> [UInt64] {
    var random = RandomSource(seed: seed)
    return (0..<count).map { _ in random.next() >> (34 + random.next() % 28) }
  }

  @Test("gives percentiles within one percent of the exact ones", arguments: 1...5)
  func percentiles(seed: UInt64) {
    let values = sample(10_000, seed: seed)
    var histogram = LatencyHistogram()
    for value in values { histogram.record(value) }
    let sorted = values.sorted()
    for share in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1] {
      let rank = max(1, Int((share * Double(values.count)).rounded(.up)))
      let exact = Double(sorted[rank - 1])
      let found = Double(histogram.percentile(share))
      #expect(abs(found - exact) <= exact * 0.01, "share \(share), seed \(seed)")
    }
  }

  @Test("is exact below 256 ns and accepts any value")
  func extremes() {
    for value: UInt64 in [0, 1, 127, 128, 255] {
      var histogram = LatencyHistogram()
      histogram.record(value)
      #expect(histogram.percentile(0.5) == value)
    }
    var histogram = LatencyHistogram()
    histogram.record(.max)
    histogram.record(256)
    #expect(histogram.count == 2)
    #expect(Double(histogram.percentile(1)) > Double(UInt64.max) * 0.99)
    #expect(LatencyHistogram().percentile(0.5) == 0)
  }

  @Test("has the same counts when merged or sent as JSON")
  func mergingAndCoding() throws {
    let (left, right) = (sample(500, seed: 7), sample(700, seed: 8))
    var (first, second, both) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
    for value in left { first.record(value) }
    for value in right { second.record(value) }
    for value in left + right { both.record(value) }
    let sent = try JSONDecoder().decode(
      LatencyHistogram.self, from: try JSONEncoder().encode(second))
    first.merge(sent)
    #expect(first == both)
  }
}
