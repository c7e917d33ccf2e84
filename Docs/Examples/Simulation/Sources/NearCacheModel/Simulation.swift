import Foundation

extension Scenario {
  /// The outcome of a simulation that draws each read and write at random.
  ///
  /// - Parameters:
  ///   - seed: the seed of the random numbers.
  ///   - duration: the number of seconds that count, after a warm-up of two lifetimes.
  public func simulated(seed: UInt64, duration: Double) -> Outcome {
    var random = SplitMix(state: seed)
    let cumulative = Zipf.cumulative(keyCount: keyCount, exponent: exponent)
    // The creation time of each machine's copy of each key. Initial ages are random. Otherwise many
    // copies would expire at the same time for a long while.
    var copies = (0..<machineCount).map { _ in
      (0..<keyCount).map { key in
        let share = cumulative[key] - (key > 0 ? cumulative[key - 1] : 0)
        let reads = readRate * share * lifetime
        return random.next() * (1 + reads) < reads ? -lifetime * random.next() : -.infinity
      }
    }
    // The times of each key's writes, in order.
    var writes = [[Double]](repeating: [], count: keyCount)
    var tally = Tally()
    let allReads = Double(machineCount) * readRate
    let rate = allReads + writeRate
    let start = 2 * lifetime
    var time = 0.0
    while true {
      time -= log1p(-random.next()) / rate
      if time > start + duration { break }
      let key = Self.index(in: cumulative, of: random.next())
      guard random.next() * rate < allReads else {
        forget(&writes[key], before: time)
        writes[key].append(time)
        if time > start { tally.writes += 1 }
        continue
      }
      let machine = min(machineCount - 1, Int(random.next() * Double(machineCount)))
      let made = copies[machine][key]
      let overwritten = Self.first(in: writes[key], after: made)
      let isHit = time < made + lifetime && time < overwritten + delay
      if !isHit { copies[machine][key] = time }
      guard time > start else { continue }
      tally.reads += 1
      if isHit {
        tally.hits += 1
        if overwritten < time {
          tally.stale += 1
          tally.staleness += time - overwritten
        }
      }
    }
    return Outcome(
      hitRatio: tally.hits / tally.reads,
      engineRate: (tally.reads - tally.hits + tally.writes) / duration,
      staleShare: tally.stale / tally.reads, staleness: tally.staleness / tally.reads)
  }

  private struct Tally {
    var reads = 0.0
    var hits = 0.0
    var stale = 0.0
    var staleness = 0.0
    var writes = 0.0
  }

  /// Removes writes that are older than any live copy.
  private func forget(_ writes: inout [Double], before time: Double) {
    guard writes.count >= 64 else { return }
    let count = writes.prefix { $0 < time - lifetime }.count
    writes.removeFirst(count)
  }

  /// The first write after a time; infinite if there is none.
  private static func first(in writes: [Double], after time: Double) -> Double {
    var low = 0
    var high = writes.count
    while low < high {
      let middle = (low + high) / 2
      if writes[middle] > time { high = middle } else { low = middle + 1 }
    }
    return low < writes.count ? writes[low] : .infinity
  }

  private static func index(in cumulative: [Double], of draw: Double) -> Int {
    var low = 0
    var high = cumulative.count - 1
    while low < high {
      let middle = (low + high) / 2
      if cumulative[middle] > draw { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

/// The random number generator SplitMix64 (Steele, Lea and Flood). The same seed gives the same
/// numbers.
struct SplitMix {
  var state: UInt64

  /// A number from 0 up to, but not including, 1.
  mutating func next() -> Double {
    state &+= 0x9e37_79b9_7f4a_7c15
    var bits = state
    bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
    return Double((bits ^ bits >> 31) >> 11) * 0x1p-53
  }
}
