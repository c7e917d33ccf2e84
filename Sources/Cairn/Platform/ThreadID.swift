internal import CairnLibC

/// Identifies a thread among all live threads.
struct ThreadID: Equatable, Sendable {
  private let number: UInt

  static var current: ThreadID {
    // A pointer or a number.
    unsafe ThreadID(number: withUnsafeBytes(of: pthread_self()) { unsafe $0.load(as: UInt.self) })
  }

  /// A number from 0 to 15. Few live threads share a number.
  var slot: Int {
    // The distances between thread descriptors have many common factors, so mix all bits, as
    // MurmurHash3 does.
    var bits = UInt64(number)
    bits = (bits ^ (bits >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    bits = (bits ^ (bits >> 33)) &* 0xC4CE_B9FE_1A85_EC53
    return Int(truncatingIfNeeded: bits >> 60)
  }
}
