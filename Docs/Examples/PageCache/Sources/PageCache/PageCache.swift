import Cairn

/// Pages by their address: loaded once however many ask, kept in memory and on disk, for a minute.
struct PageCache: Sendable {
  let cache: DiskCache<String, Page>
  let origin: Origin

  init(directory: String, origin: Origin, countLimit: Int) throws(CacheError) {
    var configuration = DiskCacheConfiguration(countLimit: countLimit, byteLimit: 256 << 20)
    configuration.lifetime = .seconds(60)
    // Room for half of them: the others are read from disk.
    configuration.memory = MemoryTierConfiguration(countLimit: countLimit / 2, costLimit: nil)
    cache = try DiskCache.open(.path(directory), configuration: configuration)
    self.origin = origin
  }

  func page(_ url: String) async throws -> Page {
    try await cache.value(forKey: url) { [origin] in try await origin.fetch(url) }
  }

  /// A page that is kept for so long if it is fetched now.
  func page(_ url: String, keptFor lifetime: Duration) async throws -> Page {
    try await cache.value(forKey: url, lifetime: .after(lifetime)) { [origin] in
      try await origin.fetch(url)
    }
  }
}
