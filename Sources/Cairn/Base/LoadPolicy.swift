internal import CairnStore

/// How fresh the values are that `value(forKey:orLoad:)` gives, and what happens while they are loaded anew.
///
///     var policy = LoadPolicy()
///     policy.refreshAhead = 0.8
///     policy.staleOnError = .seconds(3600)
///     policy.timeLimit = .seconds(10)
///     configuration.loadPolicy = policy
///
/// With the defaults nothing but a fresh value is given, and who finds none waits for the load. A value is *fresh* until its
/// lifetime ends. After that it is *stale*: only calls with a policy that allows it are given it. To all other reads
/// it has expired.
///
/// All times count by the clock of the cache's configuration, to the millisecond. A duration below zero is as zero.
///
/// The names of the stale times are those of HTTP (RFC 5861); Caffeine and FusionCache have what is called refresh ahead
/// and soft time limit here.
public struct LoadPolicy: Sendable, Hashable {
  /// After which part of its lifetime a value is loaded anew in the background: 0.8 is after four fifths. The call that
  /// begins the load and all others are given the value that is there. `nil`, the default: none is loaded before its end.
  ///
  /// Up to 0 each call may begin a load; from 1 on none does.
  public var refreshAhead: Double?

  /// For how long after its end a value is given while it is loaded anew in the background. Nobody waits. Default 0.
  public var staleWhileRevalidating: Duration = .zero

  /// For how long after its end a value is given if the load fails, takes longer than a time limit, or is not to be
  /// tried again yet. Default 0.
  ///
  /// A call waits for the load where `staleWhileRevalidating` is over. After a failure, calls are given the stale
  /// value at once until the next try.
  public var staleOnError: Duration = .zero

  /// How long a call waits at most for a load while there is a stale value that it may be given by `staleOnError`; then it
  /// is given that. The load goes on, and what it brings is kept. `nil`, the default: until the load ends.
  public var softTimeLimit: Duration?

  /// How long a load may take. After that all who wait get ``CacheError/loadTimedOut(limit:)``, or the stale value; the load
  /// is cancelled, and what it may still bring is not kept. `nil`, the default: any time.
  ///
  /// The call that begins the load decides. A loader that does not notice that it is cancelled goes on beside the next load.
  public var timeLimit: Duration?

  /// By which part at most the lifetime of a value is shortened, at random: with 0.1 a minute becomes 54 to 60 seconds. So
  /// what was loaded together does not expire together. From 0, the default, to 1.
  ///
  /// The end of a `Lifetime.until` stays what it is.
  public var lifetimeJitter: Double = 0

  /// How long no load is tried after the first failure while there is a value to give. It doubles with each further failure,
  /// up to `longestRetryDelay`, and is shortened by up to a half, at random. Default 1 s.
  ///
  /// Where there is no value to give, each call that finds no load under way begins one. Failures are known to the
  /// process, of up to 65,536 keys; a write or a removal of the key makes them forgotten.
  public var firstRetryDelay: Duration = .seconds(1)

  /// See `firstRetryDelay`. Default 60 s.
  public var longestRetryDelay: Duration = .seconds(60)

  /// Has a value loaded anew in the background before its end, with a probability that grows towards the end, and with
  /// the time that its last load took. 1 is the usual value; a greater one is earlier. `nil`, the default: never.
  ///
  /// This is XFetch (Vattani, Chierichetti and Lowenstein, VLDB 2015). How long a load took is known to the process that
  /// did it.
  public var earlyRefresh: Double?

  /// Makes a policy with the defaults.
  public init() {}

  /// Only fresh values, and no limits.
  public static var standard: LoadPolicy { LoadPolicy() }

  /// For how long after its end a value may be given, in milliseconds.
  var retention: Int64 { max(0, staleWhileRevalidating.milliseconds, staleOnError.milliseconds) }

  /// How long to wait before the next try.
  ///
  /// - Parameters:
  ///   - failureCount: how many loads have failed since one did not.
  ///   - random: from 0 up to 1.
  func retryDelay(failureCount: Int, random: Double) -> Int64 {
    let first = Double(max(1, firstRetryDelay.milliseconds))
    let longest = Double(max(1, longestRetryDelay.milliseconds))
    let delay = min(
      first * Double(sign: .plus, exponent: min(failureCount, 60) - 1, significand: 1), longest)
    return max(1, Int64(min(delay * (1 - random / 2), 0x1p62)))
  }

  /// A lifetime that is shortened at random.
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
    // A share that is no number comes out as none.
    guard share > 0, milliseconds > 0 else { return lifetime }
    let cut = Int64(min(Double(milliseconds) * share * random, 0x1p62))
    return .milliseconds(max(1, milliseconds - min(cut, milliseconds)))
  }
}
