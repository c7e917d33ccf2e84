import Cairn
import Logging

extension DiagnosticLog {
  /// Hands all messages to a logger of swift-log, whose levels have the same names.
  public init(_ logger: Logger) {
    self.init { message in
      let level = Logger.Level(rawValue: message.level.rawValue) ?? .error
      logger.log(
        level: level, "\(message.text)",
        metadata: ["category": "\(message.category)", "path": "\(message.path)"])
    }
  }
}
