import Cairn
import Testing

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

  func close() async throws {
    try await cache.close()
  }
}

@Suite("The page cache of the tutorial")
struct TutorialSamples {
  @Test("Does what its steps say")
  func steps() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let pages = try await PageCache(path: "pages.cairn")
        let page = try await pages.page("/about")
        #expect(page.body == "first")
        // Once for all who ask, in memory and on disk.
        #expect(try await pages.page("/about") == page)
        #expect(await Origin.shared.requestCount == 1)
        #expect(pages.cache.memory?.statistics().count == 1)
        try await pages.replace(Page(title: "About", body: "second"), at: "/about")
        #expect(try await pages.page("/about").body == "second")
        #expect(try pages.report().contains("pages_load_starts_total 2\n"))
        try await pages.close()
        // After a restart it is there.
        let again = try await PageCache(path: "pages.cairn")
        #expect(try await again.page("/about").body == "second")
        #expect(await Origin.shared.requestCount == 2)
        try await again.close()
      }
    }
  }
}
