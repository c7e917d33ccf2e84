import Cairn
import NearCache
import NearCacheTrial
import Testing

/// The samples of Docs/Scaling.md that need a server. The documentation's tests look for them here.
@Suite(
  "The samples of Scaling", .serialized,
  .enabled(if: RedisServer.executable != nil, Comment(rawValue: RedisServer.missing)))
struct ScalingSamples {
  @Test("Pages that machines share")
  func pages() async throws {
    try await withCluster { cluster in
      let port = cluster.server.port
      let directory = cluster.directory
      let url = "/about"
      @Sendable func fetch(_ url: String) async throws -> String { "page \(url)" }

      let engine = EngineConfiguration(endpoint: EngineEndpoint(host: "127.0.0.1", port: port))
      let limits = DiskCacheConfiguration(
        countLimit: nil, byteLimit: 1 << 30,
        memory: MemoryConfiguration(costLimit: 64 << 20))
      var configuration = NearCacheConfiguration(prefix: "pages:", engine: engine, near: limits)
      configuration.stalenessLimit = .seconds(2)
      configuration.loadPolicy.staleOnError = .seconds(600)
      let pages = try await NearCache<String, String>.open(
        at: "\(directory)/pages.cairn", configuration, coder: .string)
      let page = try await pages.value(forKey: url, lifetime: .seconds(3600)) {
        try await fetch(url)
      }
      try await pages.setValue("new", forKey: url, lifetime: .seconds(3600))

      #expect(page == "page /about")
      #expect(try await pages.value(forKey: url) == "new")
      try await pages.close()
    }
  }
}
