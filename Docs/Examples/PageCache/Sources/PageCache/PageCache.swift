import Cairn

/// Caches pages by URL, in memory and on disk, for a minute. Concurrent requests share one load.
struct PageCache: Sendable {
  let cache: DiskCache<String, Page>
  let origin: Origin

  init(directory: String, origin: Origin, countLimit: Int) throws(StoreError) {
    var configuration = DiskCacheConfiguration(countLimit: countLimit, byteLimit: 256 << 20)
    configuration.lifetime = .seconds(60)
    // Memory has room for half of the pages; the others are read from disk.
    configuration.memory = MemoryConfiguration(countLimit: countLimit / 2)
    cache = try DiskCache.open(.path(directory), configuration: configuration)
    self.origin = origin
  }

  func page(_ url: String) async throws -> Page {
    try await cache.value(forKey: url) { [origin] in try await origin.fetch(url) }
  }

  /// Returns a page. If it must be fetched, it is cached for `lifetime`.
  func page(_ url: String, keptFor lifetime: Duration) async throws -> Page {
    try await cache.value(forKey: url, lifetime: .after(lifetime)) { [origin] in
      try await origin.fetch(url)
    }
  }
}
