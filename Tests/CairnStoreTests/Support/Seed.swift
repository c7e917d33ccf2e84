import Foundation
import Testing

/// Random numbers that can be had again: SplitMix64 (Steele, Lea and Flood, 2014).
struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  mutating func bytes(count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
  }
}

/// The seed of a randomised test: a new one on each run, or the one in `CAIRN_TEST_SEED`.
enum Seed {
  static let current: UInt64 = {
    let given = ProcessInfo.processInfo.environment["CAIRN_TEST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1 ... .max)
    print("randomised tests: replay with CAIRN_TEST_SEED=\(seed)")
    return seed
  }()

  /// A generator of the test's own, so that tests do not disturb each other's replay.
  static func generator(_ test: String = #function) -> SeededGenerator {
    var mixed = current
    for byte in test.utf8 { mixed = mixed &* 0x0000_0100_0000_01B3 ^ UInt64(byte) }
    return SeededGenerator(seed: mixed)
  }

  /// What to say beside a failure.
  static var comment: Comment { "replay with CAIRN_TEST_SEED=\(current)" }
}
