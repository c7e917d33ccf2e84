import Cairn
import Foundation

/// A server of several processes. One process writes a cache; the others read it and share a port.
///
///     workers --directory /tmp/pages.cairn --port 8080 --write-port 8081 --count 2
@main
enum Main {
  static func main() async throws {
    guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
      print("usage: workers \(Options.usage)")
      exit(2)
    }
    switch options.role {
    case "supervisor": try await Supervisor(options).run()
    case "writer": try await write(options)
    default: try await read(options)
    }
  }

  /// Opens the cache for writing, and serves `PUT` and `DELETE` on a separate port.
  private static func write(_ options: Options) async throws {
    let configuration = DiskCacheConfiguration(byteLimit: 1 << 30)
    let cache = try await DiskCache<String, String>.open(
      .path(options.directory), configuration: configuration)
    let server = try await HTTPServer.start(port: options.writePort, sharesPort: false) {
      request in
      let key = request.path
      switch request.method {
      case .PUT: return .later { try await cache.setValue(request.body, forKey: key) }
      case .DELETE: return .later { try await cache.removeValue(forKey: key) }
      default: return .now(.methodNotAllowed, "")
      }
    }
    await Lifeline.hold(announcing: server.port)
    try await server.stop()
    try await cache.close()
  }

  /// Follows the cache, and serves `GET` on the port that all workers share.
  private static func read(_ options: Options) async throws {
    let configuration = DiskCacheConfiguration(
      memory: MemoryConfiguration(countLimit: 10_000))
    let cache = try await DiskCache<String, String>.open(
      following: .path(options.directory), configuration: configuration)
    let server = try await HTTPServer.start(port: options.port, sharesPort: true) { request in
      guard request.method == .GET else { return .now(.methodNotAllowed, "") }
      // A read takes microseconds, so it may run on the event loop.
      guard let value = try cache.value(forKey: request.path) else { return .now(.notFound, "") }
      return .now(.ok, value)
    }
    await Lifeline.hold(announcing: server.port)
    try await server.stop()
    try await cache.close()
  }
}

/// The command-line options.
struct Options: Sendable {
  static let usage =
    "--directory PATH [--port N] [--write-port N] [--count N]; port 0 means any free port"

  var role = "supervisor"
  var directory = ""
  var port = 8080
  var writePort = 8081
  var count = 2

  /// - Returns: `nil` if the arguments are invalid.
  init?(_ arguments: [String]) {
    guard arguments.count.isMultiple(of: 2) else { return nil }
    for index in stride(from: 0, to: arguments.count, by: 2) {
      let value = arguments[index + 1]
      switch (arguments[index], Int(value)) {
      case ("--role", _): role = value
      case ("--directory", _): directory = value
      case ("--port", let number?) where (0...65_535).contains(number): port = number
      case ("--write-port", let number?) where (0...65_535).contains(number): writePort = number
      case ("--count", let number?) where (1...256).contains(number): count = number
      default: return nil
      }
    }
    if directory.isEmpty { return nil }
  }
}

/// The pipes to the supervisor, which started this process.
enum Lifeline {
  /// Reports the port, then waits until the supervisor closes the pipe or dies.
  static func hold(announcing port: Int) async {
    FileHandle.standardOutput.write(Data("listening \(port)\n".utf8))
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while readLine() != nil {}
        continuation.resume()
      }
    }
  }
}
