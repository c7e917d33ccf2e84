public import CairnStore

/// The options of a ``MemoryCache``. You always give the two limits explicitly. The other options
/// have defaults.
public struct MemoryCacheConfiguration: Sendable {
  /// The maximum number of entries, or `nil` for no limit. With zero or less, nothing is kept.
  ///
  /// The limit holds when a write returns. Expired entries go first, then entries that the policy
  /// chooses.
  public var countLimit: Int?

  /// The maximum total cost of all entries, or `nil` for no limit. With zero or less, only entries
  /// that cost nothing are kept.
  ///
  /// Enforced like `countLimit`. A value that alone costs more than the limit is not kept: it
  /// removes the old value of its key, and nothing else. The caller chooses the unit: see
  /// `MemoryCache.init`.
  public var costLimit: Int?

  /// The lifetime of entries written without one. `nil`, the default, means no end. No read finds
  /// an entry after its lifetime has ended. Rounded down to milliseconds. If zero or less, entries
  /// expire at once. With `Lifetime.unlimited`, a single entry has no end.
  public var lifetime: Duration?

  /// The idle limit of entries written without one: how long they may go without a read or write.
  /// `nil`, the default, means no limit. No read finds an entry after that. Otherwise like
  /// `lifetime`.
  public var idleLimit: Duration?

  /// How fresh the values of loading calls must be, unless a call has its own policy. Default
  /// `.standard`: only fresh values, and no limits.
  ///
  /// Expired entries stay in memory for as long as a policy may return them, and count towards the
  /// limits. If a limit is exceeded, they go first.
  public var loadPolicy: LoadPolicy = .standard

  /// Which entry is evicted when a limit is exceeded. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// How often expired entries are removed while the cache is unused. `nil`, zero or less means
  /// never. Less than 10 ms means 10 ms. Default 60 s.
  ///
  /// Even without maintenance, reads never find expired entries, and writes remove some of them.
  /// Maintenance only frees memory sooner. It runs on a thread that the caches of a process share,
  /// and only while the cache has an entry that can expire.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the cache shrinks when the system is short of memory. Default `true`.
  ///
  /// Moderate pressure removes expired entries. High pressure removes half of the entries and half
  /// of the cost. Critical pressure removes all entries. One thread per process watches for
  /// pressure.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `MemoryCache.enterBackground` clears the cache. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// The clock that decides expiry. The default is the system's.
  ///
  /// An entry lives at most its lifetime by the later of two times: this clock, and the time when
  /// the cache was made plus the time elapsed since. So setting a clock back prolongs no lifetime.
  public var clock: any WallClock = SystemClock()

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - costLimit: their maximum total cost, or `nil` for no limit.
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
  /// Fewer than 16 values at once are destroyed on the thread that removed them, and more on a
  /// thread that the caches of a process share.
  case automatic
  /// Always on the thread that removed them, before its call returns.
  case onCaller
  /// Wherever the closure runs its job, for example on the main thread if values must be destroyed
  /// there.
  ///
  ///     configuration.release = .on { job in DispatchQueue.main.async(execute: job) }
  case on(@Sendable (_ job: @escaping @Sendable () -> Void) -> Void)
}
