internal import CairnLibC

extension SystemClock: WallClock {
  /// The time of day, from the system's real-time clock.
  public func now() -> Timestamp {
    Timestamp(millisecondsSinceEpoch: Self.milliseconds(Self.timeOfDay))
  }

  /// The time since the machine started, including sleep.
  public func elapsed() -> Duration? { .milliseconds(Self.milliseconds(Self.sinceStart)) }

  /// A number that changes with the kernel's tick, every few milliseconds. Reading it takes a fifth
  /// of the time of `elapsed()`.
  static func tick() -> Int64 { milliseconds(ticking) }

  private static func milliseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

extension Timestamp {
  /// The system's time of day, accurate to the kernel's tick (1 to 10 ms).
  public static var now: Timestamp { SystemClock().now() }
}
