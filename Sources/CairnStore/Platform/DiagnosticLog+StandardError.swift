#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension DiagnosticLog {
  /// Writes warnings and errors to standard error, one line each. The default.
  public static let standardError = DiagnosticLog(from: .warning) { message in
    writeToStandardError("cairn: \(message)\n")
  }

  /// Writes a text in one call, so that lines of several threads do not mix. Nobody can be told of a failure.
  private static func writeToStandardError(_ text: String) {
    let bytes = Array(text.utf8)
    unsafe bytes.withUnsafeBytes { bytes in
      // SAFETY: the buffer is read during the call only.
      while unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count) < 0, errno == EINTR {}
    }
  }
}
