/// A histogram of durations, with buckets a sixteenth wide.
struct Meter {
  private(set) var count = 0
  private(set) var errorCount = 0
  /// The processor time of this process and of the server during the measurement, in seconds.
  var ownTime = 0.0
  var serverTime = 0.0
  private var sampleCount = 0
  private var buckets = [Int](repeating: 0, count: 64 * 16)

  /// - Parameter duration: in nanoseconds; `nil` if it was not measured.
  mutating func note(_ duration: Int64?) {
    count += 1
    guard let duration else { return }
    sampleCount += 1
    let value = UInt64(max(16, duration))
    let exponent = 63 - value.leadingZeroBitCount
    buckets[exponent * 16 + Int(value >> (exponent - 4)) - 16] += 1
  }

  mutating func noteError() { errorCount += 1 }

  mutating func add(_ other: Meter) {
    count += other.count
    errorCount += other.errorCount
    sampleCount += other.sampleCount
    for index in buckets.indices { buckets[index] += other.buckets[index] }
  }

  /// The quantile of the durations, in microseconds.
  func quantile(_ share: Double) -> Double {
    var rest = Int((Double(sampleCount) * share).rounded(.up))
    for (index, count) in buckets.enumerated() {
      rest -= count
      if rest <= 0, count > 0 {
        let (exponent, part) = (index / 16, index % 16)
        return Double(sign: .plus, exponent: exponent - 4, significand: Double(part + 17)) / 1000
      }
    }
    return 0
  }
}

/// Draws numbers by Zipf's law: the second is drawn 2^s times less often than the first, where s is
/// the exponent.
struct Zipf: Sendable {
  private let sums: [Double]

  init(count: Int, exponent: Double) {
    var sum = 0.0
    sums = (1...count).map { rank in
      sum += 1 / Double(rank).power(exponent)
      return sum
    }
  }

  var count: Int { sums.count }

  /// - Returns: a number from 0 to `count` − 1.
  func draw(_ random: inout some RandomNumberGenerator) -> Int {
    let target = Double.random(in: 0..<(sums.last ?? 1), using: &random)
    var (low, high) = (0, sums.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] > target { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

/// A fast generator, SplitMix64.
struct FastRandom: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
