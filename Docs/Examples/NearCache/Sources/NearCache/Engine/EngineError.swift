/// A call of the engine that has failed: which one, where, and why.
public struct EngineError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Why.
  public enum Cause: Sendable, Hashable {
    /// There is no connection, and none could be made.
    case cannotConnect(String)
    /// The connection was lost before the answer.
    case lost(String)
    /// There was no answer in time. The connection is closed then, since its next answer would be that of this call.
    case timedOut(Duration)
    /// Several tries have failed, and the call was not tried. The text is the error of the last one.
    case circuitOpen(String)
    /// The engine answered with an error.
    case refused(String)
    /// The answer is none that the call has.
    case unexpected
    /// The value of the engine cannot be decoded.
    case undecodable(String)
    /// The client was closed.
    case closed
    /// Invalidations are not received, so nobody can say what was written meanwhile.
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

  /// The same, of a call where it knows of none.
  func of(_ call: String) -> EngineError {
    self.call.isEmpty ? EngineError(cause, endpoint, call: call) : self
  }

  /// Whether a command may have been executed all the same.
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
      case .circuitOpen(let text): "not tried, since calls have failed: \(text)"
      case .refused(let text): "the engine refused: \(text)"
      case .unexpected: "the answer is none that this command has"
      case .undecodable(let text): "the value cannot be decoded: \(text)"
      case .closed: "the client is closed"
      case .notFollowing: "invalidations are not received"
      }
    return "\(call) at \(endpoint): \(reason)"
  }
}

/// Where the engine is.
public struct EngineEndpoint: Sendable, Hashable, CustomStringConvertible {
  /// An address, or a name. A name is resolved with each connection; a resolver that hangs delays the timeouts of calls.
  public var host: String
  public var port: Int

  public init(host: String = "127.0.0.1", port: Int = 6379) {
    self.host = host
    self.port = port
  }

  public var description: String { "\(host):\(port)" }
}
