/// A point in wall-clock time: milliseconds since 1970-01-01 00:00:00 UTC.
///
/// The module `Cairn` converts timestamps from and to Foundation's `Date`.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// Milliseconds since the Unix epoch. Negative for earlier points.
  public var millisecondsSinceEpoch: Int64

  /// Makes the point `millisecondsSinceEpoch` after the Unix epoch.
  public init(millisecondsSinceEpoch: Int64) {
    self.millisecondsSinceEpoch = millisecondsSinceEpoch
  }

  /// The latest representable point. A lifetime that would end later ends here.
  package static let distantFuture = Timestamp(millisecondsSinceEpoch: .max)

  /// The time from this point to another: negative if the other is earlier.
  public func duration(to other: Timestamp) -> Duration {
    .milliseconds(other.milliseconds(since: self))
  }

  /// Whether the left point is earlier.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.millisecondsSinceEpoch < right.millisecondsSinceEpoch
  }

  /// The point `duration` later, or the earliest or latest point if that is out of range.
  public func advanced(by duration: Duration) -> Timestamp {
    advanced(byMilliseconds: duration.milliseconds)
  }

  func advanced(byMilliseconds milliseconds: Int64) -> Timestamp {
    Timestamp(millisecondsSinceEpoch: millisecondsSinceEpoch.adding(clamped: milliseconds))
  }

  /// The milliseconds since `other`, or the nearest `Int64` if they do not fit.
  func milliseconds(since other: Timestamp) -> Int64 {
    millisecondsSinceEpoch.subtracting(clamped: other.millisecondsSinceEpoch)
  }
}

extension Duration {
  /// Whole milliseconds, rounded down, or the nearest `Int64` if they do not fit.
  package var milliseconds: Int64 {
    // Getting the components of a very long duration traps.
    if self >= .milliseconds(Int64.max) { return .max }
    if self <= .milliseconds(Int64.min) { return .min }
    let (seconds, attoseconds) = components
    // Both parts have the same sign, and division rounds towards zero.
    let (quotient, remainder) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
    return seconds * 1000 + (remainder < 0 ? quotient - 1 : quotient)
  }
}

/// A source of the time of day, which a store uses for expiry and for the time of each write.
///
/// Use a clock of your own to test expiry without sleeping. Every read calls `now()`, on any
/// thread, so it should take only nanoseconds.
public protocol WallClock: Sendable {
  /// The time of day. It may jump in both directions: Docs/Durability.md describes the
  /// consequences.
  func now() -> Timestamp

  /// The time since some fixed moment, by a monotonic clock that never stops while the process
  /// lives. `nil` if there is no such clock. A store uses it while the time of day is behind.
  ///
  /// By default, this is `nil`, and each forward step of `now()` counts as elapsed time.
  func elapsed() -> Duration?
}

extension WallClock {
  /// Returns `nil`, so each forward step of `now()` counts as elapsed time.
  public func elapsed() -> Duration? { nil }
}

/// The system's time of day, accurate to the kernel's tick (1 to 10 ms). Reading it takes a fifth
/// of the time that the exact clock takes.
public struct SystemClock: Sendable {
  /// Makes the clock. All instances tell the same time.
  public init() {}
}
