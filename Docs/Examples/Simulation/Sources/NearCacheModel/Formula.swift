import Foundation

extension Scenario {
  /// The outcome by formula, if reads and writes are independent (Poisson processes).
  ///
  /// A machine reads a key λ times a second, and all machines write it μ times a second. A near
  /// copy lives for T, unless an invalidation ends it d ≤ T after the first write. Its mean life is
  ///
  ///     L(d) = d + (1 − e^(−μ(T − d))) / μ
  ///
  /// and the copy is fresh for L(0) of that time. After the end of a copy, the machine has none for
  /// 1 / λ on average. So of 1 + λL(d) reads, one goes to the engine, and λ(L(d) − L(0)) are stale.
  public var formula: Outcome {
    var sum = Outcome(hitRatio: 0, engineRate: 0, staleShare: 0, staleness: 0)
    for group in Zipf(keyCount: keyCount, exponent: exponent).groups {
      let reads = readRate * group.share
      let writes = writeRate * group.share
      let life = meanLife(delay: delay, writes)
      let cycle = 1 + reads * life
      // The share of all reads that go to these keys.
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

  /// The integral, over the life of a copy, of the time since it was overwritten: E[(end − first
  /// write)²] / 2.
  private func staleTime(_ writes: Double) -> Double {
    let delay = min(delay, lifetime)
    guard writes > 0, delay > 0 else { return 0 }
    // `early`: the copy ends by the invalidation. `late`: the copy expires before that.
    let early = -expm1(-writes * (lifetime - delay)) * delay * delay
    let x = writes * delay
    let late: Double
    if x < 0.01 {
      // The closed form loses all precision here.
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
