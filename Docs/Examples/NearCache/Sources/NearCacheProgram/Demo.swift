import Cairn
import Foundation
import NearCache
import NearCacheTrial

/// Shows what three machines, all in one process, read while values change and the server fails.
enum Demo {
  static func run() async throws {
    let directory = NSTemporaryDirectory() + "/near-cache-demo-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let server = try RedisServer(directory: directory + "/server")
    try await server.start()
    defer { server.kill() }
    var configuration = Workload.configuration(server.endpoint)
    configuration.loadPolicy.staleOnError = .seconds(60)
    var machines: [NearCache<String, String>] = []
    for name in ["a", "b", "c"] {
      machines.append(
        try await .open(at: "\(directory)/\(name).cairn", configuration, coder: .string))
    }
    let counter = OriginCounter()
    func read(_ what: String) async {
      var texts: [String] = []
      for machine in machines {
        do {
          let answer = try await machine.answer(forKey: "/", lifetime: .seconds(600)) {
            await counter.make()
          }
          texts.append(answer.map { "\($0.value) (\($0.source))" } ?? "none")
        } catch {
          texts.append("\(error)")
        }
      }
      print("\(what):\n  \(texts.joined(separator: "\n  "))")
    }
    await read("first read, loaded once from the origin")
    await read("again")
    await read("again")
    try await machines[0].setValue("written by a", forKey: "/")
    for machine in machines { try await machine.catchUp() }
    await read("a has written")
    await read("again")
    server.kill()
    try await Task.sleep(for: .milliseconds(100))
    await read("the server was killed")
    try await server.start()
    while machines.contains(where: { $0.invalidationOutage != nil }) {
      try await Task.sleep(for: .milliseconds(10))
    }
    try await Task.sleep(for: .milliseconds(200))
    await read("the server is back")
    for machine in machines { try await machine.close() }
  }

  private actor OriginCounter {
    private var count = 0

    func make() -> String {
      count += 1
      return "load \(count) from the origin"
    }
  }
}
