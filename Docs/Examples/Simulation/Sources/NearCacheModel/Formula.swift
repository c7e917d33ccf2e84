import Foundation

extension Scenario {
  /// The outcome by formula, where reads and writes come independently of each other (Poisson processes).
  ///
  /// Take a key that a machine reads λ times a second and that is written μ times a second; its near copy lives
  /// T, and an invalidation takes d ≤ T. A copy ends at T, or d after the first write. Its mean life is
  ///
  ///     L(d) = d + (1 − e^(−μ(T − d))) / μ
  ///
  /// and L(0) of it passes before a write. After its end, the machine has none for 1 / λ on average. So of
  /// 1 + λL(d) reads, one asks the engine and λ(L(d) − L(0)) are stale.
  public var formula: Outcome {
    var sum = Outcome(hitRatio: 0, engineRate: 0, staleShare: 0, staleness: 0)
    for group in Zipf(keyCount: keyCount, exponent: exponent).groups {
      let reads = readRate * group.share
      let writes = writeRate * group.share
      let life = meanLife(delay: delay, writes)
      let cycle = 1 + reads * life
      // The share of all reads that are of these keys.
      let part = group.count * group.share
      sum.hitRatio += part * reads * life / cycle
      sum.staleShare += part * reads * (life - meanLife(delay: 0, writes)) / cycle
      sum.staleness += part * reads * staleTime(writes) / cycle
    }
    sum.engineRate = Double(machineCount) * readRate * (1 - sum.hitRatio) + writeRate
    return sum
  }

  /// L(d).
  private func meanLife(delay: Double, _ writes: Double) -> Double {
    let delay = min(delay, lifetime)
    guard writes > 0 else { return lifetime }
    return delay - expm1(-writes * (lifetime - delay)) / writes
  }

  /// The integral, over the life of a copy, of how long ago it was written over: E[(end − first write)²] / 2.
  private func staleTime(_ writes: Double) -> Double {
    let delay = min(delay, lifetime)
    guard writes > 0, delay > 0 else { return 0 }
    // A write that leaves time for its invalidation, and one that does not.
    let early = -expm1(-writes * (lifetime - delay)) * delay * delay
    let x = writes * delay
    let late: Double
    if x < 0.01 {
      // The closed form loses all digits here.
      late = exp(-writes * lifetime) * writes * pow(delay, 3) * (1.0 / 3 + x / 4 + x * x / 10)
    } else {
      let square = writes * writes
      late =
        exp(-writes * (lifetime - delay)) * (delay * delay - 2 * delay / writes + 2 / square)
        - exp(-writes * lifetime) * 2 / square
    }
    return (early + late) / 2
  }
}
