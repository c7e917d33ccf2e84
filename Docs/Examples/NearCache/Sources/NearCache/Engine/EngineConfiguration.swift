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
    // `limit` may be above the largest number.
    let wait = min(Int64(min(limit, 0x1p62)), longest)
    return Int64.random(in: 0...wait, using: &generator)
  }
}

extension Duration {
  /// The number of nanoseconds, clamped to `Int64`.
  package var nanoseconds: Int64 {
    // Getting the components of a very long duration traps.
    if self >= .nanoseconds(Int64.max) { return .max }
    if self <= .nanoseconds(Int64.min) { return .min }
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}

extension Int64 {
  /// The sum, clamped to `Int64`.
  func adding(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
