/// Receives messages about problems that no call can throw: what a recovery found, background
/// failures, and failed reads and writes by subscript.
///
/// By default, warnings and errors go to standard error, one line each:
///
///     cairn: warning: maintenance: /var/lib/blobs.cairn: no checkpoint is made: …
///
/// upwards:
///
///     configuration.log = DiagnosticLog(from: .info) { message in print(message) }
///
/// The handler may be called on any thread, and on several threads at once. It is never called
/// under a lock, so it may use the store or the cache. A slow handler delays the call or the
/// background job that sends the message.
public struct DiagnosticLog: Sendable {
  /// The severity of a message.
  public enum Level: String, Sendable, Hashable, CaseIterable {
    /// A frequent and expected event: for example, a cache dropped a value with an old tag.
    case debug
    /// An event that needs no action: for example, an open discarded writes that a crash left
    /// unfinished.
    case info
    /// Some work was not done, or something unexpected happened, but no acknowledged write was
    /// lost.
    case warning
    /// Data is lost or damaged, or something important failed.
    case error

    package var severity: Int {
      switch self {
      case .debug: 0
      case .info: 1
      case .warning: 2
      case .error: 3
      }
    }
  }

  /// The subject of a message.
  @usableFromInline package enum Category: String, Sendable {
    /// What an open found or changed: quarantined files, an unusable checkpoint, a replaced store.
    case recovery
    /// Damaged bytes.
    case damage
    /// The clock is behind, or was set.
    case clock
    /// Failed or delayed writes that no call reports.
    case writing
    /// Failed reads by subscript.
    case reading
    /// Keys and values that a cache's coders cannot decode.
    case coding
    /// Background work: compaction, checkpoints, limits, expiry, scrubbing.
    case maintenance
    /// Ignored options.
    case configuration
  }

  /// One message. Never contains keys or values.
  public struct Message: Sendable, Hashable, CustomStringConvertible {
    /// The severity.
    public let level: Level
    /// The subject: a word such as `recovery`, `damage`, `clock`, `writing`, `reading`, `coding`,
    /// `maintenance` or `configuration`.
    public let category: String
    /// The directory of the store or cache, as the caller gave it.
    public let path: String
    /// What happened, in words that later versions may change.
    public let text: String

    /// Level, category, path and text, on one line.
    public var description: String {
      let place = text.hasPrefix(shown(path)) ? "" : "\(path): "
      return shown("\(level.rawValue): \(category): \(place)\(text)")
    }
  }

  /// The destination of the messages.
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
  ///   - lowest: the lowest level that the handler receives.
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
  public static let silent = DiagnosticLog(from: .error, to: .nobody)

  /// Whether the handler receives messages of a level.
  package func takes(_ level: Level) -> Bool {
    if case .nobody = handler { false } else { level.severity >= lowest.severity }
  }
}
