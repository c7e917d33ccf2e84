import CairnStore
import CommandText
import Glibc

/// The output of a command: results on standard output, everything else on standard error.
///
/// Used by one thread. Output is buffered until `finish()`, so a result of many lines takes few
/// system calls.
final class Console {
  /// The running command, or `nil` before it is known.
  var command: Command?
  /// The worst status passed to `report` so far.
  private(set) var reported = ExitStatus.done

  private let output = Descriptor.standardOutput
  private let errors = Descriptor.standardError
  private var buffer: [UInt8] = []
  private static let bufferByteLimit = 64 * 1024

  private var progress = ProgressLine()
  var showsProgress: Bool { progress.isShown }
  let outputIsTerminal: Bool
  /// The columns and rows of the terminal on standard output; `nil` if it is no terminal or cannot
  /// be drawn on.
  var screenSize: (columns: Int, rows: Int)? {
    Terminal.isDumb ? nil : Terminal.size(output.number)
  }

  init() {
    outputIsTerminal = Terminal.isTerminal(output.number)
  }

  /// Writes the text of a help page, as wide as there is room.
  func print(_ page: Paragraphs) throws(CommandFailure) {
    for line in page.lines(width: Terminal.textWidth(output.number)) { try print(line) }
  }

  /// Writes text and a newline to standard output.
  func print(_ text: String) throws(CommandFailure) {
    buffer += text.utf8
    buffer.append(UInt8(ascii: "\n"))
    if buffer.count >= Console.bufferByteLimit { try finish() }
  }

  /// Writes bytes to standard output, and nothing else.
  func write(_ bytes: RawSpan) throws(CommandFailure) {
    try finish()
    try put(bytes)
  }

  /// Flushes the buffer.
  func finish() throws(CommandFailure) {
    let bytes = buffer
    buffer = []
    try put(bytes.rawSpan)
  }

  private func put(_ bytes: RawSpan) throws(CommandFailure) {
    do throws(SystemError) {
      try SystemCalls.write(bytes, to: output)
    } catch {
      // The reader of the output has seen enough: that is no failure to report.
      if error.number == EPIPE { throw CommandFailure(.outputClosed, "") }
      throw CommandFailure(.failure, "standard output: \(error.reason)")
    }
  }

  /// Reports a failure on standard error, on one line, and remembers it.
  func report(_ failure: CommandFailure) {
    reported = reported.combined(with: failure.status)
    if failure.status != .outputClosed { note(failure.message) }
  }

  /// Writes a note to standard error, on one line.
  func note(_ message: String) {
    clearProgress()
    let source = command.map { "cairn: \($0.rawValue): " } ?? "cairn: "
    // Messages contain paths, which may contain anything.
    show(source + DisplayText.line(message))
  }

  /// Shows a line on the terminal in place of the previous one.
  func showProgress(_ line: String) { progress.show(line) }

  func clearProgress() { progress.clear() }

  /// Writes the text of a help page to standard error.
  func show(_ page: Paragraphs) {
    page.lines(width: Terminal.textWidth(errors.number)).forEach(show)
  }

  /// Writes a line to standard error. A failure cannot be reported anywhere.
  private func show(_ line: String) {
    try? SystemCalls.write(Array((line + "\n").utf8).rawSpan, to: errors)
  }
}
