internal import CairnLibC

/// Nanoseconds since the machine started, excluding sleep. Never zero, and never goes back.
func elapsedNanoseconds() -> UInt64 {
  var time = timespec()
  #if canImport(Darwin)
    unsafe clock_gettime(CLOCK_UPTIME_RAW, &time)
  #else
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  #endif
  return max(1, UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
}
