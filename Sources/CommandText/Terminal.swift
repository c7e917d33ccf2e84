import Glibc

/// Standard output or standard error, as far as it is a terminal.
package enum Terminal {
  /// How wide text is where no terminal says it.
  private static let defaultWidth = 80
  /// Longer lines are hard to read.
  private static let widestText = 100

  package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The terminal's columns, or `nil` where it is none.
  package static func columns(_ descriptor: Int32) -> Int? { size(descriptor).map(\.columns) }

  /// The terminal's columns and rows, or `nil` where it is none. One that does not tell its rows has 24.
  package static func size(_ descriptor: Int32) -> (columns: Int, rows: Int)? {
    var size = winsize()
    // SAFETY: the structure lives across the call.
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return nil
    }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
  }

  /// Whether the terminal that the program runs on obeys no control sequences.
  package static var isDumb: Bool {
    unsafe getenv("TERM").map { unsafe strcmp($0, "dumb") == 0 } ?? false
  }

  /// How wide text should be that is read there.
  package static func textWidth(_ descriptor: Int32) -> Int {
    columns(descriptor).map { min(max($0, 20), widestText) } ?? defaultWidth
  }
}

/// One line on standard error that says how far something is, while someone is looking: only a terminal
/// gets it, each line in the place of the one before, and none is left at the end.
package struct ProgressLine {
  /// Whether anybody would see it.
  package let isShown: Bool
  private var isThere = false

  package init() {
    isShown = Terminal.isTerminal(STDERR_FILENO) && !Terminal.isDumb
  }

  /// Shows a line in the place of the one before it, as much of it as fits.
  package mutating func show(_ line: String) {
    guard isShown else { return }
    write("\r\u{1B}[K" + line.prefix((Terminal.columns(STDERR_FILENO) ?? 80) - 1))
    isThere = true
  }

  /// Takes the line away.
  package mutating func clear() {
    guard isThere else { return }
    write("\r\u{1B}[K")
    isThere = false
  }

  /// There is nowhere to say that this failed.
  private func write(_ text: String) {
    var text = text
    // SAFETY: the call reads within the buffer, which lives until the closure returns.
    text.withUTF8 { bytes in unsafe _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  }
}
