/// A failed call to the engine.
public struct EngineError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason for the failure.
  public enum Cause: Sendable, Hashable {
    /// There is no connection, and connecting failed.
    case cannotConnect(String)
    /// The connection was lost before the answer.
    case lost(String)
    /// There was no answer in time. The connection is then closed, because its next answer would
    /// belong to this call.
    case timedOut(Duration)
    /// Earlier tries failed, so this call was not tried. The text is the error of the last try.
    case circuitOpen(String)
    /// The engine answered with an error.
    case refused(String)
    /// The answer is invalid for the command.
    case unexpected
    /// The engine's value cannot be decoded.
    case undecodable(String)
    /// The client was closed.
    case closed
    /// No invalidations arrive, so writes may have been missed.
    case notFollowing
  }

  public var cause: Cause
  public var endpoint: EngineEndpoint
  /// The command and its first argument.
  public var call: String

  init(_ cause: Cause, _ endpoint: EngineEndpoint, call: String) {
    self.cause = cause
    self.endpoint = endpoint
    self.call = call
  }

  /// This error, with the given call if it has none.
  func of(_ call: String) -> EngineError {
    self.call.isEmpty ? EngineError(cause, endpoint, call: call) : self
  }

  /// Whether the engine may have executed the command.
  public var mayHaveHappened: Bool {
    switch cause {
    case .lost, .timedOut, .unexpected, .closed: true
    case .cannotConnect, .circuitOpen, .refused, .undecodable, .notFollowing: false
    }
  }

  public var description: String {
    let reason =
      switch cause {
      case .cannotConnect(let text): "cannot connect: \(text)"
      case .lost(let text): "the connection was lost: \(text)"
      case .timedOut(let limit): "no answer within \(limit)"
      case .circuitOpen(let text): "not tried, because earlier calls failed: \(text)"
      case .refused(let text): "the engine refused: \(text)"
      case .unexpected: "the answer is invalid for this command"
      case .undecodable(let text): "the value cannot be decoded: \(text)"
      case .closed: "the client is closed"
      case .notFollowing: "no invalidations arrive"
      }
    return "\(call) at \(endpoint): \(reason)"
  }
}

/// The address of the engine.
public struct EngineEndpoint: Sendable, Hashable, CustomStringConvertible {
  /// An address or a name. A name is resolved for each connection. If the resolver hangs, calls
  /// time out late.
  public var host: String
  public var port: Int

  public init(host: String = "127.0.0.1", port: Int = 6379) {
    self.host = host
    self.port = port
  }

  public var description: String { "\(host):\(port)" }
}
