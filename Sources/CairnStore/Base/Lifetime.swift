/// How long a written entry lives.
///
///     try store.setValue("alice", forKey: "session/1", lifetime: .hours(1))
///     try store.setValue("tea", forKey: "offer", lifetime: .until(midnight))
///
/// No read finds an entry after its lifetime has ended. Ends are stored in milliseconds, rounded
/// down. If the end is not in the future, the entry expires at once, and the write does not throw.
public struct Lifetime: Sendable, Hashable {
  @usableFromInline
  package enum Kind: UInt8, Sendable {
    case standard, unlimited, after, until
  }

  @usableFromInline package let kind: Kind
  /// For `.after`, the duration. For `.until`, the end, counted from the Unix epoch.
  @usableFromInline package let milliseconds: Int64

  @inlinable
  package init(_ kind: Kind, milliseconds: Int64 = 0) {
    self.kind = kind
    self.milliseconds = milliseconds
  }

  /// The configured lifetime. By default, entries live forever.
  @inlinable public static var standard: Lifetime { Lifetime(.standard) }

  /// No end, whatever the configuration says.
  @inlinable public static var unlimited: Lifetime { Lifetime(.unlimited) }

  /// This long, counted from the write. With zero or less, the entry expires at once.
  public static func after(_ duration: Duration) -> Lifetime {
    Lifetime(.after, milliseconds: duration.milliseconds)
  }

  /// Until a point in time. If that point has passed, the entry expires at once.
  @inlinable
  public static func until(_ end: Timestamp) -> Lifetime {
    Lifetime(.until, milliseconds: end.millisecondsSinceEpoch)
  }

  /// This many milliseconds, counted from the write; see `after(_:)`.
  @inlinable
  public static func milliseconds(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: Int64(clamping: count))
  }

  /// This many seconds, counted from the write; see `after(_:)`.
  @inlinable
  public static func seconds(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 1000))
  }

  /// This many seconds, counted from the write; see `after(_:)`.
  ///
  /// - Parameter count: the number of seconds. If it is infinite or too large, the lifetime ends at
  ///   the latest representable point. If it is NaN, the entry expires at once.
  @inlinable
  public static func seconds(_ count: Double) -> Lifetime {
    let milliseconds = (count * 1000).rounded(.down)
    if milliseconds.isNaN { return Lifetime(.after, milliseconds: 0) }
    return Lifetime(
      .after,
      milliseconds: Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max))
  }

  /// This many minutes, counted from the write; see `after(_:)`.
  @inlinable
  public static func minutes(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 60_000))
  }

  /// This many hours, counted from the write; see `after(_:)`.
  @inlinable
  public static func hours(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 3_600_000))
  }

  /// This many 24-hour days, counted from the write; see `after(_:)`.
  @inlinable
  public static func days(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 86_400_000))
  }

  /// The product, or the nearest representable number.
  @inlinable
  static func milliseconds(_ count: some BinaryInteger, of unit: Int64) -> Int64 {
    let (product, overflow) = Int64(clamping: count).multipliedReportingOverflow(by: unit)
    return overflow ? (count < 0 ? .min : .max) : product
  }

  /// The lifetime, or in the place of `.standard` the configured one.
  @inline(__always)
  package func or(_ configured: Lifetime) -> Lifetime { kind == .standard ? configured : self }

  /// When an entry written now expires, or `nil` if never.
  @inline(__always)
  package func end(writtenAt now: Timestamp) -> Timestamp? {
    switch kind {
    case .standard, .unlimited: nil
    case .after: now.advanced(byMilliseconds: milliseconds)
    case .until: Timestamp(millisecondsSinceEpoch: milliseconds)
    }
  }
}
