/// How long an entry lives that is being written.
///
///     try store.setValue("alice", forKey: "session/1", lifetime: .hours(1))
///     try store.setValue("tea", forKey: "offer", lifetime: .until(midnight))
///
/// No read finds an entry after its end. Ends are known to the millisecond, rounded down. One that does not
/// lie in the future is no error: the entry has expired at once.
public struct Lifetime: Sendable, Hashable {
  @usableFromInline
  package enum Kind: UInt8, Sendable {
    case standard, unlimited, after, until
  }

  @usableFromInline package let kind: Kind
  /// Of `.after` how long it is, of `.until` when it ends, since the Unix epoch.
  @usableFromInline package let milliseconds: Int64

  @inlinable
  package init(_ kind: Kind, milliseconds: Int64 = 0) {
    self.kind = kind
    self.milliseconds = milliseconds
  }

  /// What the configuration says, which is for ever unless it says otherwise.
  @inlinable public static var standard: Lifetime { Lifetime(.standard) }

  /// For ever, whatever the configuration says.
  @inlinable public static var unlimited: Lifetime { Lifetime(.unlimited) }

  /// So long from the write on. Zero or less: it has expired at once.
  public static func after(_ duration: Duration) -> Lifetime {
    Lifetime(.after, milliseconds: duration.milliseconds)
  }

  /// Until a point in time. If that has passed, the entry expires at once.
  @inlinable
  public static func until(_ end: Timestamp) -> Lifetime {
    Lifetime(.until, milliseconds: end.millisecondsSinceEpoch)
  }

  /// So many milliseconds from the write on; as `after(_:)`.
  @inlinable
  public static func milliseconds(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: Int64(clamping: count))
  }

  /// So many seconds from the write on; as `after(_:)`.
  @inlinable
  public static func seconds(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 1000))
  }

  /// So many seconds from the write on; as `after(_:)`.
  ///
  /// - Parameter count: more than can be expressed, and infinity: until the latest point that can be expressed.
  ///   NaN: the entry expires at once.
  @inlinable
  public static func seconds(_ count: Double) -> Lifetime {
    let milliseconds = (count * 1000).rounded(.down)
    if milliseconds.isNaN { return Lifetime(.after, milliseconds: 0) }
    return Lifetime(
      .after,
      milliseconds: Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max))
  }

  /// So many minutes from the write on; as `after(_:)`.
  @inlinable
  public static func minutes(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 60_000))
  }

  /// So many hours from the write on; as `after(_:)`.
  @inlinable
  public static func hours(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 3_600_000))
  }

  /// So many days of 24 hours from the write on; as `after(_:)`.
  @inlinable
  public static func days(_ count: some BinaryInteger) -> Lifetime {
    Lifetime(.after, milliseconds: milliseconds(count, of: 86_400_000))
  }

  /// The product, or the nearest number where it does not fit.
  @inlinable
  static func milliseconds(_ count: some BinaryInteger, of unit: Int64) -> Int64 {
    let (product, overflow) = Int64(clamping: count).multipliedReportingOverflow(by: unit)
    return overflow ? (count < 0 ? .min : .max) : product
  }

  /// When an entry ends that is written now; `nil`: never.
  ///
  /// - Parameter standard: the store's lifetime, in milliseconds.
  @inline(__always)
  package func end(writtenAt now: Timestamp, standard: Int64?) -> Timestamp? {
    switch kind {
    case .standard: standard.map { now.advanced(byMilliseconds: $0) }
    case .unlimited: nil
    case .after: now.advanced(byMilliseconds: milliseconds)
    case .until: Timestamp(millisecondsSinceEpoch: milliseconds)
    }
  }
}
