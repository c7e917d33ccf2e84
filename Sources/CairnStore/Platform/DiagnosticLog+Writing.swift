internal import CairnLibC

extension DiagnosticLog {
  /// Calls the handler with no lock held. Makes the text only if the handler takes the level.
  package func callAsFunction(
    _ level: Level, _ category: Category, path: String, _ text: @autoclosure () -> String
  ) {
    guard takes(level) else { return }
    let message = Message(level: level, category: category.rawValue, path: path, text: text())
    switch handler {
    case .nobody: return
    case .standardError: Self.writeToStandardError("cairn: \(message)\n")
    case .closure(let handle): handle(message)
    }
  }

  /// Writes a text in one call, so that lines from different threads do not mix. Ignores failures,
  /// which cannot be reported.
  private static func writeToStandardError(_ text: String) {
    let bytes = Array(text.utf8)
    unsafe bytes.withUnsafeBytes { bytes in
      // SAFETY: the buffer is read only during the call.
      while unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count) < 0, errno == EINTR {}
    }
  }
}
