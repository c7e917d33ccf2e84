public import CairnStore

/// The options of a ``MemoryCache``. The two limits are always explicit; the other options have
/// defaults.
public struct MemoryCacheConfiguration: Sendable {
  /// The maximum number of entries; `nil`: no limit. Zero or less: nothing is kept.
  ///
  /// The limit holds when a write returns: expired entries go first, then those that the policy
  /// chooses.
  public var countLimit: Int?

  /// The maximum total cost of all entries; `nil`: no limit. Zero or less: only entries that cost
  /// nothing are kept.
  ///
  /// Enforced like `countLimit`. A value that alone costs more is not kept: it removes the old
  /// value of its key, and nothing else. The unit is the caller's: see `MemoryCache.init`.
  public var costLimit: Int?

  /// The lifetime of entries written without one; `nil`, the default: for ever. No read finds an
  /// entry after its end. To the millisecond, rounded down; zero or less: entries expire at once.
  /// `Lifetime.unlimited` gives a single entry no end.
  public var lifetime: Duration?

  /// The idle limit of entries written without one: how long they may go unread and unwritten;
  /// `nil`, the default: for ever. No read finds an entry after that. Otherwise like `lifetime`.
  public var idleLimit: Duration?

  /// How fresh the values of loading calls must be, unless a call has its own policy. Default
  /// `.standard`: only fresh values, and no limits.
  ///
  /// Expired entries stay in memory for as long as a policy may return them, and count towards the
  /// limits. If there is too much, they go first.
  public var loadPolicy: LoadPolicy = .standard

  /// Which entry is evicted when there is one too many. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// How often expired entries are removed while nobody uses the cache; `nil`, zero or less: never.
  /// Less than 10 ms means 10 ms. Default 60 s.
  ///
  /// Even without this, reads find nothing expired, and writes remove some of it. It only frees
  /// memory sooner. It runs on a thread that the caches of a process share, and only while there is
  /// an entry that can expire.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the cache shrinks when the system is short of memory. Default `true`.
  ///
  /// Moderate pressure removes expired entries, high pressure half of the entries and half of the
  /// cost, critical pressure everything. One thread a process watches for pressure.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `MemoryCache.enterBackground` clears the cache. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// The clock that decides expiry. Default: the system's.
  ///
  /// An entry lives at most its lifetime by the later of two times: this clock, and the time when
  /// the cache was made plus the time elapsed since. So setting a clock back prolongs no life.
  public var clock: any WallClock = SystemClock()

  /// Makes a configuration with these limits and the defaults for everything else.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries; `nil`: no limit.
  ///   - costLimit: their maximum total cost; `nil`: no limit.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A cache without limits: entries stay until they expire or memory is short.
  public static var unlimited: MemoryCacheConfiguration {
    MemoryCacheConfiguration(countLimit: nil, costLimit: nil)
  }
}

/// Where values that leave a cache are destroyed. Never under its lock.
public enum ValueRelease: Sendable {
  /// A few on the thread that removed them; 16 or more at once on a thread that the caches of a
  /// process share.
  case automatic
  /// Always on the thread that removed them, before its call returns.
  case onCaller
  /// All values where the closure runs its job: for example on a main thread, for values that must
  /// be destroyed there.
  ///
  ///     configuration.release = .on { job in DispatchQueue.main.async(execute: job) }
  case on(@Sendable (_ job: @escaping @Sendable () -> Void) -> Void)
}
