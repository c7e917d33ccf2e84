extension MemoryConfiguration {
  /// The configuration of the memory cache that implements a tier.
  ///
  /// - Parameter disk: the configuration of the tier below, whose lifetimes apply.
  func held(_ disk: DiskCacheConfiguration) -> MemoryConfiguration {
    var held = self
    held.lifetime = disk.lifetime
    held.idleLimit = disk.idleLimit
    held.loadPolicy = .standard
    // The cache as a whole responds instead.
    held.respondsToMemoryPressure = false
    return held
  }
}
