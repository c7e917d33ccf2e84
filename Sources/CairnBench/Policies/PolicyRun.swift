import Cairn
import FoundationEssentials

/// The result of one policy on one stream.
struct PolicyResult: Codable, Equatable {
  var stream: RequestStream
  var policy: String
  var entryLimit: Int
  var requestCount: Int
  var hitCount: Int
  /// The median of the rounds.
  var nanosecondsPerRequest: Double

  var hitRatio: Double { Double(hitCount) / Double(max(1, requestCount)) }
}

/// Runs the policies of the cache in memory on generated streams: a read, and if it finds nothing,
/// a write.
struct PolicyRun {
  let isQuick: Bool
  let seed: UInt64

  static func name(_ policy: EvictionPolicy) -> String {
    switch policy {
    case .leastRecentlyUsed: "lru"
    case .sieve: "sieve"
    case .s3FIFO: "s3-fifo"
    }
  }

  func results(of stream: RequestStream) throws -> [PolicyResult] {
    let requests = stream.requests(count: isQuick ? 50_000 : 1_000_000, seed: seed)
    let policies = EvictionPolicy.allCases
    var rounds: [[(hits: Int, nanoseconds: Double)]] = policies.map { _ in [] }
    // The policies take turns in each round, so that a disturbance affects all of them.
    for _ in 0..<(isQuick ? 1 : 5) {
      for (index, policy) in policies.enumerated() {
        rounds[index].append(try run(requests, stream, policy))
      }
    }
    return zip(policies, rounds).map { policy, rounds in
      PolicyResult(
        stream: stream, policy: Self.name(policy), entryLimit: RequestStream.capacity,
        requestCount: requests.count, hitCount: rounds[0].hits,
        nanosecondsPerRequest: rounds.map(\.nanoseconds).sorted()[rounds.count / 2])
    }
  }

  private func run(
    _ requests: [UInt32], _ stream: RequestStream, _ policy: EvictionPolicy
  ) throws -> (hits: Int, nanoseconds: Double) {
    var configuration = MemoryConfiguration(
      countLimit: RequestStream.capacity, costLimit: nil)
    configuration.policy = policy
    let cache = MemoryCache<UInt32, UInt32>(configuration: configuration)
    var hits = 0
    var wrong: UInt32?
    let time = ContinuousClock().measure {
      for key in requests {
        if let value = cache.value(forKey: key) {
          hits += 1
          if value != ~key { wrong = key }
        } else {
          cache.setValue(~key, forKey: key)
        }
      }
    }
    if let wrong {
      throw BenchFailure.mismatch(
        store: Self.name(policy), workload: stream.rawValue, key: "\(wrong)",
        detail: "the value is wrong")
    }
    let nanoseconds = time / .nanoseconds(1)
    return (hits, nanoseconds / Double(max(1, requests.count)))
  }

  static func json(_ results: [PolicyResult]) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return Array(try encoder.encode(results)) + Array("\n".utf8)
  }
}
