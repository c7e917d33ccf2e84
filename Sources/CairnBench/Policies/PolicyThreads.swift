import Cairn

/// Hits per second on one thread and on two, which show what the threads of a memory cache share.
struct PolicyThreads {
  let isQuick: Bool
  let seed: UInt64

  private static let keyCount = 10_000
  private var callCount: Int { isQuick ? 50_000 : 2_000_000 }

  /// Medians of the rates, and of their ratios.
  struct Rates {
    let one: Double
    let two: Double
    let ratio: Double
  }

  var medians: [EvictionPolicy: Rates] {
    get throws {
      var rates: [EvictionPolicy: [[Double]]] = [:]
      // The policies take turns in each round, so that a disturbance affects all of them.
      for _ in 0..<(isQuick ? 1 : 7) {
        for policy in EvictionPolicy.allCases {
          rates[policy, default: []].append([try rate(policy, 1), try rate(policy, 2)])
        }
      }
      return rates.mapValues { rounds in
        func median(_ value: ([Double]) -> Double) -> Double {
          rounds.map(value).sorted()[rounds.count / 2]
        }
        return Rates(
          one: median { $0[0] }, two: median { $0[1] }, ratio: median { $0[1] / $0[0] })
      }
    }
  }

  var table: String {
    get throws {
      let medians = try medians
      let rows = EvictionPolicy.allCases.compactMap { policy in
        medians[policy].map {
          [
            PolicyRun.name(policy), Figures.rate($0.one), Figures.rate($0.two),
            Figures.ratio($0.ratio),
          ]
        }
      }
      return "hits of \(Figures.count(Self.keyCount)) keys\n"
        + TextTable.aligned(
          [["policy", "one thread", "two threads", ""]] + rows, leftAlignedColumnCount: 1)
    }
  }

  private func rate(_ policy: EvictionPolicy, _ threadCount: Int) throws -> Double {
    var configuration = MemoryConfiguration(countLimit: Self.keyCount)
    configuration.policy = policy
    let cache = MemoryCache<UInt32, UInt32>(configuration: configuration)
    for key in 0..<UInt32(Self.keyCount) { cache.setValue(~key, forKey: key) }
    let (seed, callCount) = (seed, callCount)
    let times = try ThreadTeam.run(threadCount) { thread in
      var random = RandomSource(seed: seed &+ UInt64(thread))
      let keys = (0..<4096).map { _ in UInt32(random.index(below: Self.keyCount)) }
      return try ContinuousClock().measure {
        for call in 0..<callCount {
          let key = keys[call & 4095]
          guard cache.value(forKey: key) == ~key else {
            throw BenchFailure.mismatch(
              store: PolicyRun.name(policy), workload: "hits", key: "\(key)",
              detail: "the value is wrong")
          }
        }
      }
    }
    let seconds = (times.max() ?? .zero) / .seconds(1)
    return Double(threadCount * callCount) / seconds
  }
}
