public import CairnStore

/// What a cache has loaded for callers of `value(forKey:orLoad:)` that found nothing. The counts only
/// grow.
public struct LoadStatistics: Sendable, Hashable {
  /// Loaders that were called.
  public var startedCount: UInt64 = 0
  /// Callers that waited for a load that another had begun.
  public var joinedCount: UInt64 = 0
  /// Of the loaders that were called, those that threw.
  public var failedCount: UInt64 = 0
  /// Loads that were cancelled since nobody waited any more.
  public var cancelledCount: UInt64 = 0
  /// Values that were loaded and not kept, since the key was written or removed meanwhile.
  public var outdatedCount: UInt64 = 0
  /// Values that were loaded and could not be kept, since they could not be written to disk. Those who
  /// waited got them; the log tells why.
  public var unkeptCount: UInt64 = 0

  /// Makes counts of nothing, for who has a cache of his own.
  public init() {}

  /// All counts with their names, for a metrics library.
  public var metrics: [(name: String, value: UInt64)] { counters }

  var counters: [Metric] {
    [
      ("started", startedCount), ("joined", joinedCount), ("failed", failedCount),
      ("cancelled", cancelledCount), ("outdated", outdatedCount), ("unkept", unkeptCount),
    ]
  }
}

/// A value that was loaded, with how it is to be kept.
///
///     let page = try await cache.value(forKey: url) {
///       let (bytes, age) = try await fetch(url)
///       return Loaded(bytes, lifetime: .after(age))
///     }
public struct Loaded<Value: Sendable>: Sendable {
  /// The value, for all who wait for it.
  public var value: Value
  /// What it costs; `nil`: what the cache makes of it; below 0 is as 0.
  public var cost: Int?
  /// How long it lives, from the end of the load on.
  public var lifetime: Lifetime
  /// How long it may go without being read or written; `nil`: as the cache is configured.
  public var idleLimit: Duration?
  /// Bytes kept beside the value on disk, such as the ETag that came with it; a cache in memory keeps none.
  public var metadata: [UInt8]

  /// Makes what a loader returns.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - cost: what it costs; `nil`: what the cache makes of it; below 0 is as 0.
  ///   - lifetime: how long it lives, from the end of the load on; without it as the cache is configured.
  ///   - idleLimit: how long it may go without being read or written; `nil`: as the cache is configured.
  ///   - metadata: bytes kept beside the value on disk: up to 65,527.
  public init(
    _ value: Value, cost: Int? = nil, lifetime: Lifetime = .standard, idleLimit: Duration? = nil,
    metadata: [UInt8] = []
  ) {
    self.value = value
    self.cost = cost
    self.lifetime = lifetime
    self.idleLimit = idleLimit
    self.metadata = metadata
  }
}

extension Loaded: Equatable where Value: Equatable {}
extension Loaded: Hashable where Value: Hashable {}
