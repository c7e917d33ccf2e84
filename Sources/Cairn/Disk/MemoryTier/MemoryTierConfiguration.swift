/// The options of the memory tier of a ``DiskCache``. The tier uses the lifetimes and the clock of
/// the disk.
public struct MemoryTierConfiguration: Sendable {
  /// The maximum number of entries in the tier, or `nil` for no limit. Zero or less means no
  /// entries.
  public var countLimit: Int?

  /// The maximum total cost of the entries in the tier, or `nil` for no limit. An entry set without
  /// a cost gets one from the cache's `costing`. Without a `costing`, the cost is the value's size:
  /// in memory for `[UInt8]`, `String`, `Data` and any other `ByteSource`, and on disk for other
  /// types.
  ///
  /// A value that alone costs more than the limit is only on disk.
  public var costLimit: Int?

  /// Which entry is evicted when the tier exceeds a limit. Default `.leastRecentlyUsed`.
  public var policy: EvictionPolicy = .leastRecentlyUsed

  /// How often maintenance removes expired entries from memory. Default 60 s. See
  /// `MemoryCacheConfiguration.maintenanceInterval`.
  public var maintenanceInterval: Duration? = .seconds(60)

  /// Whether the tier shrinks when the system is short of memory. Default `true`. See
  /// `MemoryCacheConfiguration.respondsToMemoryPressure`.
  public var respondsToMemoryPressure: Bool = true

  /// Whether `DiskCache.enterBackground` clears the tier. Default `true`.
  public var clearsInBackground: Bool = true

  /// Where values are destroyed. Default `.automatic`.
  public var release: ValueRelease = .automatic

  /// Makes a configuration with these limits and the defaults for all other options.
  ///
  /// - Parameters:
  ///   - countLimit: the maximum number of entries in the tier, or `nil` for no limit.
  ///   - costLimit: the maximum total cost of the entries in the tier, or `nil` for no limit.
  public init(countLimit: Int?, costLimit: Int?) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// A configuration without limits: the tier can hold every entry that is on disk, until memory is
  /// short.
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
