internal import CairnStore

/// How a ``TieredCache`` is made.
public struct TieredCacheConfiguration: Sendable {
  /// Of the tier in memory. An entry has the same lifetime and idle limit in both tiers, by the same clock: those of
  /// the store, `disk.store`. To open a cache where they are set here is refused as `invalidConfiguration`.
  public var memory: MemoryCacheConfiguration

  /// Of the tier on disk. Its limits are those of the whole: memory holds a part of what is there.
  public var disk: DiskCacheConfiguration

  /// For how long at most the tier on disk does not know what was read from memory. Default 1 s. Less than 1 ms,
  /// zero too, is as 1 ms.
  ///
  /// It is told in the background, in one go, and before a trim, a close and, as far as that matters, an
  /// eviction; nothing is written to disk by it. What an entry has that may not be idle for long is told
  /// at once.
  public var recencyInterval: Duration = .seconds(1)

  /// Makes a configuration of those of the two tiers.
  ///
  /// - Parameters:
  ///   - memory: of the tier in memory.
  ///   - disk: of the tier on disk.
  public init(memory: MemoryCacheConfiguration, disk: DiskCacheConfiguration) {
    self.memory = memory
    self.disk = disk
  }
}

extension TieredCacheConfiguration {
  /// Throws where an option is set that would not be looked at.
  func check() throws(CacheError) {
    func require(_ holds: Bool, _ option: String) throws(CacheError) {
      if holds { return }
      let reason = "both tiers go by the one of disk.store; set that"
      throw .store(.invalidConfiguration(option: "memory." + option, reason: reason))
    }
    try require(memory.lifetime == nil, "lifetime")
    try require(memory.idleLimit == nil, "idleLimit")
    try require(memory.clock is SystemClock, "clock")
  }
}
