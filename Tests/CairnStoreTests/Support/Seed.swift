import Foundation
import FuzzSupport
import Testing

/// The seed of a randomised test: a new one on each run, or the one in `CAIRN_TEST_SEED`.
enum Seed {
  static let current: UInt64 = {
    let given = ProcessInfo.processInfo.environment["CAIRN_TEST_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1 ... .max)
    print("randomised tests: replay with CAIRN_TEST_SEED=\(seed)")
    return seed
  }()

  /// The test's own generator, so that tests do not disturb each other's replay.
  static func generator(_ test: String = #function) -> FuzzRandom {
    var mixed = current
    for byte in test.utf8 { mixed = mixed &* 0x0000_0100_0000_01B3 ^ UInt64(byte) }
    return FuzzRandom(seed: mixed)
  }

  /// The text to add to a failure.
  static var comment: Comment { "replay with CAIRN_TEST_SEED=\(current)" }
}
