public import CairnStore

/// How a ``MemoryCache`` is made. Its two limits are always said; the other options have defaults.
public struct MemoryCacheConfiguration: Sendable {
  /// How many entries there may be; `nil`: any number. Zero or less: nothing is kept.
  ///
  /// Holds whenever a call returns that wrote: what has expired goes, then what the policy says.
  public var countLimit: Int?

  /// How much all entries may cost together; `nil`: any amount. Zero or less: only what costs
  /// nothing is kept.
  ///
  /// Kept as `countLimit` is. A value that costs more by itself is not kept: it removes the value that
  /// its key had, and nothing else. The unit is the caller's: see `MemoryCache.init`.
  public var costLimit: Int?

  /// How long an entry lives that is written without a lifetime of its own; `nil`, the default: for
  /// ever. No read finds an entry after that. To the millisecond, rounded down; zero or less: it has
  /// expired at once. `Lifetime.unlimited` for a single entry means that it has no end.
  public var lifetime: Duration?

  /// How long an entry may go unread and unwritten that has no idle limit of its own; `nil`, the
  /// default: for ever. No read finds an entry after that. Otherwise as `lifetime`.
  public var idleLimit: Duration?

  /// How fresh the values are that calls give which load, where the call does not say. Default `.standard`: only fresh
  /// values, and no limits.
  ///
  /// What has expired stays in memory for as long as a policy may give it, and counts for the limits. Where there is too
  /// much, it goes first.
  public var loadPolicy: LoadPolicy = .standard

  /// Which entry goes where there is one too many. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// How often what has expired is removed while nobody uses the cache; `nil`, zero or less: never. Less than 10 ms
  /// is as 10 ms. Default 60 s.
  ///
  /// Reads find nothing expired, and writes remove some of it, without that. It only gives memory back
  /// sooner. It runs on a thread that the caches of a process share, and only while there is an entry
  /// that can expire.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the cache makes itself smaller when the system is short of memory. Default `true`.
  ///
  /// At moderate pressure what has expired goes, at high pressure half of the entries and half of the
  /// cost, at critical pressure everything. One thread a process watches for that.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `MemoryCache.enterBackground` clears the cache. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// The clock that expiry goes by. Default: the system's.
  ///
  /// An entry lives at most its lifetime by the later of this clock and the time at which the cache was made plus
  /// the time that has passed since. So a clock that is set back prolongs no life.
  public var clock: any WallClock = SystemClock()

  /// Makes a configuration with these limits and the defaults of all else.
  ///
  /// - Parameters:
  ///   - countLimit: how many entries there may be; `nil`: any number.
  ///   - costLimit: how much they may cost together; `nil`: any amount.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A cache that holds all that it is given, until it expires or memory is short.
  public static var unlimited: MemoryCacheConfiguration {
    MemoryCacheConfiguration(countLimit: nil, costLimit: nil)
  }
}

/// Where the values are destroyed that leave a cache. It is never done under its lock.
public enum ValueRelease: Sendable {
  /// A few on the thread that removed them; many at once, from 16 on, on a thread that the caches of a
  /// process share.
  case automatic
  /// Always on the thread that removed them, before its call returns.
  case onCaller
  /// All of them where the closure runs the job that it is given: on a main thread, for values that
  /// must go there.
  ///
  ///     configuration.release = .on { job in DispatchQueue.main.async(execute: job) }
  case on(@Sendable (_ job: @escaping @Sendable () -> Void) -> Void)
}
