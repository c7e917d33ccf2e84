import CairnLibC
import CairnStore
import CommandText

/// The output of a command: results on standard output, everything else on standard error.
///
/// For use by one thread. Output is buffered until `finish()`, so a result of many lines takes few
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
  /// Adds colour and bold to standard output.
  private(set) var painter = ColorChoice.auto.painter(for: STDOUT_FILENO)
  private var errorPainter = ColorChoice.auto.painter(for: STDERR_FILENO)
  /// The width of a report's lines in columns, or `nil` if the lines need not be broken.
  var reportWidth: Int? { outputIsTerminal ? Terminal.textWidth(output.number) : nil }
  /// The columns and rows of the terminal on standard output. `nil` if standard output is not a
  /// terminal, or if the terminal cannot be drawn on.
  var screenSize: (columns: Int, rows: Int)? {
    Terminal.isDumb ? nil : Terminal.size(output.number)
  }

  init() {
    outputIsTerminal = Terminal.isTerminal(output.number)
  }

  func setColor(_ choice: ColorChoice) {
    painter = choice.painter(for: output.number)
    errorPainter = choice.painter(for: errors.number)
  }

  /// Writes the text of a help page, wrapped to the available width.
  func print(_ page: Paragraphs) throws(CommandFailure) {
    let word = "usage:"
    for line in page.lines(width: Terminal.textWidth(output.number)) {
      try print(
        line.hasPrefix(word)
          ? painter(word, .heading) + line.dropFirst(word.count) : line)
    }
  }

  /// Writes a line of a report, broken between words to fit the terminal.
  ///
  /// - Parameter indent: the indent of all lines but the first, in columns.
  func tell(_ text: String, indent: Int = 2, style: Style? = nil) throws(CommandFailure) {
    for line in reportWidth.map({ broken(text, width: $0, indent: indent) }) ?? [text] {
      try print(painter(line, style))
    }
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
      // The reader of the output has closed it, which is not a failure to report.
      if error.number == EPIPE { throw CommandFailure(.outputClosed, "") }
      throw CommandFailure(.failure, "standard output: \(error.reason)")
    }
  }

  /// Reports a failure on standard error and remembers it.
  func report(_ failure: CommandFailure) {
    reported = reported.combined(with: failure.status)
    if failure.status != .outputClosed { note(failure.message, style: .error) }
  }

  /// Writes a note to standard error: on one line, or broken between words to fit a terminal.
  ///
  /// - Parameter style: the style of the command's name before the message.
  func note(_ message: String, style: Style? = .warning) {
    clearProgress()
    let source = command.map { "cairn: \($0.rawValue):" } ?? "cairn:"
    // Messages contain paths, which may contain any bytes.
    let text = source + " " + DisplayText.line(message)
    let width = Terminal.isTerminal(errors.number) ? Terminal.textWidth(errors.number) : .max
    for line in broken(text, width: width) {
      show(
        line.hasPrefix(source)
          ? errorPainter(source, style) + line.dropFirst(source.count) : line)
    }
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
