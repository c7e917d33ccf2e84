#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The natural logarithm.
func logarithm(_ number: Double) -> Double { log(number) }
