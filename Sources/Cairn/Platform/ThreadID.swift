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
}
