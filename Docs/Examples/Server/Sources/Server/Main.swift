import Cairn
import CairnHummingbird
import CairnLogging
import Foundation
import Hummingbird
import Logging

/// A server with sessions and counters that survive a restart, and pages that are computed once for
/// all requests.
@main
enum Main {
  static func main() async throws {
    guard let options = Options(CommandLine.arguments.dropFirst()) else {
      print("usage: Server \(Options.usage)")
      exit(2)
    }
    // The caches report to the server's own log.
    let log = DiagnosticLog(Logger(label: "cairn"))
    let persist = try await CairnPersistDriver.open(
      path: options.directory + "/persist", log: log)
    let pages = try await ResponseCache.open(
      path: options.directory + "/pages", countLimit: 2_000, memoryByteLimit: 4 << 20, log: log)

    let router = Router()
    // An acknowledged count survives a power loss.
    addCounters(to: router, persist: persist)
    // A power loss can lose the last second of session writes; a crash of the server loses nothing.
    addSessions(
      to: router, persist: persist.writing(.interval(.seconds(1))),
      lifetime: .seconds(options.sessionSeconds))
    // Pages can be recreated.
    addPages(to: router, cache: pages, lifetime: .seconds(options.pageSeconds))
    router.get("statistics") { _, _ in
      try Statistics(pages: pages.cache.statistics(), persist: persist.cache.statistics())
    }
    // For Prometheus. A prefix names each cache; its store's metrics share the prefix.
    router.get("metrics") { _, _ in
      let text =
        try pages.cache.statistics().prometheus(prefix: "pages")
        + pages.cache.storeStatistics().prometheus(prefix: "pages")
        + persist.cache.statistics().prometheus(prefix: "persist")
        + persist.cache.storeStatistics().prometheus(prefix: "persist")
      return Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    let app = Application(
      router: router,
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: options.port)),
      services: [persist, pages])
    try await app.runService()
  }
}

/// Counters of the page cache since the server started, and the size of the persist cache.
struct Statistics: ResponseEncodable {
  var pages: [String: Double]
  var persist: [String: Int]

  init(pages: CacheStatistics, persist: CacheStatistics) {
    self.pages = Dictionary(uniqueKeysWithValues: pages.metrics.map { ($0.name, $0.value) })
    self.persist = [
      "count": persist.count, "liveBytes": persist.liveByteCount,
      "allocatedBytes": persist.allocatedByteCount,
    ]
  }
}

/// The command-line options.
struct Options {
  static let usage = "--directory PATH [--port N] [--session-seconds N] [--page-seconds N]"

  var directory = ""
  var port = 8080
  var sessionSeconds = 3600
  var pageSeconds = 60

  /// - Returns: `nil` if the arguments are invalid.
  init?(_ arguments: ArraySlice<String>) {
    guard arguments.count.isMultiple(of: 2) else { return nil }
    var arguments = arguments
    while let name = arguments.popFirst(), let value = arguments.popFirst() {
      let number = Int(value).flatMap { $0 > 0 ? $0 : nil }
      switch (name, number) {
      case ("--directory", _): directory = value
      case ("--port", let number?): port = number
      case ("--session-seconds", let number?): sessionSeconds = number
      case ("--page-seconds", let number?): pageSeconds = number
      default: return nil
      }
    }
    if directory.isEmpty { return nil }
  }
}
