import Foundation

/// The popularity of keys by Zipf's law.
struct Zipf {
  /// Keys of about the same popularity: how many, and the share of each.
  private(set) var groups: [(count: Double, share: Double)] = []

  /// Each of the first 10,000 keys is a group, and the others are in groups whose ranks differ by a thousandth,
  /// so that a billion keys take no longer than a million.
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

  /// The sum of the shares of the first keys, for each number of them. For draws.
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
