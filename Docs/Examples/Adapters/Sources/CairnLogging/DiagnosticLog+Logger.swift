import Cairn
import Logging

extension DiagnosticLog {
  /// Passes all messages to a swift-log logger.
  ///
  ///     var configuration = DiskCacheConfiguration(countLimit: 10_000)
  ///     configuration.store.log = DiagnosticLog(Logger(label: "cairn"))
  ///
  /// The levels have the same names. Each message has the metadata `category`, such as `damage`,
  /// and `path`, the directory of the store. Alert on messages with level `error` and category
  /// `damage` or `writing`.
  ///
  /// - Parameters:
  ///   - logger: receives the messages. Its level determines which ones it logs.
  ///   - metadata: added to each message, such as the name of the cache.
  public init(_ logger: Logger, metadata: Logger.Metadata = [:]) {
    self.init { message in
      var all = metadata
      all["category"] = "\(message.category)"
      all["path"] = "\(message.path)"
      logger.log(level: Logger.Level(message.level), "\(message.text)", metadata: all)
    }
  }
}

extension Logger.Level {
  /// The level of the same name. An unknown level becomes `error`.
  init(_ level: DiagnosticLog.Level) { self = Logger.Level(rawValue: level.rawValue) ?? .error }
}
