import Foundation
import NearCache
import NearCacheTrial
import Synchronization

/// One machine of a trial, in a separate process. Reads and writes until its input ends, and writes
/// its events to its output.
enum Worker {
  static func run(_ options: Options) async throws {
    let configuration = Workload.configuration(
      EngineEndpoint(port: try options.number("port")),
      lossPolicy: options.text("loss") == "limit" ? .expireAtLimit : .expireAtOnce)
    let directory = try options.required("directory")
    // The previous worker was killed, and the kernel may not have unlocked the directory yet.
    var near = configuration
    near.near.store.lockTimeout = .seconds(5)
    let cache = try await NearCache<String, String>.open(at: directory, near, coder: .string)
    let workload = Workload(
      machine: try options.number("machine"), of: try options.number("of"),
      incarnation: try options.number("incarnation"))
    let end = EndOfInput()
    _ = await workload.run(cache, EventLog(file: .standardOutput)) { end.hasCome }
    try await cache.close()
  }

  private final class EndOfInput: Sendable {
    private let flag = Atomic(false)
    var hasCome: Bool { flag.load(ordering: .relaxed) }

    init() {
      Thread { [self] in
        _ = try? FileHandle.standardInput.readToEnd()
        flag.store(true, ordering: .relaxed)
      }.start()
    }
  }
}
