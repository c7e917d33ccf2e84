/// A page. Any `Codable` type can be cached.
struct Page: Codable, Sendable, Equatable {
  var url: String
  var title: String
  var body: String
}

/// A slow source of pages, in place of a server. Counts the requests.
actor Origin {
  struct NotFound: Error {
    var url: String
  }

  private(set) var requestCount = 0
  private var revision = 1

  func fetch(_ url: String) async throws -> Page {
    requestCount += 1
    try await Task.sleep(for: .milliseconds(20))
    guard url.hasPrefix("/page/") else { throw NotFound(url: url) }
    return Page(
      url: url, title: "Page \(url)", body: String(repeating: "revision \(revision) ", count: 50))
  }

  func publishAnew() { revision += 1 }
}
