import Cairn

/// Pages by their address: loaded once however many ask, kept in memory and on disk, for a minute.
struct PageCache: Sendable {
  let cache: TieredCache<String, Page>
  let origin: Origin

  init(directory: String, origin: Origin, countLimit: Int) throws(CacheError) {
    var disk = DiskCacheConfiguration(countLimit: countLimit, byteLimit: 256 << 20)
    disk.lifetime = .seconds(60)
    // Room for half of them: the others are read from disk.
    let memory = MemoryCacheConfiguration(countLimit: countLimit / 2, costLimit: nil)
    cache = try TieredCache(
      path: directory, configuration: TieredCacheConfiguration(memory: memory, disk: disk))
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
