/// Where stores and caches report what no call throws: what an open recovered, failures in the background, failed
/// writes by subscript.
///
/// A log is a level and a handler. By default, warnings and errors go to standard error, one line each:
///
///     cairn: warning: maintenance: /var/lib/blobs.cairn: no checkpoint is made: …
///
/// ``none`` silences it. A handler of your own gets every message, or those from a level on:
///
///     configuration.log = DiagnosticLog(from: .info) { message in print(message) }
///
/// The handler may be called on any thread, several at a time. It is never called under a lock, so it may use the store
/// or the cache. A slow handler delays the call or the background job that reports.
public struct DiagnosticLog: Sendable {
  /// How much a message matters.
  public enum Level: String, Sendable, Hashable, CaseIterable, Comparable {
    /// What happens often and as configured: a cache dropped a value with an old tag.
    case debug
    /// What needs no action: an open cut off what a crash left unfinished.
    case info
    /// Something was not done or is not as expected, and nothing that was acknowledged is lost by it.
    case warning
    /// Data is lost or damaged, or something failed that somebody relies on.
    case error

    /// Whether one matters less than another.
    public static func < (left: Level, right: Level) -> Bool { left.severity < right.severity }

    private var severity: Int {
      switch self {
      case .debug: 0
      case .info: 1
      case .warning: 2
      case .error: 3
      }
    }
  }

  /// What a message is about. A minor version may add cases.
  public enum Category: String, Sendable, Hashable, CaseIterable {
    /// What an open found and did: files set aside, a checkpoint that could not be used, a store that was replaced.
    case recovery
    /// Damaged bytes.
    case damage
    /// The clock is behind or was set.
    case clock
    /// Writes that failed or wait, where no call throws it.
    case writing
    /// Reads by subscript that failed.
    case reading
    /// Keys and values of a cache that its coders cannot decode.
    case coding
    /// Work in the background: compaction, checkpoints, limits, expiry, scrubbing.
    case maintenance
    /// Options that are ignored.
    case configuration
  }

  /// One message. It holds no keys and no values.
  public struct Message: Sendable, Hashable, CustomStringConvertible {
    /// How much it matters.
    public let level: Level
    /// What it is about.
    public let category: Category
    /// The directory of the store or cache, as it was given.
    public let path: String
    /// What happened, in words that later versions may change.
    public let text: String

    /// Level, category, path and text, on one line. The path stands there once, also where the text begins with it.
    public var description: String {
      let place = text.hasPrefix(shown(path)) ? "" : "\(path): "
      return shown("\(level.rawValue): \(category.rawValue): \(place)\(text)")
    }
  }

  /// Who gets the messages.
  enum Handler {
    case nobody
    case standardError
    case closure(@Sendable (Message) -> Void)
  }

  private let lowest: Level
  let handler: Handler

  /// Makes a log.
  ///
  /// - Parameters:
  ///   - lowest: the lowest level that the handler is called for.
  ///   - handler: called with each message.
  public init(from lowest: Level = .debug, handler: @escaping @Sendable (Message) -> Void) {
    self.init(from: lowest, to: .closure(handler))
  }

  private init(from lowest: Level, to handler: Handler) {
    self.lowest = lowest
    self.handler = handler
  }

  /// Writes warnings and errors to standard error, one line each. The default.
  public static let standardError = DiagnosticLog(from: .warning, to: .standardError)

  /// Reports nothing.
  public static let none = DiagnosticLog(from: .error, to: .nobody)

  /// Whether the handler is called for a level.
  package func takes(_ level: Level) -> Bool {
    if case .nobody = handler { false } else { level >= lowest }
  }
}
