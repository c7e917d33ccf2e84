import CairnLibC

/// A program that a test runs, with its input and output in files, so that no pipe can fill up.
struct ChildProcess {
  /// How a program ended and what it wrote.
  struct Outcome {
    /// The exit status, or 128 and the number of the signal that ended it.
    let status: Int32
    let output: [UInt8]
    let errors: String

    var text: String { String(decoding: output, as: UTF8.self) }
    var lines: [String] { text.split(separator: "\n").map(String.init) }
  }

  private let identifier: pid_t
  private let files: TemporaryDirectory

  /// Starts a program. It has no environment but the given variables, and its arguments are bytes.
  init(
    _ executable: String, _ arguments: [[UInt8]], input: [UInt8] = [], environment: [String] = []
  ) throws {
    files = try TemporaryDirectory()
    try files.makeFile("input", input)
    identifier = try spawn(
      executable, arguments, environment: environment,
      files: [
        (0, files("input"), O_RDONLY), (1, files("output"), O_WRONLY | O_CREAT),
        (2, files("errors"), O_WRONLY | O_CREAT),
      ])
  }

  func send(_ signal: Int32) { _ = CairnLibC.kill(identifier, signal) }

  /// Waits for the end of the program.
  func wait() throws -> Outcome {
    let status = try waitForEnd(of: identifier)
    let signal = status & 0x7F
    return Outcome(
      status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
      output: try files.contents("output"),
      errors: String(decoding: try files.contents("errors"), as: UTF8.self))
  }

  /// Runs a program to its end.
  static func run(
    _ executable: String, _ arguments: [[UInt8]], input: [UInt8] = [], environment: [String] = []
  ) throws -> Outcome {
    try ChildProcess(executable, arguments, input: input, environment: environment).wait()
  }
}

/// The failure of a call that a test needs.
struct SupportError: Error {
  let call: String
  let number: Int32
}
