/// The engine's address and timeouts.
public struct EngineConfiguration: Sendable {
  public var endpoint: EngineEndpoint
  /// How long a call may take in total, including queueing and reconnecting.
  public var callTimeout: Duration = .milliseconds(500)
  /// The time limit for connecting, and again for the first answer.
  public var connectTimeout: Duration = .milliseconds(500)
  /// The longest wait after the first failure. This limit doubles with each further failure. The
  /// actual wait is random, from zero up to the limit, so that many machines do not reconnect at
  /// once.
  public var firstRetryDelay: Duration = .milliseconds(10)
  /// The maximum of that limit.
  public var longestRetryDelay: Duration = .seconds(1)
  /// The number of failures in a row after which calls fail at once, until there is a connection
  /// again.
  public var failuresUntilCircuitOpens = 3

  public init(endpoint: EngineEndpoint = EngineEndpoint()) { self.endpoint = endpoint }
}

/// Computes how long to wait after failures.
struct Backoff {
  private let first: Int64
  private let longest: Int64
  private(set) var failureCount = 0

  init(_ configuration: EngineConfiguration) {
    first = max(1, configuration.firstRetryDelay.nanoseconds)
    longest = max(first, configuration.longestRetryDelay.nanoseconds)
  }

  mutating func noteSuccess() { failureCount = 0 }

  /// - Returns: the wait in nanoseconds.
  mutating func noteFailure(
    using generator: inout some RandomNumberGenerator
  ) -> Int64 {
    failureCount += 1
    let limit =
      Double(first) * Double(sign: .plus, exponent: min(failureCount, 60) - 1, significand: 1)
    return Int64.random(in: 0...Int64(min(limit, Double(longest))), using: &generator)
  }
}

extension Duration {
  /// The number of nanoseconds, clamped to `Int64`.
  package var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if isTooLong { return seconds < 0 ? .min : .max }
    let (sum, overflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : sum
  }
}
