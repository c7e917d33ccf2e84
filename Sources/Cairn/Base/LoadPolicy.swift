internal import CairnStore

/// How fresh the values of `value(forKey:orLoad:)` must be, and what happens while they are loaded
/// again.
///
///     var policy = LoadPolicy()
///     policy.refreshAhead = 0.8
///     policy.staleOnError = .seconds(3600)
///     policy.timeLimit = .seconds(10)
///     configuration.loadPolicy = policy
///
/// With the defaults, only fresh values are returned, and a caller that finds none waits for the
/// load. A value is *fresh* until its lifetime ends. After that it is *stale*: only calls whose
/// policy allows it receive it. To all other reads it has expired.
///
/// All times use the clock of the cache's configuration, to the millisecond. A negative duration
/// means zero.
///
/// The stale times have their names from HTTP (RFC 5861); refresh ahead and the soft time limit
/// come from Caffeine and FusionCache.
public struct LoadPolicy: Sendable, Hashable {
  /// The part of its lifetime after which a value is loaded again in the background: 0.8 is after
  /// four fifths. All calls, including the one that begins the load, receive the current value.
  /// `nil`, the default: no load before its end.
  ///
  /// At 0 or less, each call may begin a load; at 1 or more, none does.
  public var refreshAhead: Double?

  /// How long after its end a value is still returned while it is loaded again in the background.
  /// Nobody waits. Default 0.
  public var staleWhileRevalidating: Duration = .zero

  /// How long after its end a value is still returned if the load fails, exceeds a time limit, or
  /// must not be tried again yet. Default 0.
  ///
  /// Once `staleWhileRevalidating` is over, a call waits for the load. After a failure, calls
  /// receive the stale value at once until the next try.
  public var staleOnError: Duration = .zero

  /// How long a call waits for a load while `staleOnError` allows a stale value; then it receives
  /// that. The load continues, and its result is kept. `nil`, the default: until the load ends.
  public var softTimeLimit: Duration?

  /// How long a load may take. After that, all waiters get ``CacheError/loadTimedOut(limit:)``, or
  /// the stale value; the load is cancelled, and a late result is not kept. `nil`, the default: no
  /// limit.
  ///
  /// The limit of the call that begins the load applies. A loader that ignores its cancellation
  /// continues alongside the next load.
  public var timeLimit: Duration?

  /// The maximum fraction by which the lifetime of a value is shortened, at random: with 0.1, a minute
  /// becomes 54 to 60 seconds. So values loaded together do not expire together. From 0, the
  /// default, to 1.
  ///
  /// Does not change the end of a `Lifetime.until`.
  public var lifetimeJitter: Double = 0

  /// How long no load is tried after the first failure, if there is a value to return. It doubles
  /// with each further failure, up to `longestRetryDelay`, and is shortened by up to a half, at
  /// random. Default 1 s.
  ///
  /// If there is no value to return, each call that finds no load under way begins one. The process
  /// remembers the failures of up to 65,536 keys; a write or a removal of the key clears them.
  public var firstRetryDelay: Duration = .seconds(1)

  /// See `firstRetryDelay`. Default 60 s.
  public var longestRetryDelay: Duration = .seconds(60)

  /// Loads a value again in the background before its end, with a probability that grows towards
  /// the end and with the time that its last load took. 1 is the usual value; a larger one loads
  /// earlier. `nil`, the default: never.
  ///
  /// This is XFetch (Vattani, Chierichetti and Lowenstein, VLDB 2015). Only the process that did a
  /// load knows how long it took.
  public var earlyRefresh: Double?

  /// Makes a policy with the defaults.
  public init() {}

  /// Only fresh values, and no limits.
  public static var standard: LoadPolicy { LoadPolicy() }

  /// How long after its end a value may be returned, in milliseconds.
  var retention: Int64 { max(0, staleWhileRevalidating.milliseconds, staleOnError.milliseconds) }

  /// How long to wait before the next try.
  ///
  /// - Parameters:
  ///   - failureCount: the number of failed loads since the last success.
  ///   - random: from 0 up to 1.
  func retryDelay(failureCount: Int, random: Double) -> Int64 {
    let first = Double(max(1, firstRetryDelay.milliseconds))
    let longest = Double(max(1, longestRetryDelay.milliseconds))
    let delay = min(
      first * Double(sign: .plus, exponent: min(failureCount, 60) - 1, significand: 1), longest)
    return max(1, Int64(min(delay * (1 - random / 2), 0x1p62)))
  }

  /// A lifetime, shortened at random.
  ///
  /// - Parameters:
  ///   - standard: the cache's, in milliseconds; `nil`: none.
  ///   - random: from 0 up to 1.
  func jittered(_ lifetime: Lifetime, standard: Int64?, random: Double) -> Lifetime {
    let share = min(max(lifetimeJitter, 0), 1)
    let milliseconds: Int64
    switch lifetime.kind {
    case .standard where standard != nil: milliseconds = standard ?? 0
    case .after: milliseconds = lifetime.milliseconds
    case .standard, .unlimited, .until: return lifetime
    }
    // NaN counts as no share.
    guard share > 0, milliseconds > 0 else { return lifetime }
    let cut = Int64(min(Double(milliseconds) * share * random, 0x1p62))
    return .milliseconds(max(1, milliseconds - min(cut, milliseconds)))
  }
}
