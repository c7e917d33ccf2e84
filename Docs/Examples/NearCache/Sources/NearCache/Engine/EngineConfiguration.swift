/// How the engine is called.
public struct EngineConfiguration: Sendable {
  public var endpoint: EngineEndpoint
  /// How long a call may take, from the call on, queues and reconnections included.
  public var callTimeout: Duration = .milliseconds(500)
  /// How long the making of a connection may take, with its first answer.
  public var connectTimeout: Duration = .milliseconds(500)
  /// The longest wait after the first failure. It doubles with each further one; the wait is drawn from zero up to it, so that
  /// many machines do not come back at once.
  public var firstRetryDelay: Duration = .milliseconds(10)
  /// The longest wait that it grows to.
  public var longestRetryDelay: Duration = .seconds(1)
  /// After how many failures in a row calls fail at once, until a connection is there again.
  public var failuresUntilCircuitOpens = 3

  public init(endpoint: EngineEndpoint = EngineEndpoint()) { self.endpoint = endpoint }
}

/// How long to wait after failures.
struct Backoff {
  private let first: Int64
  private let longest: Int64
  private(set) var failureCount = 0

  init(_ configuration: EngineConfiguration) {
    first = max(1, configuration.firstRetryDelay.nanoseconds)
    longest = max(first, configuration.longestRetryDelay.nanoseconds)
  }

  mutating func noteSuccess() { failureCount = 0 }

  /// - Returns: nanoseconds.
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
  /// The nearest `Int64` where they do not fit.
  package var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if isTooLong { return seconds < 0 ? .min : .max }
    let (sum, overflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : sum
  }
}
