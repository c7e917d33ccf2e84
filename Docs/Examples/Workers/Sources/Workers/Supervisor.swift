import Dispatch
import Foundation
import Synchronization

/// Starts the writer and the workers, and restarts those that die.
///
/// The processes are started rather than forked, because a fork copies only one thread and Swift's
/// runtime has more. In both cases, the kernel distributes connections among all processes that
/// listen on the port.
final class Supervisor: Sendable {
  private let options: Options
  private let state: Mutex<State>

  private struct State {
    /// The ports of the workers and the writer; 0 until the first process has reported its port.
    var ports: [Role: Int]
    var processes: [Process] = []
    var isStopping = false
  }

  private enum Role: String { case writer, worker }

  init(_ options: Options) {
    self.options = options
    state = Mutex(State(ports: [.worker: options.port, .writer: options.writePort]))
  }

  /// Runs until SIGTERM or SIGINT, then ends all processes. The workers answer their open requests,
  /// and the writer closes the cache.
  func run() async throws {
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    let sources = [SIGTERM, SIGINT].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { end.yield() }
      source.resume()
      return source
    }
    // The writer starts first, because workers can only follow an existing cache.
    try start(.writer)
    for _ in 0..<options.count { try start(.worker) }
    let ports = state.withLock { $0.ports }
    print("reading on \(ports[.worker] ?? 0), writing on \(ports[.writer] ?? 0)")
    fflush(nil)
    for await _ in ends { break }
    // A source ends with its last reference, and the optimizer may release references after their
    // last use.
    withExtendedLifetime(sources) {}
    let processes = state.withLock { state in
      state.isStopping = true
      return state.processes
    }
    for process in processes {
      try? (process.standardInput as? Pipe)?.fileHandleForWriting.close()
    }
    for process in processes { process.waitUntilExit() }
  }

  /// Starts a process and waits until it listens.
  private func start(_ role: Role) throws {
    let ports = state.withLock { $0.ports }
    let process = Process()
    process.executableURL = try URL(
      filePath: FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    process.arguments = [
      "--role", role.rawValue, "--directory", options.directory,
      "--port", "\(ports[.worker] ?? 0)", "--write-port", "\(ports[.writer] ?? 0)",
    ]
    let output = Pipe()
    process.standardOutput = output
    // The process exits when this pipe closes, even if the supervisor is killed.
    process.standardInput = Pipe()
    process.terminationHandler = { [self] ended in
      let isStopping = state.withLock { state in
        state.processes.removeAll { $0 === ended }
        return state.isStopping
      }
      if isStopping { return }
      Thread.detachNewThread { [self] in
        do { try start(role) } catch {
          FileHandle.standardError.write(Data("cannot start a \(role): \(error)\n".utf8))
        }
      }
    }
    try process.run()
    var line = Data()
    while !line.contains(UInt8(ascii: "\n")) {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { throw WorkerError.ended(role.rawValue) }
      line += data
    }
    let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0 == "\n" }
    guard words.count == 2, let port = Int(words[1]) else {
      throw WorkerError.ended(role.rawValue)
    }
    state.withLock { state in
      state.ports[role] = port
      if process.isRunning { state.processes.append(process) }
    }
  }
}

enum WorkerError: Error {
  /// The process exited before it listened.
  case ended(String)
}
