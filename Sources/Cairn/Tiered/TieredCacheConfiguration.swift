/// How a ``TieredCache`` is made.
public struct TieredCacheConfiguration: Sendable {
  /// Of the tier in memory. Its `lifetime`, `idleLimit` and `clock` are not looked at: an entry has the same
  /// ones in both tiers, and those of the store count.
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
