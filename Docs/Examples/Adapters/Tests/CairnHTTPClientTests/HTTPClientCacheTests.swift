import AsyncHTTPClient
import Cairn
import CairnHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Synchronization
import Testing

@Suite("The cache of an HTTP client")
final class HTTPClientCacheTests: Sendable {
  private let path = NSTemporaryDirectory() + "/http-\(UUID().uuidString)"
  private let clock = TestClock()

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func open(
    isShared: Bool = true, noteFailure: @escaping @Sendable (any Error) -> Void = { _ in }
  ) async throws -> HTTPClientCache {
    var configuration = HTTPClientCache.configuration(
      byteLimit: 64 << 20, staleIfError: .seconds(600))
    configuration.store.clock = clock
    configuration.store.durability = .process
    return try await .open(
      path: path, configuration: configuration, isShared: isShared, noteFailure: noteFailure)
  }

  /// Runs an origin, and a cache of its answers.
  private func run(
    isShared: Bool = true, _ origin: Origin,
    _ body: @Sendable (HTTPClientCache, String) async throws -> Void
  ) async throws {
    let http = try await open(isShared: isShared)
    do { try await origin.run { try await body(http, $0 + "/page") } } catch {
      try await http.close()
      throw error
    }
    try await http.close()
  }

  private static let headers: [[String: String]] = [
    ["Cache-Control": "max-age=60"],
    ["Cache-Control": "public, max-age=\"60\", x=1"],
    ["Cache-Control": "max-age=1, s-maxage=60"],
    ["Cache-Control": "max-age=100", "Age": "40"],
  ]

  @Test("A response is fresh for the time in its headers", arguments: headers)
  func freshness(headers: [String: String]) async throws {
    let origin = Origin { _ in .text("page", headers) }
    try await run(origin) { (http, url) async throws in
      let first = headers["Age"].flatMap { Int($0) } ?? 0
      for seconds in [0, 30, 29] {
        clock.advance(by: .seconds(seconds))
        #expect(try await http.get(url).text == "page")
      }
      #expect(try await http.get(url) == Seen("page", age: "\(first + 59)"))
      #expect(origin.asked.count == 1)
      clock.advance(by: .seconds(2))
      #expect(try await http.get(url).text == "page")
      #expect(origin.asked.count == 2)
    }
  }

  @Test("Without a max-age, the time from Date to Expires counts")
  func expires() async throws {
    let origin = Origin { _ in
      let formatter = DateFormatter()
      formatter.locale = Locale(identifier: "en_US_POSIX")
      formatter.timeZone = TimeZone(identifier: "GMT")
      formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
      // The server adds the current date.
      return .text("page", ["Expires": formatter.string(from: Date(timeIntervalSinceNow: 3600))])
    }
    try await run(origin) { [clock] (http, url) async throws in
      for (seconds, count) in [(0, 1), (3500, 1), (200, 2)] {
        clock.advance(by: .seconds(seconds))
        #expect(try await http.get(url).text == "page")
        #expect(origin.asked.count == count)
      }
    }
  }

  @Test("Responses survive a restart")
  func restart() async throws {
    let origin = Origin { _ in .text("page", ["Cache-Control": "max-age=60"]) }
    try await origin.run { [self] url in
      for _ in 1...2 {
        let http = try await open()
        #expect(try await http.get(url + "/page").text == "page")
        try await http.close()
      }
    }
    #expect(origin.asked.count == 1)
  }

