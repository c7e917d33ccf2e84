#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Nanoseconds since the machine started, excluding sleep. Never zero, and never goes back.
func elapsedNanoseconds() -> UInt64 {
  var time = timespec()
  unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return max(1, UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}
