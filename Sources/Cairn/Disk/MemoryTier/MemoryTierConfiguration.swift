/// The options of the memory tier of a ``DiskCache``. Lifetimes and the clock are those of the
/// disk.
public struct MemoryTierConfiguration: Sendable {
  /// The maximum number of entries in the tier; `nil`: no limit. Zero or less: none.
  public var countLimit: Int?

  /// The maximum total cost of the entries; `nil`: no limit. The unit is the byte on disk, unless
  /// the cache was opened with a `costing`.
  ///
  /// A value that alone costs more is only on disk.
  public var costLimit: Int?

  /// Which entry is evicted when there is one too many. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// The longest delay before the disk learns of reads from memory. Default 1 s. Less than 1 ms
  /// means 1 ms.
  ///
  /// The disk is told in the background, of all reads at once, and also before a trim, a close and,
  /// if it matters, an eviction. Nothing is written for it. The disk is told at once of an access
  /// to an entry with an idle limit.
  public var recencyInterval: Duration = .seconds(1)

  /// How often expired entries are removed from memory while nobody uses the cache; see
  /// `MemoryCacheConfiguration.maintenanceInterval`. Default 60 s.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the tier shrinks when the system is short of memory; see
  /// `MemoryCacheConfiguration.respondsToMemoryPressure`. Default `true`.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `DiskCache.enterBackground` clears the tier. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// Makes a configuration with these limits and the defaults for everything else.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries in the tier; `nil`: no limit.
  ///   - costLimit: their maximum total cost; `nil`: no limit.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A tier that holds everything on disk, until memory is short.
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
