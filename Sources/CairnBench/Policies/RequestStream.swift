/// Requests for comparing eviction policies, generated from a seed. Keys are numbers.
enum RequestStream: String, CaseIterable, Codable, Sendable {
  /// Keys by Zipf's law with exponent 0.99. After every 125,000 requests, other keys become
  /// popular.
  case zipfShift = "zipf-shift"
  /// A third more keys than fit, in turn.
  case loop
  /// A hot set that fits, by Zipf's law; after 2,000 such requests a scan over as many keys as fit.
  case scanAndHot = "scan-and-hot"
  /// Half of the requests by Zipf's law, each followed by a key that occurs once.
  case oneHit = "one-hit"
  /// Twice as many keys as fit, back and forth.
  case toAndFro = "to-and-fro"

  /// The capacity of the cache in entries.
  static let capacity = 1_000

  private static let keyCount = 10_000

  /// - Parameter count: the number of requests.
  func requests(count: Int, seed: UInt64) -> [UInt32] {
    var random = RandomSource(seed: seed)
    let capacity = Self.capacity
    switch self {
    case .zipfShift:
      let phaseCount = max(1, count / 125_000)
      var requests: [UInt32] = []
      for _ in 0..<phaseCount {
        requests += Self.zipf(keyCount: Self.keyCount, count: count / phaseCount, &random)
      }
      return requests
    case .loop: return (0..<count).map { UInt32($0 % (capacity * 4 / 3)) }
    case .scanAndHot:
      let hot = Self.zipf(keyCount: capacity / 2, count: count, &random)
      let round = 2_000 + capacity
      return (0..<count).map { index in
        if index % round < 2_000 { return hot[index] }
        // Ten scans use different keys before the keys of the first scan return.
        return UInt32(capacity + index / round % 10 * capacity + index % round - 2_000)
      }
    case .oneHit:
      let asked = Self.zipf(keyCount: Self.keyCount, count: count, &random)
      return (0..<count).map { index in
        index % 2 == 0 ? asked[index] : UInt32(Self.keyCount + index)
      }
    case .toAndFro:
      let last = 2 * capacity - 1
      return (0..<count).map { index in
        let step = index % (2 * last)
        return UInt32(step <= last ? step : 2 * last - step)
      }
    }
  }

  /// The requested number of keys from one drawn sequence, which starts again at its end.
  private static func zipf(
    keyCount: Int, count: Int, _ random: inout RandomSource
  ) -> [UInt32] {
    let drawn = KeySequence.zipf(keyCount: keyCount, random: &random).indices
    return (0..<count).map { drawn[$0 & (drawn.count - 1)] }
  }
}
