#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Tells a thread from all others that live.
struct ThreadID: Equatable, Sendable {
  private let number: UInt

  static var current: ThreadID {
    #if canImport(Musl)
      unsafe ThreadID(number: UInt(bitPattern: pthread_self()))
    #else
      ThreadID(number: UInt(pthread_self()))
    #endif
  }

  /// A number from 0 up to 15, which few threads that live at once have in common.
  var slot: Int {
    // Threads' descriptors lie at distances with many factors in common, so all bits are mixed, as MurmurHash3 does.
    var bits = UInt64(number)
    bits = (bits ^ (bits >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    bits = (bits ^ (bits >> 33)) &* 0xC4CE_B9FE_1A85_EC53
    return Int(truncatingIfNeeded: bits >> 60)
  }
}
