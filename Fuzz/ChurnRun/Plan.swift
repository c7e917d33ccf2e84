import CairnLibC
import CairnStore
import FuzzSupport

/// The operations of a churn run. The seed and an operation's number determine the operation, so a
/// process that takes over after a kill knows what earlier ones did.
struct Plan {
  enum Operation {
    case put(key: Int)
    /// A put of a value that soon expires.
    case putShortLived(key: Int)
    case remove(key: Int)
    /// Puts of these keys, in one atomic batch.
    case batch(keys: [Int])
    case get(key: Int)

    /// The keys that the operation writes.
    var written: [Int] {
      switch self {
      case .put(let key), .putShortLived(let key), .remove(let key): [key]
      case .batch(let keys): keys
      case .get: []
      }
    }
  }

  static let shortLife = Lifetime.milliseconds(20)

  let seed: UInt64
  let keyCount: Int
  private let zipf: Zipf

  init(seed: UInt64, keyCount: Int) {
    self.seed = seed
    self.keyCount = keyCount
    zipf = Zipf(count: keyCount)
  }

  private func random(_ number: Int) -> FuzzRandom {
    var random = FuzzRandom(seed: seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15)
    _ = random.next()
    return random
  }

  subscript(number: Int) -> Operation {
    var random = random(number)
    let kind = random.below(100)
    let key = key(&random)
    switch kind {
    case 0..<66: return .put(key: key)
    case 66..<70: return .putShortLived(key: key)
    case 70..<80: return .remove(key: key)
    case 80..<84:
      var keys = [key]
      for _ in 0..<7 {
        let key = self.key(&random)
        if !keys.contains(key) { keys.append(key) }
      }
      return .batch(keys: keys)
    default: return .get(key: key)
    }
  }

  /// Spreads the popular keys over all keys.
  private func key(_ random: inout FuzzRandom) -> Int {
    zipf.rank(&random) &* 0x9E3_779B1 % keyCount
  }

  func keyBytes(_ key: Int) -> [UInt8] { Array("churn/key/\(key)".utf8) }

  /// The value that an operation gives a key. It identifies the operation and the key, so a wrong
  /// value is detected.
  func value(of number: Int, for key: Int) -> [UInt8] {
    var random = FuzzRandom(seed: seed ^ UInt64(number) << 20 ^ UInt64(key))
    let byteCount = random.below(1000) == 0 ? 20_000 + random.below(80_000) : 16 + random.below(400)
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: random.next()), count: byteCount)
    for index in 0..<8 {
      bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index))
      bytes[8 + index] = UInt8(truncatingIfNeeded: key >> (8 * index))
    }
    return bytes
  }
}

/// Ranks from 0 on, lower ranks more often: Zipf's law with exponent 0.99, as in YCSB (Gray et al.,
/// "Quickly generating billion-record synthetic databases", 1994).
struct Zipf {
  private let count: Double
  private let zetaN: Double
  private let eta: Double
  private static let theta = 0.99

  init(count: Int) {
    self.count = Double(count)
    var sum = 0.0
    for rank in 1...count { sum += 1 / pow(Double(rank), Self.theta) }
    zetaN = sum
    let zeta2 = 1 + 1 / pow(2, Self.theta)
    eta = (1 - pow(2 / Double(count), 1 - Self.theta)) / (1 - zeta2 / sum)
  }

  func rank(_ random: inout FuzzRandom) -> Int {
    let u = Double(random.next() >> 11) / Double(1 << 53)
    let scaled = u * zetaN
    if scaled < 1 { return 0 }
    if scaled < 1 + pow(0.5, Self.theta) { return 1 }
    let rank = count * pow(eta * u - eta + 1, 1 / (1 - Self.theta))
    return min(Int(rank), Int(count) - 1)
  }
}
