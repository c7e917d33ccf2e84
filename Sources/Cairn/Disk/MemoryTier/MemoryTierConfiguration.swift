/// The options of the memory tier of a ``DiskCache``. It uses the lifetimes and the clock of the
/// disk.
public struct MemoryTierConfiguration: Sendable {
  /// The maximum number of entries in the tier, or `nil` for no limit. Zero or less means no
  /// entries.
  public var countLimit: Int?

  /// The maximum total cost of the entries, or `nil` for no limit. Costs are bytes on disk, unless
  /// the cache was opened with a `costing`.
  ///
  /// A value that alone costs more than the limit is only on disk.
  public var costLimit: Int?

  /// Which entry is evicted when a limit is exceeded. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// The longest delay before the disk learns of reads from memory. Default 1 s. Less than 1 ms
  /// means 1 ms.
  ///
  /// The tier reports all reads together, in the background and also before a trim, a close and, if
  /// it matters, an eviction. Reporting writes nothing to disk. An access to an entry with an idle
  /// limit is reported at once.
  public var recencyInterval: Duration = .seconds(1)

  /// How often expired entries are removed from memory while the cache is unused. See
  /// `MemoryCacheConfiguration.maintenanceInterval`. Default 60 s.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the tier shrinks when the system is short of memory. See
  /// `MemoryCacheConfiguration.respondsToMemoryPressure`. Default `true`.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `DiskCache.enterBackground` clears the tier. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries in the tier, or `nil` for no limit.
  ///   - costLimit: their maximum total cost, or `nil` for no limit.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A tier that can hold every entry on disk, until memory is short.
  public static var unlimited: MemoryTierConfiguration {
    MemoryTierConfiguration(countLimit: nil, costLimit: nil)
  }

  /// The configuration of the memory cache that implements the tier.
  ///
  /// - Parameter disk: the configuration of the tier below, whose lifetimes apply.
  func held(_ disk: DiskCacheConfiguration) -> MemoryCacheConfiguration {
    var held = MemoryCacheConfiguration(countLimit: countLimit, costLimit: costLimit)
    held.policy = policy
    held.maintenanceInterval = maintenanceInterval
    held.clearsInBackground = clearsInBackground
    held.release = release
    held.lifetime = disk.lifetime
    held.idleLimit = disk.idleLimit
    // The cache as a whole responds instead.
    held.respondsToMemoryPressure = false
    return held
  }
}