  @Test(
    "Responses that must not be stored are not stored",
    arguments: [
      ["Cache-Control": "no-store, max-age=60"], ["Cache-Control": "private, max-age=60"],
      ["Cache-Control": "max-age=60", "Vary": "*"], ["Expires": "0"], [:],
    ])
  func unkept(headers: [String: String]) async throws {
    let origin = Origin { _ in .text("page", headers) }
    try await run(origin) { (http, url) async throws in
      for _ in 1...3 { #expect(try await http.get(url) == Seen("page")) }
      #expect(origin.asked.count == 3)
      #expect(try http.cache.count() == 0)
    }
  }

  @Test(
    "A private cache stores private responses; a shared cache stores none that needed a password"
  )
  func users() async throws {
    let origin = Origin { _ in .text("page", ["Cache-Control": "private, max-age=60"]) }
    try await run(isShared: false, origin) { (http, url) async throws in
      for _ in 1...3 { #expect(try await http.get(url, ["Authorization": "x"]).text == "page") }
      #expect(origin.asked.count == 1)
    }
    let other = Origin { _ in .text("page", ["Cache-Control": "max-age=60"]) }
    try await run(other) { (http, url) async throws in
      for _ in 1...3 { #expect(try await http.get(url, ["Authorization": "x"]).text == "page") }
      #expect(other.asked.count == 3)
    }
  }

  @Test("An expired response is validated by its tag and date, and a 304 renews it")
  func validation() async throws {
    let headers = [
      "Cache-Control": "max-age=60", "ETag": "\"1\"",
      "Last-Modified": "Fri, 15 Jan 2027 07:00:00 GMT",
    ]
    let origin = Origin { request in
      request.headerFields[.ifNoneMatch] == "\"1\""
        ? .text("", headers, status: .notModified) : .text("page", headers)
    }
    try await run(origin) { (http, url) async throws in
      for _ in 1...3 {
        #expect(try await http.get(url).text == "page")
        #expect(try await http.get(url).text == "page")
        clock.advance(by: .seconds(61))
      }
      #expect(origin.asked.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"1\"", "\"1\""])
      #expect(
        origin.asked.last?.headerFields[.ifModifiedSince] == "Fri, 15 Jan 2027 07:00:00 GMT")
      let metrics = try http.cache.statistics().metrics
      #expect(metrics.contains { $0.name == "loads.notModified" && $0.value == 2 })

      // New headers of a 304 are stored.
      origin.answer = { _ in
        .text("", ["Cache-Control": "max-age=600", "ETag": "\"1\""], status: .notModified)
      }
      #expect(try await http.get(url).text == "page")
      clock.advance(by: .seconds(599))
      #expect(try await http.get(url).text == "page")
      #expect(origin.asked.count == 4)

      // A different response replaces the old one.
      clock.advance(by: .seconds(2))
      origin.answer = { _ in .text("new", ["Cache-Control": "max-age=60"]) }
      #expect(try await http.get(url).text == "new")
    }
  }

  @Test("no-cache is validated each time")
  func noCache() async throws {
    let headers = ["Cache-Control": "no-cache", "ETag": "\"1\""]
    let origin = Origin { request in
      request.headerFields[.ifNoneMatch] == nil
        ? .text("page", headers) : .text("", headers, status: .notModified)
    }
    try await run(origin) { (http, url) async throws in
      for _ in 1...3 { #expect(try await http.get(url).text == "page") }
      #expect(origin.asked.count == 3)
      #expect(origin.asked.dropFirst().allSatisfy { $0.headerFields[.ifNoneMatch] == "\"1\"" })
    }
  }

  @Test("Requests that differ in a header named by Vary have separate responses")
  func vary() async throws {
    let origin = Origin { request in
      .text(
        request.headerFields[.acceptLanguage] ?? "none",
        ["Cache-Control": "max-age=60", "Vary": "Accept-Language, Accept-Encoding"])
    }
    try await run(origin) { (http, url) async throws in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<60 {
          let language = ["en", "de", "fr"][number % 3]
          group.addTask { () async throws in
            #expect(try await http.get(url, ["Accept-Language": language]).text == language)
          }
        }
        try await group.waitForAll()
      }
      let count = origin.asked.count
      for language in ["en", "de", "fr"] {
        #expect(try await http.get(url, ["accept-language": language]).text == language)
      }
      #expect(origin.asked.count == count)
      #expect(try await http.get(url).text == "none")
      #expect(origin.asked.count == count + 1)
    }
  }

  @Test("Simultaneous requests cause one request to the origin")
  func singleFlight() async throws {
    let origin = Origin { _ in
      try await Task.sleep(for: .milliseconds(50))
      return .text("page", ["Cache-Control": "max-age=60"])
    }
    try await run(origin) { (http, url) async throws in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<100 {
          group.addTask { () async throws in
            #expect(try await http.get(url).text == "page")
          }
        }
        try await group.waitForAll()
      }
      #expect(origin.asked.count == 1)
    }
  }

  @Test("Each of several simultaneous requests gets its own server error")
  func serverErrors() async throws {
    let origin = Origin { request in
      try await Task.sleep(for: .milliseconds(50))
      let user = request.headerFields[.authorization] ?? "nobody"
      return .text("down for \(user)", [:], status: .serviceUnavailable)
    }
    try await run(origin) { (http, url) async throws in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for user in 0..<20 {
          group.addTask { () async throws in
            let seen = try await http.get(url, ["Authorization": "\(user)"])
            #expect(seen == Seen(503, "down for \(user)"))
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("While the origin fails or is down, the old response is returned up to its limit")
  func staleIfError() async throws {
    let http = try await open()
    let origin = Origin { request in
      switch request.path {
      case "/short":
        .text("short", ["Cache-Control": "max-age=60, stale-if-error=30", "ETag": "\"1\""])
      case "/strict": .text("strict", ["Cache-Control": "max-age=60, must-revalidate"])
      default: .text("page", ["Cache-Control": "max-age=60"])
      }
    }
    try await origin.run { [self] url in
      for path in ["/page", "/short", "/strict"] { _ = try await http.get(url + path) }
      origin.answer = { _ in .text("down", [:], status: .serviceUnavailable) }
      clock.advance(by: .seconds(80))
      #expect(try await http.get(url + "/page") == Seen("page", age: "80"))
      #expect(try await http.get(url + "/short") == Seen("short", age: "80"))
      #expect(try await http.get(url + "/strict") == Seen(503, "down"))
      clock.advance(by: .seconds(20))
      #expect(try await http.get(url + "/short") == Seen(503, "down"))
      #expect(try await http.get(url + "/other") == Seen(503, "down"))
      origin.answer = { _ in .text("new", ["Cache-Control": "max-age=60"]) }
      #expect(try await http.get(url + "/strict").text == "new")
      origin.answer = { _ in .text("down", [:], status: .badGateway) }
    }
    // The origin no longer listens. The default limit of this cache is 600 s.
    let url = "http://" + (try #require(origin.asked.first?.authority))
    clock.advance(by: .seconds(100))
    #expect(try await http.get(url + "/page", timeout: 1) == Seen("page", age: "200"))
    clock.advance(by: .seconds(1000))
    await #expect(throws: (any Error).self) {
      try await http.get(url + "/page", timeout: 1)
    }
    try await http.close()
  }

  @Test("Changing a page removes its responses; ranges and conditions bypass the cache")
  func otherRequests() async throws {
    let origin = Origin { request in
      request.method == .post
        ? .text("done", [:])
        : .text("page", ["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
    }
    try await run(origin) { (http, url) async throws in
      for language in ["en", "de"] { _ = try await http.get(url, ["Accept-Language": language]) }
      let count = origin.asked.count
      for header in ["Range": "bytes=0-1", "If-None-Match": "x", "Cache-Control": "no-store"] {
        _ = try await http.get(url, [header.key: header.value, "Accept-Language": "en"])
      }
      #expect(origin.asked.count == count + 3)
      var request = HTTPClientRequest(url: url)
      request.method = .POST
      request.body = .bytes([1, 2, 3])
      _ = try await http.execute(request, timeout: .seconds(30))
      for language in ["en", "de"] { _ = try await http.get(url, ["Accept-Language": language]) }
      #expect(origin.asked.count == count + 6)
    }
  }

  private func post(_ url: String, to http: HTTPClientCache) async throws -> UInt {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    return try await http.execute(request, timeout: .seconds(30)).status.code
  }

  @Test("If the responses of a changed page cannot be removed alone, all are removed")
  func tooManyRemovals() async throws {
    let failures = Mutex<[any Error]>([])
    let http = try await open { error in failures.withLock { $0.append(error) } }
    let origin = Origin { request in
      request.method == .post ? .text("done", [:]) : .text("page", ["Cache-Control": "max-age=60"])
    }
    try await origin.run { url in
      for path in ["/page", "/other"] { _ = try await http.get(url + path) }
      // Holds up the thread that removes the entries of removed tags.
      let (isHeld, end) = (Flag(), DispatchSemaphore(value: 0))
      let observation = http.cache.observe { _ in
        if isHeld.set() { return }
        _ = end.wait(timeout: .now() + 60)
      }
      defer {
        observation.cancel()
        end.signal()
      }
      try await http.remove(url: url + "/other")
      while !isHeld.isSet { try await Task.sleep(for: .milliseconds(5)) }
      for tag in 0..<999 { try await http.cache.removeAll(tagged: "\(tag)") }
      await #expect(
        throws: StoreError.invalidTag(reason: "1000 removed tags still have entries to remove")
      ) {
        try await http.remove(url: url + "/page")
      }
      #expect(try await self.post(url + "/page", to: http) == 200)
      #expect(failures.withLock { $0.count } == 1)
      let count = origin.asked.count
      _ = try await http.get(url + "/page")
      #expect(origin.asked.count == count + 1)
    }
    try await http.close()
  }

  @Test("A change does not fail because the cache fails, and the failure is reported")
  func failingRemoval() async throws {
    let failures = Mutex<[any Error]>([])
    let http = try await open { error in failures.withLock { $0.append(error) } }
    let origin = Origin { _ in .text("done", [:]) }
    try await http.close()
    try await origin.run { (url) async throws in
      #expect(try await self.post(url + "/page", to: http) == 200)
    }
    #expect(origin.asked.count == 1)
    #expect(failures.withLock { $0.count } == 2)
  }
}

private final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .acquiring) }

  /// - Returns: whether it was set before.
  func set() -> Bool { value.exchange(true, ordering: .acquiringAndReleasing) }
}
