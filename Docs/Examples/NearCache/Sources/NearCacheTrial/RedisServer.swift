import Foundation
import NearCache
import Synchronization

/// A redis-server or valkey-server of one's own, on a port of this machine, with its files in a directory of its own.
///
/// What it has acknowledged survives its being killed. It ends with the process that has started it.
package final class RedisServer: Sendable {
  private struct Running {
    var shell: Process
    var input: Pipe
    var server: Int32
  }

  /// Where the program is; `nil`: nowhere.
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

  /// What tests say that are skipped.
  package static let missing: String =
    "redis-server is missing: install Debian's package redis-server"

  package let port: Int
  private let directory: String
  private let isLogged: Bool
  private let running = Mutex<Running?>(nil)

  /// - Parameters:
  ///   - directory: it is made.
  ///   - isLogged: whether it keeps what it has when it is killed.
  package init(directory: String, isLogged: Bool = true) throws {
    self.directory = directory
    self.isLogged = isLogged
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let socket = try Socket.listening()
    port = socket.port
    socket.close()
  }

  package var endpoint: EngineEndpoint { EngineEndpoint(port: port) }

  /// Starts it, and waits until it answers.
  package func start() async throws {
    guard let executable = Self.executable else { throw TrialFailure(Self.missing) }
    try running.withLock { running in
      let shell = Process()
      let (input, output) = (Pipe(), Pipe())
      shell.executableURL = URL(filePath: "/bin/sh")
      // Where this process ends, so does `cat`.
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
      guard let server = Int32(text) else { throw TrialFailure("no number of a process: \(text)") }
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

  /// Kills it, and waits for its end.
  package func kill() {
    running.withLock { running in
      guard let process = running else { return }
      send(SIGKILL, to: process.server)
      try? process.input.fileHandleForWriting.close()
      process.shell.waitUntilExit()
      running = nil
    }
  }

  /// Has it do nothing, with all connections open.
  package func suspend() { signal(SIGSTOP) }

  package func resume() { signal(SIGCONT) }

  private func signal(_ number: Int32) {
    running.withLock { running in if let running { send(number, to: running.server) } }
  }
}
