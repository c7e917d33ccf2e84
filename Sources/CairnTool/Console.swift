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

  let errorsAreTerminal: Bool
  /// Whether a line of progress stands on the terminal and must give way to a message.
  private var showsProgress = false

  init() {
    errorsAreTerminal = SystemCalls.isTerminal(errors)
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
    // Messages hold paths, and those may hold anything; what was escaped already has no controls.
    let line = message.unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control ? "?" : String(scalar)
    }
    show(source + line.joined() + "\n")
  }

  /// Shows a line on the terminal in the place of the one before it.
  func showProgress(_ line: String) {
    guard errorsAreTerminal else { return }
    show("\r\u{1B}[K" + line)
    showsProgress = true
  }

  func clearProgress() {
    guard showsProgress else { return }
    show("\r\u{1B}[K")
    showsProgress = false
  }

  /// Writes to standard error. There is nowhere to say that this failed.
  func show(_ text: String) { try? SystemCalls.write(Array(text.utf8).rawSpan, to: errors) }
}
