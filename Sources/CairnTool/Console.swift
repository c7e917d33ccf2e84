import CairnStore
import CommandText
import Glibc

/// Where a command speaks: results on standard output, all else on standard error.
///
/// Used by one thread. Output is buffered until `finish()`, so a result of many lines takes few
/// system calls.
final class Console {
  /// The command that speaks, or `nil` before it is known.
  var command: Command?
  /// The worst of what was reported by `report` so far.
  private(set) var reported = ExitStatus.done

  private let output = Descriptor.standardOutput
  private let errors = Descriptor.standardError
  private var buffer: [UInt8] = []
  private static let bufferByteLimit = 64 * 1024

  private var progress = ProgressLine()
  var showsProgress: Bool { progress.isShown }
  let outputIsTerminal: Bool
  /// The columns and rows of the terminal that standard output is; `nil` where it is none that can be drawn on.
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

  /// Hands on what is buffered.
  func finish() throws(CommandFailure) {
    let bytes = buffer
    buffer = []
    try put(bytes.rawSpan)
  }

  private func put(_ bytes: RawSpan) throws(CommandFailure) {
    do throws(SystemError) {
      try SystemCalls.write(bytes, to: output)
    } catch {
      // Whoever read the output has seen enough: that is no failure to speak of.
      if error.number == EPIPE { throw CommandFailure(.outputClosed, "") }
      throw CommandFailure(.failure, "standard output: \(error.reason)")
    }
  }

  /// Says on standard error what went wrong, on one line, and remembers that it did.
  func report(_ failure: CommandFailure) {
    reported = reported.combined(with: failure.status)
    if failure.status != .outputClosed { note(failure.message) }
  }

  /// Says something on standard error, on one line.
  func note(_ message: String) {
    clearProgress()
    let source = command.map { "cairn: \($0.rawValue): " } ?? "cairn: "
    // Messages hold paths, and those may hold anything.
    show(source + DisplayText.line(message))
  }

  /// Shows a line on the terminal in the place of the one before it.
  func showProgress(_ line: String) { progress.show(line) }

  func clearProgress() { progress.clear() }

  /// Writes the text of a help page to standard error.
  func show(_ page: Paragraphs) {
    page.lines(width: Terminal.textWidth(errors.number)).forEach(show)
  }

  /// Writes a line to standard error. There is nowhere to say that this failed.
  private func show(_ line: String) {
    try? SystemCalls.write(Array((line + "\n").utf8).rawSpan, to: errors)
  }
}
