/// How the memory tier of a ``DiskCache`` is made. Lifetimes and the clock are those of the disk.
public struct MemoryTierConfiguration: Sendable {
  /// How many entries the tier may hold; `nil`: any number. Zero or less: none.
  public var countLimit: Int?

  /// How much the entries may cost together; `nil`: any amount. The unit is the byte on disk, unless the cache was
  /// opened with a `costing`.
  ///
  /// A value that costs more by itself is on disk alone.
  public var costLimit: Int?

  /// Which entry goes where there is one too many. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// For how long at most the disk does not know what was read from memory. Default 1 s. Less than 1 ms is as 1 ms.
  ///
  /// The disk is told in the background, all at once, and before a trim, a close and, as far as it matters, an
  /// eviction. Nothing is written for it. An access to an entry with an idle limit is told at once.
  public var recencyInterval: Duration = .seconds(1)

  /// How often what has expired is removed from memory while nobody uses the cache; as
  /// `MemoryCacheConfiguration.maintenanceInterval`. Default 60 s.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the tier makes itself smaller when the system is short of memory; as
  /// `MemoryCacheConfiguration.respondsToMemoryPressure`. Default `true`.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `DiskCache.enterBackground` clears the tier. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// Makes a configuration with these limits and the defaults of all else.
  ///
  /// - Parameters:
  ///   - countLimit: how many entries the tier may hold; `nil`: any number.
  ///   - costLimit: how much they may cost together; `nil`: any amount.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A tier that holds all that is on disk, until memory is short.
  public static var unlimited: MemoryTierConfiguration {
    MemoryTierConfiguration(countLimit: nil, costLimit: nil)
  }

  /// Of the cache that is the tier.
  ///
  /// - Parameter disk: of the tier below, whose lifetimes count.
  func held(_ disk: DiskCacheConfiguration) -> MemoryCacheConfiguration {
    var held = MemoryCacheConfiguration(countLimit: countLimit, costLimit: costLimit)
    held.policy = policy
    held.maintenanceInterval = maintenanceInterval
    held.clearsInBackground = clearsInBackground
    held.release = release
    held.lifetime = disk.lifetime
    held.idleLimit = disk.idleLimit
    // The cache as a whole responds in its place.
    held.respondsToMemoryPressure = false
    return held
  }
}
