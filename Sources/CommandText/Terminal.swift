import CairnLibC

/// The terminal behind standard output or standard error, if there is one.
package enum Terminal {
  /// The width of text if no terminal gives one.
  private static let defaultWidth = 80
  /// Longer lines are hard to read.
  private static let widestText = 100

  package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The terminal's columns, or `nil` if the descriptor is not a terminal.
  package static func columns(_ descriptor: Int32) -> Int? { size(descriptor).map(\.columns) }

  /// The terminal's columns and rows, or `nil` if the descriptor is not a terminal. A terminal that
  /// reports no number of rows counts as having 24.
  package static func size(_ descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    // SAFETY: the structure outlives the call.
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return nil
    }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
  }

  /// Whether the program's terminal supports no control sequences.
  package static var isDumb: Bool { variable("TERM") == "dumb" }

  /// An environment variable, or `nil` if it is empty or not set.
  package static func variable(_ name: String) -> String? {
    // SAFETY: the text is copied at once, and the commands do not change their environment.
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// The width to which text for people is wrapped.
  package static func textWidth(_ descriptor: Int32) -> Int {
    columns(descriptor).map { min(max($0, 20), widestText) } ?? defaultWidth
  }
}

/// A progress line on standard error, shown only on a terminal. Each line replaces the previous
/// one, and none is left at the end.
package struct ProgressLine {
  /// Whether standard error is a terminal that can show the line.
  package let isShown: Bool
  private var isThere = false

  package init() {
    isShown = Terminal.isTerminal(STDERR_FILENO) && !Terminal.isDumb
  }

  /// Shows a line in place of the previous one, truncated to fit.
  package mutating func show(_ line: String) {
    guard isShown else { return }
    write("\r\u{1B}[K" + line.prefix((Terminal.columns(STDERR_FILENO) ?? 80) - 1))
    isThere = true
  }

  /// Removes the line.
  package mutating func clear() {
    guard isThere else { return }
    write("\r\u{1B}[K")
    isThere = false
  }

  /// A failure cannot be reported anywhere.
  private func write(_ text: String) {
    var text = text
    // SAFETY: the call reads within the buffer, which lives until the closure returns.
    text.withUTF8 { bytes in
      unsafe _ = CairnLibC.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
  }
}
