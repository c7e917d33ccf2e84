import Cairn

struct Page: Codable, Sendable, Equatable {
  var title: String
  var body: String
}

struct PageCache: Sendable {
  let cache: DiskCache<String, Page>

  init(path: String) async throws {
    var configuration = DiskCacheConfiguration(countLimit: 100_000, byteLimit: 1 << 30)
    configuration.memory = MemoryConfiguration(costLimit: 64 << 20)
    configuration.lifetime = .seconds(3600)
    configuration.loadPolicy.staleWhileRevalidating = .seconds(60)
    configuration.loadPolicy.staleOnError = .seconds(86_400)
    cache = try await DiskCache.open(.path(path), configuration: configuration)
  }

  func page(_ url: String) async throws -> Page {
    try await cache.value(forKey: url) { try await fetch(url) }
  }

  func replace(_ page: Page, at url: String) async throws {
    try await publish(page, url)
    try await cache.removeValue(forKey: url)
  }

  func report() throws -> String {
    try cache.statistics().prometheus(prefix: "pages")
  }
}
