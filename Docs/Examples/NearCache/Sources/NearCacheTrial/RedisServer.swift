import Foundation
import NearCache
import Synchronization

/// A separate redis-server or valkey-server, on a free port of this machine, with its files in its
/// own directory.
///
/// Acknowledged writes survive a kill of the server. The server ends with the process that started
/// it.
package final class RedisServer: Sendable {
  private struct Running {
    var shell: Process
    var input: Pipe
    var server: Int32
  }

  /// The path of the program, or `nil` if it is not installed.
  package static let executable: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    for name in ["redis-server", "valkey-server"] {
      for folder in folders + ["/usr/bin", "/usr/local/bin"] {
        let path = "\(folder)/\(name)"
        if FileManager.default.isExecutableFile(atPath: path) { return path }
      }
    }
    return nil
  }()

  /// The message of skipped tests.
  package static let missing: String =
    "redis-server is missing: install Debian's package redis-server"

  package let port: Int
  private let directory: String
  private let isLogged: Bool
  private let running = Mutex<Running?>(nil)

  /// - Parameters:
  ///   - directory: the server's directory, which is created.
  ///   - isLogged: whether the server keeps its data when it is killed.
  package init(directory: String, isLogged: Bool = true) throws {
    self.directory = directory
    self.isLogged = isLogged
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let socket = try Socket.listening()
    port = socket.port
    socket.close()
  }

  package var endpoint: EngineEndpoint { EngineEndpoint(port: port) }

  /// Starts the server and waits until it answers.
  package func start() async throws {
    guard let executable = Self.executable else { throw TrialFailure(Self.missing) }
    try running.withLock { running in
      let shell = Process()
      let (input, output) = (Pipe(), Pipe())
      shell.executableURL = URL(filePath: "/bin/sh")
      // When this process ends, `cat` ends too, and the shell kills the server.
      shell.arguments =
        [
          "-c", "\"$@\" >/dev/null & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null", "sh",
          executable, "--port", "\(port)", "--bind", "127.0.0.1", "--dir", directory, "--save", "",
          "--appendonly", isLogged ? "yes" : "no", "--appendfsync", "no", "--logfile",
          "\(directory)/log",
        ]
      (shell.standardInput, shell.standardOutput) = (input, output)
      try shell.run()
      let line = output.fileHandleForReading.availableData
      let text = String(decoding: line, as: UTF8.self).trimmingCharacters(
        in: .whitespacesAndNewlines)
      guard let server = Int32(text) else { throw TrialFailure("not a process number: \(text)") }
      running = Running(shell: shell, input: input, server: server)
    }
    let client = EngineClient(EngineConfiguration(endpoint: endpoint))
    defer { client.close() }
    let start = ContinuousClock.now
    while (try? await client.reply(to: Command("PING"))) != .status("PONG") {
      if .now - start > .seconds(20) {
        throw TrialFailure("the server does not answer on port \(port): see \(directory)/log")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Kills the server and waits until it has exited.
  package func kill() {
    running.withLock { running in
      guard let process = running else { return }
      send(SIGKILL, to: process.server)
      try? process.input.fileHandleForWriting.close()
      process.shell.waitUntilExit()
      running = nil
    }
  }

  /// Stops the server, with all connections open.
  package func suspend() { signal(SIGSTOP) }

  package func resume() { signal(SIGCONT) }

  private func signal(_ number: Int32) {
    running.withLock { running in if let running { send(number, to: running.server) } }
  }
}
