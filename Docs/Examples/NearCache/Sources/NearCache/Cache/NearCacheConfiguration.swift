import Cairn

/// The configuration of a near cache.
public struct NearCacheConfiguration: Sendable {
  /// The prefix of the keys in the engine. Invalidations arrive for all keys with this prefix, so
  /// each near cache needs its own.
  public var prefix: String
  /// The engine's address and timeouts.
  public var engine: EngineConfiguration
  /// The limits for near copies, on disk and in memory. `loadPolicy` below replaces its load
  /// policy.
  public var near: DiskCacheConfiguration
  /// The longest lifetime of a near copy. Default: an hour.
  public var nearLifetime: Duration = .seconds(3600)
  /// How old reads may be, whatever fails: a read reflects every write that was acknowledged more
  /// than this long before the read began. Only a `loadPolicy` that allows stale values extends
  /// this limit. Default 2 s. Must be at least `heartbeat` plus `callTimeout`.
  public var stalenessLimit: Duration = .seconds(2)
  /// How often to check with the engine that all invalidations have arrived. Default 0.5 s.
  public var heartbeat: Duration = .milliseconds(500)
  /// When near copies expire after invalidations stop arriving. Default: at once.
  public var lossPolicy = LossPolicy.expireAtOnce
  /// The policy for loads, as in a `DiskCache`. `staleOnError` limits how long a near copy may be
  /// returned while the engine is down, counted from when the copy was last known to be right.
  public var loadPolicy = LoadPolicy()
  /// How long one caller alone may load a key from the origin. After that, another caller may, and
  /// the late value is returned but not kept. Should be longer than the origin takes. Default 10 s.
  public var lease: Duration = .seconds(10)
  /// Whether to ask the origin while the engine is down and there is no near copy. The answer is
  /// not kept. Default `true`.
  public var asksOriginDuringOutage = true

  public init(prefix: String, engine: EngineConfiguration, near: DiskCacheConfiguration) {
    self.prefix = prefix
    self.engine = engine
    self.near = near
  }

  /// - Throws: `NearCacheError` if the promise could not be kept.
  func validate() throws(NearCacheError) {
    if engine.callTimeout <= .zero || engine.connectTimeout <= .zero || heartbeat <= .zero {
      throw .invalidConfiguration("timeouts and the heartbeat must be above zero")
    }
    if stalenessLimit < heartbeat + engine.callTimeout {
      throw .invalidConfiguration(
        "a stalenessLimit of \(stalenessLimit) is less than the heartbeat plus the callTimeout")
    }
  }
}

/// An invalid use of a near cache.
public enum NearCacheError: Error, Sendable, Hashable, CustomStringConvertible {
  case invalidConfiguration(String)

  public var description: String {
    switch self {
    case .invalidConfiguration(let reason): "invalid configuration: \(reason)"
    }
  }
}

/// Converts values to bytes, for the engine and the disk.
public struct NearCoder<Value: Sendable>: Sendable {
  let encode: @Sendable (Value) throws -> [UInt8]
  let decode: @Sendable ([UInt8]) throws -> Value

  public init(
    encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable ([UInt8]) throws -> Value
  ) {
    self.encode = encode
    self.decode = decode
  }
}
