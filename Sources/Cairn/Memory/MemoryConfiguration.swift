public import CairnStore

/// The options of a ``MemoryCache``, or of the memory tier of a ``DiskCache``.
///
/// In a memory tier, `lifetime`, `idleLimit`, `loadPolicy` and `clock` have no effect: the tier uses
/// those of the disk.
public struct MemoryConfiguration: Sendable {
  /// The maximum number of entries, or `nil` for no limit. With zero or less, the cache keeps
  /// nothing.
  ///
  /// The limit holds when a write returns. Expired entries are removed first, then entries that the
  /// policy chooses.
  public var countLimit: Int?

  /// The maximum total cost of all entries, or `nil` for no limit. With zero or less, the cache
  /// keeps only entries that cost nothing.
  ///
  /// Enforced like `countLimit`. You choose the unit: see `MemoryCache.init`. In a memory tier, an
  /// entry set without a cost gets one from the cache's `costing`. Without a `costing`, the cost is
  /// the value's size: in memory for `[UInt8]`, `String`, `Data` and any other `ByteSource`, and on
  /// disk for other types.
  ///
  /// A value that alone costs more than the limit is not kept in memory. Setting it removes the old
  /// value of its key, and no other value.
  public var costLimit: Int?

  /// The lifetime of entries that are set without one. Default `.unlimited`, which `.standard` means
  /// here too. No read finds an entry after its lifetime has ended. With zero or less, or
  /// after the time of `.until`, entries expire at once. To keep a single entry forever, set it with `Lifetime.unlimited`.
  public var lifetime = Lifetime.unlimited

  /// The idle limit of entries that are set without one: how long they may go without a read or
  /// write. `nil`, the default, means no limit. Otherwise like `lifetime`.
  public var idleLimit: Duration?

  /// How fresh the values of calls with a loader must be, unless a call has its own policy. By
  /// default, only fresh values, and no time limits.
  ///
  /// Expired entries stay in memory as long as a policy may return them, and count towards the
  /// limits. If the cache exceeds a limit, they go first.
  public var loadPolicy = LoadPolicy()

  /// Which entry is evicted when the cache exceeds a limit. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// How often maintenance removes expired entries. Default 60 s. `nil`, zero or less means never.
  /// Any other interval below 10 ms means 10 ms.
  ///
  /// Maintenance only frees memory sooner: reads never find expired entries, and writes remove some
  /// of them too. It runs on a thread that all caches in a process share, and only while the cache
  /// has an entry that can expire.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the cache shrinks when the system is short of memory. Default `true`.
  ///
  /// Under moderate pressure, the cache drops expired entries. Under high pressure, it drops half
  /// of its entries and half of their cost. Under critical pressure, it drops all entries. One
  /// thread per process watches for pressure.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `enterBackground` clears the cache, or the memory tier. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// The clock that decides expiry. The default is the system's.
  ///
  /// The cache's time is the later of two: the time of this clock, and the time when the cache was
  /// made plus the time elapsed since then. So setting the clock back does not prolong lifetimes.
  public var clock: any WallClock = SystemClock()

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries, or `nil` for no limit.
  ///   - costLimit: the maximum total cost of all entries, or `nil` for no limit.
  public init(countLimit: Int? = nil, costLimit: Int? = nil) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }
}

/// Where values that leave a cache are destroyed. They are never destroyed under its lock.
public enum ValueRelease: Sendable {
  /// Up to 15 values at a time on the thread that removed them. Larger groups on a thread that all
  /// caches in a process share.
  case automatic
  /// Always on the thread that removed them, before its call returns.
  case onCaller
  /// Wherever the closure runs its job: for example, on the main thread.
  ///
  ///     configuration.release = .on { job in DispatchQueue.main.async(execute: job) }
  case on(@Sendable (_ job: @escaping @Sendable () -> Void) -> Void)
}
