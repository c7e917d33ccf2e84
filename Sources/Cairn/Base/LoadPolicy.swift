internal import CairnStore

/// How fresh the values of calls with a loader must be, and what callers get while a value is
/// reloaded.
///
///     var policy = LoadPolicy()
///     policy.refreshAhead = 0.8
///     policy.staleOnError = .seconds(3600)
///     policy.timeLimit = .seconds(10)
///     configuration.loadPolicy = policy
///
/// A value is *fresh* until its lifetime ends. After that, it is *stale*: only calls whose policy
/// allows stale values return it. For all other reads, it has expired. With the defaults, calls
/// return only fresh values, and a caller that finds none waits for the load.
///
/// All times follow the cache's configured clock. Lifetimes end to the millisecond. The age of a
/// value from disk is exact to a second, because records store the time of writing in seconds.
/// A negative duration means zero.
///
/// The stale times follow HTTP (RFC 5861). Refresh ahead and the soft time limit follow Caffeine
/// and FusionCache.
public struct LoadPolicy: Sendable, Hashable {
  /// The fraction of a value's lifetime after which a call reloads the value in the background: 0.8
  /// means after four fifths. All calls, including the one that begins the load, return the current
  /// value. `nil`, the default, means no load before the lifetime ends.
  ///
  /// With 0 or less, every call may begin a load. With 1 or more, no call does so before the
  /// lifetime ends, nor if the cache keeps no loaded values, because it follows another process or
  /// its disk takes no more writes.
  public var refreshAhead: Double?

  /// How long a value is still returned after its lifetime ends, while it is reloaded in the
  /// background. No caller waits. Default 0.
  public var staleWhileRevalidating: Duration = .zero

  /// How long a value is still returned after its lifetime ends if the load fails, exceeds a time
  /// limit, or may not be retried yet. Default 0.
  ///
  /// After `staleWhileRevalidating`, calls wait for the load. After a failure, calls return the
  /// stale value at once until the next attempt.
  public var staleOnError: Duration = .zero

  /// How long a call waits for a load if `staleOnError` allows a stale value. After that time, the
  /// call returns the stale value. The load continues, and its result is kept. `nil`, the default,
  /// means until the load ends.
  public var softTimeLimit: Duration?

  /// How long a load may take. After that time, the load is cancelled, and all waiting callers get
  /// the stale value or ``/CairnStore/StoreError/loadTimedOut(limit:)``. A late result is not kept.
  /// `nil`, the default, means no limit.
  ///
  /// The limit of the call that begins the load applies. A loader that ignores its cancellation
  /// continues while the next load of the key runs.
  public var timeLimit: Duration?

  /// The largest fraction by which a lifetime is shortened at random, so that values loaded
  /// together do not expire together. From 0, the default, to 1. With 0.1, a minute becomes 54 to
  /// 60 seconds.
  ///
  /// An end set with `Lifetime.until` stays the same.
  public var lifetimeJitter: Double = 0

  /// How long to wait after a first failed load before trying again, if there is a stale value to
  /// return. Default 1 s. The delay doubles with each further failure, up to `longestRetryDelay`.
  /// Each delay is shortened at random by up to half.
  ///
  /// Without a stale value, each call that finds no load in progress begins one. The process
  /// remembers the failures of up to 65,536 keys. A write or a removal of a key clears its
  /// failures.
  public var firstRetryDelay: Duration = .seconds(1)

  /// The longest delay after a failed load. Default 60 s. See `firstRetryDelay`.
  public var longestRetryDelay: Duration = .seconds(60)

  /// Makes a policy with the defaults.
  public init() {}

  /// The default policy: only fresh values, and no time limits.
  package static var standard: LoadPolicy { LoadPolicy() }

  /// The share of a value's lifetime during which no call reloads the value.
  @usableFromInline
  var calmShare: Double {
    guard let refreshAhead, refreshAhead < 1 else { return 1 }
    return refreshAhead
  }

  /// How long after its lifetime a value may be returned, in milliseconds.
  var retention: Int64 { max(0, staleWhileRevalidating.milliseconds, staleOnError.milliseconds) }

  /// How long to wait before the next attempt.
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
  ///   - standard: the cache's lifetime.
  ///   - random: from 0 up to 1.
  func jittered(_ lifetime: Lifetime, standard: Lifetime, random: Double) -> Lifetime {
    let share = min(max(lifetimeJitter, 0), 1)
    let full = lifetime.or(standard)
    // NaN counts as no jitter.
    guard share > 0, full.kind == .after, full.milliseconds > 0 else { return lifetime }
    let milliseconds = full.milliseconds
    let cut = Int64(min(Double(milliseconds) * share * random, 0x1p62))
    return .milliseconds(max(1, milliseconds - min(cut, milliseconds)))
  }
}
