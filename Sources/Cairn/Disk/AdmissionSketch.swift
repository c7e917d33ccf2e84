internal import CairnStore

/// The keys loaded lately, in two Bloom filters. When the younger filter is full, the older one is
/// emptied and becomes the younger one.
final class AdmissionSketch: Sendable {
  /// The number of keys in a full filter: 10.5 bits for each key.
  static let keyLimit = 100_000
  private static let wordCount = 1 << 14
  /// The number of bits set for a key. With this many, a full filter has about 1 % false positives.
  private static let bitCount = 5

  private struct State: Sendable {
    var younger = [UInt64](repeating: 0, count: wordCount)
    var older = [UInt64](repeating: 0, count: wordCount)
    var keyCount = 0
  }

  private let state = Lock(State())
  private let hash: SipHash

  /// - Parameter secret: 16 bytes, so that nobody can choose keys that collide, or `nil` for random
  ///   bytes.
  init(secret: [UInt8]? = nil) {
    hash = SipHash(secret: secret ?? (0..<16).map { _ in UInt8.random(in: 0...255) })
  }

  /// Records that a key is loaded.
  ///
  /// - Returns: whether a filter already contained the key.
  func note(_ key: RawSpan) -> Bool {
    let hash = hash.hash(key)
    return state.withLock { state in
      let isYoung = Self.contains(hash, state.younger)
      if isYoung { return true }
      let isOld = Self.contains(hash, state.older)
      if state.keyCount == Self.keyLimit {
        swap(&state.younger, &state.older)
        for index in 0..<Self.wordCount { state.younger[index] = 0 }
        state.keyCount = 0
      }
      for number in 0..<Self.bitCount {
        let bit = Self.bit(number, of: hash)
        state.younger[bit >> 6] |= 1 << UInt64(bit & 63)
      }
      state.keyCount += 1
      return isOld
    }
  }

  private static func contains(_ hash: UInt64, _ words: [UInt64]) -> Bool {
    (0..<bitCount).allSatisfy { number in
      let bit = bit(number, of: hash)
      return words[bit >> 6] >> UInt64(bit & 63) & 1 == 1
    }
  }

  /// Double hashing: Kirsch and Mitzenmacher, 2006.
  private static func bit(_ number: Int, of hash: UInt64) -> Int {
    let step = hash >> 32 | 1
    return Int((hash &+ UInt64(number) &* step) & UInt64(wordCount * 64 - 1))
  }
}
