import CairnLibC

/// The order in which a round uses keys, made before its clock starts and the same for every store.
/// At its end, the sequence starts again. The length of a random sequence is a power of two.
struct KeySequence {
  private(set) var indices: [UInt32] = []
  /// Marks an index whose key is written instead of read.
  static let writeMark: UInt32 = 1 << 31

  /// Long enough that a round does not soon repeat the same order, and small compared with the
  /// store.
  private static func length(keyCount: Int) -> Int { keyCount <= 1 << 17 ? 1 << 17 : 1 << 20 }

  /// Keys from `first` on, drawn uniformly at random.
  static func uniform(
    keyCount: Int, first: Int = 0, writeShare: Double = 0, random: inout RandomSource
  ) -> KeySequence {
    var sequence = KeySequence()
    let count = length(keyCount: keyCount)
    sequence.indices.reserveCapacity(count)
    for _ in 0..<count {
      var index = UInt32(first + random.index(below: keyCount))
      if writeShare > 0, random.fraction() < writeShare { index |= writeMark }
      sequence.indices.append(index)
    }
    return sequence
  }

  /// Every key once, in random order.
  static func permutation(keyCount: Int, random: inout RandomSource) -> KeySequence {
    KeySequence(indices: (0..<UInt32(keyCount)).shuffled(using: &random))
  }

  /// Keys by Zipf's law.
  static func zipf(keyCount: Int, random: inout RandomSource) -> KeySequence {
    let law = ZipfLaw(keyCount: keyCount, random: &random)
    return KeySequence(
      indices: (0..<length(keyCount: keyCount)).map { _ in UInt32(law.key(&random)) })
  }
}

/// Draws keys by Zipf's law, using the rejection-free method of Gray and others ("Quickly
/// generating billion-record synthetic databases", 1994), as YCSB does. The assignment of ranks to
/// keys is random.
struct ZipfLaw {
  private let ranks: [UInt32]
  private let zeta: Double
  private let zetaOfTwo: Double
  private let alpha: Double
  private let eta: Double

  init(keyCount: Int, exponent: Double = 0.99, random: inout RandomSource) {
    ranks = KeySequence.permutation(keyCount: keyCount, random: &random).indices
    zeta = (1...keyCount).reduce(0) { $0 + 1 / pow(Double($1), exponent) }
    zetaOfTwo = 1 + pow(0.5, exponent)
    alpha = 1 / (1 - exponent)
    eta =
      keyCount > 2
      ? (1 - pow(2 / Double(keyCount), 1 - exponent)) / (1 - zetaOfTwo / zeta) : 0
  }

  func key(_ random: inout RandomSource) -> Int {
    let fraction = random.fraction()
    let scaled = fraction * zeta
    let rank: Int
    if scaled < 1 {
      rank = 0
    } else if scaled < zetaOfTwo {
      rank = 1
    } else {
      rank = Int(Double(ranks.count) * pow(eta * fraction - eta + 1, alpha))
    }
    return Int(ranks[min(rank, ranks.count - 1)])
  }
}
