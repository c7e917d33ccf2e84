import CairnHummingbird
import Foundation
import Hummingbird
import HummingbirdTesting
import PageText
import Synchronization
import Testing

@testable import Server

@Suite("The server")
final class ServerTests {
  private let path = NSTemporaryDirectory() + "/server-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Calls `body` with a client of a server that was restarted on the same directory.
  private func withServer(
    _ body: @Sendable (any TestClientProtocol) async throws -> Void
  ) async throws {
    let persist = try await CairnPersistDriver.open(path: path + "/persist")
    let pages = try await ResponseCache.open(
      path: path + "/pages", countLimit: 10, memoryByteLimit: 1 << 20)
    let router = Router()
    addCounters(to: router, persist: persist)
    addSessions(to: router, persist: persist, lifetime: .seconds(3600))
    addPages(to: router, cache: pages, lifetime: .seconds(3600))
    do {
      try await Application(router: router).test(.router, body)
      try await persist.shutdown()
      try await pages.cache.close()
    } catch {
      try await persist.shutdown()
      try await pages.cache.close()
      throw error
    }
  }

  @Test("Counters and pages survive a restart")
  func restart() async throws {
    let made = Mutex<[String]>([])
    for round in 1...2 {
      try await withServer { client in
        try await client.execute(uri: "/counters/visits", method: .post) { response in
          #expect(String(buffer: response.body) == "\(round)")
        }
        for _ in 1...2 {
          try await client.execute(uri: "/pages/17", method: .get) { response in
            let text = String(buffer: response.body)
            let page = try #require(PageText(firstLineOf: text))
            #expect(page.number == 17 && page.ordinal == 1 && text == page.text)
            made.withLock { $0.append(text) }
          }
        }
      }
    }
    #expect(Set(made.withLock { $0 }).count == 1)
  }

  @Test("A session counts visits, even across a restart, until it ends")
  func sessions() async throws {
    let cookie = Mutex("")
    try await withServer { client in
      try await client.execute(uri: "/session?user=alice", method: .post) { response in
        let value = try #require(response.headers[.setCookie]?.prefix { $0 != ";" })
        cookie.withLock { $0 = String(value) }
      }
      try await client.execute(uri: "/session", method: .get) {
        #expect($0.status == .unauthorized)
      }
    }
    for visit in 1...2 {
      try await withServer { client in
        let headers: HTTPFields = [.cookie: cookie.withLock { $0 }]
        try await client.execute(uri: "/session", method: .get, headers: headers) {
          #expect(String(buffer: $0.body) == "alice \(visit)")
        }
        guard visit == 2 else { return }
        try await client.execute(uri: "/session", method: .delete, headers: headers)
        try await client.execute(uri: "/session", method: .get, headers: headers) {
          #expect($0.status == .unauthorized)
        }
      }
    }
  }
}
