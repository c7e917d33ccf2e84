import Cairn
import CairnPersist
import Hummingbird

/// A server with sessions and counters that survive a restart, and pages that are made once for all who ask.
@main
enum Main {
  static func main() async throws {
    let options = try Options(CommandLine.arguments.dropFirst())
    let persist = try await CairnPersistDriver.open(path: options.directory + "/persist")
    let pages = try await ResponseCache.open(
      path: options.directory + "/pages", countLimit: 2_000, memoryByteLimit: 4 << 20)

    let router = Router()
    // A counter that was told to somebody survives a power loss.
    addCounters(to: router, persist: persist)
    // Of sessions, a power loss may take the last second; a crash of the server takes nothing.
    addSessions(
      to: router, persist: persist.writing(.interval(.seconds(1))),
      lifetime: .seconds(options.sessionSeconds))
    // Pages can be made again.
    addPages(to: router, cache: pages, lifetime: .seconds(options.pageSeconds))
    router.get("statistics") { _, _ in
      try Statistics(pages: pages.cache.statistics(), persist: persist.cache.statistics())
    }

    let app = Application(
      router: router,
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: options.port)),
      services: [persist, pages])
    try await app.runService()
  }
}

/// What the caches have done since the server was started, and what they hold.
struct Statistics: ResponseEncodable {
  var pages: [String: UInt64]
  var persist: [String: Int]

  init(pages: TieredCacheStatistics, persist: DiskCacheStatistics) {
    self.pages = Dictionary(uniqueKeysWithValues: pages.metrics.map { ($0.name, $0.value) })
    self.persist = [
      "count": persist.heldCount, "liveBytes": persist.liveByteCount,
      "allocatedBytes": persist.allocatedByteCount,
    ]
  }
}

/// What the command line says: `--directory PATH [--port N] [--session-seconds N] [--page-seconds N]`.
struct Options {
  struct Usage: Error {}

  var directory = ""
  var port = 8080
  var sessionSeconds = 3600
  var pageSeconds = 60

  init(_ arguments: ArraySlice<String>) throws {
    var arguments = arguments
    func number(_ text: String) throws -> Int {
      guard let number = Int(text), number > 0 else { throw Usage() }
      return number
    }
    while let name = arguments.popFirst() {
      guard let value = arguments.popFirst() else { throw Usage() }
      switch name {
      case "--directory": directory = value
      case "--port": port = try number(value)
      case "--session-seconds": sessionSeconds = try number(value)
      case "--page-seconds": pageSeconds = try number(value)
      default: throw Usage()
      }
    }
    if directory.isEmpty { throw Usage() }
  }
}
