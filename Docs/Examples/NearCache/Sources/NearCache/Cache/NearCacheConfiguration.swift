import Cairn

/// How a near cache is made.
public struct NearCacheConfiguration: Sendable {
  /// What the keys begin with in the engine. Invalidations come for keys with this prefix, so each near cache needs one of its
  /// own.
  public var prefix: String
  /// Where the engine is, and how it is called.
  public var engine: EngineConfiguration
  /// The limits of what is near, on disk and in memory. Its load policy is replaced by the one here.
  public var near: DiskCacheConfiguration
  /// How long a near copy lives at most. Default: an hour.
  public var nearLifetime: Duration = .seconds(3600)
  /// The promise: a read reflects every write that was acknowledged longer ago than this when the read began, whatever fails.
  /// Only a `loadPolicy` that gives stale values adds to it. Default 2 s. No less than two of the timeouts of calls.
  public var stalenessLimit: Duration = .seconds(2)
  /// How often the engine is asked whether all invalidations have come. Default 0.5 s.
  public var heartbeat: Duration = .milliseconds(500)
  /// What becomes of near copies when invalidations are not received any more. Default: they expire at once.
  public var lossPolicy = LossPolicy.expireAtOnce
  /// How loads go, as with a `DiskCache`: `staleOnError` is for how long a near copy is given while the engine is down, from
  /// the moment on when it was known to be right for the last time.
  public var loadPolicy = LoadPolicy.standard
  /// For how long a machine has a key to itself to load it from the origin. Then another one may. Default 10 s.
  public var lease: Duration = .seconds(10)
  /// Whether the origin is asked while the engine is down and there is no near copy to give. What it answers is not kept.
  /// Default `true`.
  public var asksOriginDuringOutage = true

  public init(prefix: String, engine: EngineConfiguration, near: DiskCacheConfiguration) {
    self.prefix = prefix
    self.engine = engine
    self.near = near
  }

  /// - Throws: where a promise could not be kept.
  func validate() throws(NearCacheError) {
    if engine.callTimeout <= .zero || engine.connectTimeout <= .zero || heartbeat <= .zero {
      throw .invalidConfiguration("timeouts and the heartbeat must be above zero")
    }
    if stalenessLimit < heartbeat + engine.callTimeout {
      throw .invalidConfiguration(
        "a stalenessLimit of \(stalenessLimit) is less than the heartbeat and a timeout of a call")
    }
  }
}

/// What is wrong with how a near cache is used.
public enum NearCacheError: Error, Sendable, Hashable, CustomStringConvertible {
  case invalidConfiguration(String)

  public var description: String {
    switch self {
    case .invalidConfiguration(let reason): "invalid configuration: \(reason)"
    }
  }
}

/// How values become bytes, in the engine and on disk.
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
