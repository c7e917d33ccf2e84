/// Requests to compare eviction policies on, made of a seed alone. Keys are numbers.
enum RequestStream: String, CaseIterable, Codable, Sendable {
  /// Keys by Zipf's law with exponent 0.99. After 125,000 requests, other keys are the popular ones.
  case zipfShift = "zipf-shift"
  /// A third more keys than fit, in turn.
  case loop
  /// A hot set that fits, by Zipf's law; after 2,000 such requests a scan over as many keys as fit.
  case scanAndHot = "scan-and-hot"
  /// Half by Zipf's law; after each of them one key that comes once.
  case oneHit = "one-hit"
  /// Twice as many keys as fit, to and fro.
  case toAndFro = "to-and-fro"

  /// How many entries the cache is to hold.
  static let capacity = 1_000

  private static let keyCount = 10_000

  /// - Parameter count: how many requests.
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
        // Ten scans go over other keys each before the first comes again.
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

  /// As many as are wanted of one draw, which begins again where it ends.
  private static func zipf(
    keyCount: Int, count: Int, _ random: inout RandomSource
  ) -> [UInt32] {
    let drawn = KeySequence.zipf(keyCount: keyCount, random: &random).indices
    return (0..<count).map { drawn[$0 & (drawn.count - 1)] }
  }
}
