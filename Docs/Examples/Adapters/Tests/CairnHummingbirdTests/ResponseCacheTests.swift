import Cairn
import CairnHummingbird
import Foundation
import Hummingbird
import HummingbirdTesting
import Synchronization
import Testing

@Suite("The cache of responses")
final class ResponseCacheTests {
  private let path = NSTemporaryDirectory() + "/response-cache-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Calls `body` with a client of a server that counts how often it computes its page.
  private func withServer(
    lifetime: Duration, _ madeCount: Counter,
    _ body: @Sendable (any TestClientProtocol) async throws -> Void
  ) async throws {
    let responses = try await ResponseCache.open(
      path: path, countLimit: 10, memoryByteLimit: 1 << 20)
    let router = Router()
    router.get(
      "page",
      use: responses.caching(for: lifetime) { request, _ in
        let count = madeCount.next()
        try await Task.sleep(for: .milliseconds(20))
        if request.uri.query == "fails" { throw HTTPError(.badGateway) }
        return CachedResponse(contentType: "text/plain", body: ByteBuffer(string: "made \(count)"))
      })
    try await Application(router: router, services: [responses]).test(.router, body)
    // As the application does when it ends.
    try await responses.cache.close()
  }

  @Test("computes a response once for all requests, before and after a restart")
  func singleFlight() async throws {
    let madeCount = Counter()
    for _ in 1...2 {
      try await withServer(lifetime: .seconds(60), madeCount) { client in
        try await withThrowingTaskGroup(of: String.self) { group in
          for _ in 0..<100 {
            group.addTask {
              try await client.execute(uri: "/page", method: .get) { response in
                #expect(response.headers[.contentType] == "text/plain")
                return String(buffer: response.body)
              }
            }
          }
          for try await body in group { #expect(body == "made 1") }
        }
      }
    }
    #expect(madeCount.value == 1)
  }

  @Test("caches no errors, respects lifetimes, and distinguishes queries")
  func kept() async throws {
    let madeCount = Counter()
    try await withServer(lifetime: .milliseconds(50), madeCount) { client in
      for _ in 1...2 {
        try await client.execute(uri: "/page?fails", method: .get) {
          #expect($0.status == .badGateway)
        }
      }
      #expect(madeCount.value == 2)
      for query in ["a", "b"] { try await client.execute(uri: "/page?\(query)", method: .get) }
      #expect(madeCount.value == 4)
      try await Task.sleep(for: .milliseconds(100))
      try await client.execute(uri: "/page?a", method: .get) {
        #expect(String(buffer: $0.body) == "made 5")
      }
    }
  }
}

final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}
