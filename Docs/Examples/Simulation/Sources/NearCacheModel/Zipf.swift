import Foundation

/// The frequencies of keys by Zipf's law.
struct Zipf {
  /// Groups of keys with about the same frequency: the number of keys, and the share of each key.
  private(set) var groups: [(count: Double, share: Double)] = []

  /// Each of the first 10,000 keys is a group. The other groups contain keys whose ranks differ by
  /// up to a thousandth, so the number of groups grows only with the logarithm of the number of
  /// keys.
  init(keyCount: Int, exponent: Double) {
    var total = 0.0
    var first = 1
    while first <= keyCount {
      let last = first < 10_000 ? first : min(keyCount, first + first / 1000)
      let count = Double(last - first + 1)
      let weight = pow((Double(first) + Double(last)) / 2, -exponent)
      groups.append((count, weight))
      total += count * weight
      first = last + 1
    }
    for index in groups.indices { groups[index].share /= total }
  }

  /// The cumulative shares of the keys in order of rank, for drawing keys at random.
  static func cumulative(keyCount: Int, exponent: Double) -> [Double] {
    var sums: [Double] = []
    sums.reserveCapacity(keyCount)
    var sum = 0.0
    for rank in 1...keyCount {
      sum += pow(Double(rank), -exponent)
      sums.append(sum)
    }
    return sums.map { $0 / sum }
  }
}
