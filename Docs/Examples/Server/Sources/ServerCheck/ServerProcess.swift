import Foundation

/// The server under test: one process after another, on the same directory.
final class ServerProcess {
  private let executable: String
  private let arguments: [String]
  private let log: FileHandle
  private var process = Process()

  init(executable: String, arguments: [String], log: URL) throws {
    (self.executable, self.arguments) = (executable, arguments)
    self.log = try FileHandle(forWritingTo: newFile(log))
  }

  var identifier: Int32 { process.processIdentifier }

  /// Starts the server and waits for its first answer.
  ///
  /// - Returns: how long the first answer took.
  func start(client: Client) async throws -> Duration {
    process = Process()
    process.executableURL = URL(filePath: executable)
    process.arguments = arguments
    (process.standardOutput, process.standardError) = (log, log)
    let began = ContinuousClock.now
    try process.run()
    while true {
      if await client.isAnswered("/counters/none") { return .now - began }
      if !process.isRunning {
        throw CheckFailure("the server exited with \(process.terminationStatus)")
      }
      if .now - began > .seconds(60) { throw CheckFailure("the server does not answer") }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Sends a signal to the server and waits until it has exited.
  ///
  /// - Returns: the exit status, or `nil` if the signal killed the server.
  func end(by signal: Int32) async throws -> Int32? {
    kill(identifier, signal)
    let began = ContinuousClock.now
    while process.isRunning {
      if .now - began > .seconds(60) { throw CheckFailure("the server does not exit") }
      try await Task.sleep(for: .milliseconds(1))
    }
    return process.terminationReason == .exit ? process.terminationStatus : nil
  }

  /// Kills the server if it is running.
  func abandon() { if process.isRunning { kill(identifier, SIGKILL) } }
}

/// A wrk process that sends one kind of request for the whole run.
final class LoadTool {
  /// wrk's results, with latencies in microseconds.
  struct Result: Decodable {
    var requests: Int
    var acknowledged: Int
    var unexpected: Int
    /// The status of the last unexpected answer.
    var unexpectedStatus: Int
    /// Answers after more than 20 s. The latencies do not include them.
    var late: Int
    var p50: Int
    var p90: Int
    var p99: Int
    var p999: Int
    var max: Int
  }

  static let connectionCount = 16
  let kind: String
  private let process = Process()
  private let output: URL

  init(
    kind: String, script: String, url: String, seconds: Int, sessionSeconds: Int, directory: URL
  ) throws {
    self.kind = kind
    output = try newFile(directory.appending(path: "wrk-\(kind)"))
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "wrk", "-t", "1", "-c", "\(Self.connectionCount)", "-d", "\(seconds)", "--timeout", "20",
      "-s",
      script, url, "--", kind, "\(sessionSeconds)",
    ]
    process.standardOutput = try FileHandle(forWritingTo: output)
    try process.run()
  }

  /// Waits until wrk has exited.
  func result() async throws -> Result {
    while process.isRunning { try await Task.sleep(for: .milliseconds(50)) }
    let text = try String(contentsOf: output, encoding: .utf8)
    guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix("RESULT ") }) else {
      throw CheckFailure("wrk printed no result: \(text)")
    }
    return try JSONDecoder().decode(Result.self, from: Data(line.dropFirst(7).utf8))
  }

  func abandon() { if process.isRunning { process.terminate() } }
}

/// Creates an empty file.
private func newFile(_ url: URL) throws -> URL {
  try Data().write(to: url)
  return url
}
