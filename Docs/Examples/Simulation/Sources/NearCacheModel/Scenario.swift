/// Machines with near caches in front of one engine, and their load.
public struct Scenario: Sendable, Hashable {
  /// The number of machines.
  public var machineCount: Int
  /// The number of keys that are read and written.
  public var keyCount: Int
  /// The exponent s of Zipf's law: the frequency of the key of rank i is proportional to 1 / iˢ. 0
  /// means that all keys are equally frequent.
  public var exponent: Double
  /// The reads per second of each machine.
  public var readRate: Double
  /// The writes per second of all machines together. Writes follow the same distribution of keys as
  /// reads.
  public var writeRate: Double
  /// The lifetime of a near copy, in seconds.
  public var lifetime: Double
  /// How long an invalidation takes to reach each machine, in seconds. Infinite if there are none.
  public var delay: Double

  public init(
    machineCount: Int = 10, keyCount: Int = 100_000, exponent: Double = 0.99,
    readRate: Double = 100, writeRate: Double = 10, lifetime: Double = 60,
    delay: Double = .infinity
  ) {
    self.machineCount = machineCount
    self.keyCount = keyCount
    self.exponent = exponent
    self.readRate = readRate
    self.writeRate = writeRate
    self.lifetime = lifetime
    self.delay = delay
  }
}

/// The results of a scenario.
public struct Outcome: Sendable, Hashable {
  /// The share of reads that a near copy answers.
  public var hitRatio: Double
  /// The engine's calls per second: reads that find no near copy, and writes.
  public var engineRate: Double
  /// The share of reads that return an overwritten value.
  public var staleShare: Double
  /// The time since the returned value was overwritten, in seconds, averaged over all reads.
  public var staleness: Double

  public init(hitRatio: Double, engineRate: Double, staleShare: Double, staleness: Double) {
    self.hitRatio = hitRatio
    self.engineRate = engineRate
    self.staleShare = staleShare
    self.staleness = staleness
  }
}
