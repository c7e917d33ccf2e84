/// Machines with near caches in front of one engine, and what is asked of them.
public struct Scenario: Sendable, Hashable {
  /// How many machines there are.
  public var machineCount: Int
  /// How many keys are read and written.
  public var keyCount: Int
  /// The exponent of Zipf's law: the key of rank i is asked for in proportion to 1 / iˢ. 0 is all alike.
  public var exponent: Double
  /// Reads a second of each machine.
  public var readRate: Double
  /// Writes a second, of all machines together. Keys are written as often as they are read, relatively.
  public var writeRate: Double
  /// How long a near copy lives, in seconds.
  public var lifetime: Double
  /// How long the engine's invalidation takes to each machine, in seconds; infinite: there is none.
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

/// What comes of a scenario.
public struct Outcome: Sendable, Hashable {
  /// The share of reads that a near copy answers.
  public var hitRatio: Double
  /// Calls a second that the engine gets: reads that find no near copy, and writes.
  public var engineRate: Double
  /// The share of reads that are answered with a value that was written over.
  public var staleShare: Double
  /// How long ago the value of a read was written over, in seconds, on average of all reads.
  public var staleness: Double

  public init(hitRatio: Double, engineRate: Double, staleShare: Double, staleness: Double) {
    self.hitRatio = hitRatio
    self.engineRate = engineRate
    self.staleShare = staleShare
    self.staleness = staleness
  }
}
