import CairnStore
import FuzzSupport
import Synchronization

@testable import Cairn

/// A cache that one opener writes to and others follow.
final class FollowingScene: Sendable {
  let disk = DiskScene()
  let background = ManualBackgroundQueue()
  /// How often a follower has decoded a value.
  let decodings = Atomic(0)

  var clock: ManualClock { disk.clock }

  /// Values are text, and each decoding is counted.
  private var values: ValueCoder<String> {
    .custom {
      Array($0.utf8)
    } decode: { [weak self] bytes in
      self?.decodings.add(1, ordering: .relaxed)
      guard let text = String(copying: bytes) else { throw CodingFailure("it is not UTF-8") }
      return text
    }
  }

  private func environment(_ files: any FileSystem = SystemFileSystem()) -> Environment {
    var environment = Environment(
      fileSystem: files, background: disk.background, maintenance: disk.background,
      pause: { _ in })
    environment.announces = true
    return environment
  }

  private var memory: MemoryCacheEnvironment {
    MemoryCacheEnvironment(
      background: background,
      pressureMonitor: PressureMonitor(
        source: SilentPressureSource(), queue: ManualBackgroundQueue()))
  }

  private func configuration(
    _ change: (inout DiskCacheConfiguration) -> Void
  ) -> DiskCacheConfiguration {
    var configuration = DiskCacheConfiguration()
    configuration.store.clock = clock
    configuration.store.log = .silent
    configuration.store.segmentByteLimit = 64 << 10
    configuration.store.spaceBound = 1.2
    configuration.store.deadByteFloor = 0
    change(&configuration)
    return configuration
  }

  /// The cache, as its writer opens it.
  func writer(
    at path: String? = nil, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> DiskCache<String, String> {
    try DiskCache(
      path: path ?? disk.path, configuration: configuration(change), keyCoder: .standard,
      valueCoder: values, environment: environment(), memory: memory)
  }

  /// A follower of the cache.
  ///
  /// - Parameter held: the limit of entries in memory, or `nil` for no memory tier.
  func follower(
    _ freshness: CairnStore.Freshness = .everyRead, held: Int? = .max,
    keys: KeyCoder<String> = .standard, values: ValueCoder<String>? = nil,
    files: any FileSystem = SystemFileSystem(),
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws(StoreError) -> DiskCache<String, String> {
    try DiskCache(
      path: disk.path,
      configuration: configuration {
        $0.memory = held.map { MemoryConfiguration(countLimit: $0) }
        change(&$0)
      }, keyCoder: keys, valueCoder: values ?? self.values, following: freshness,
      environment: environment(files), memory: memory)
  }

  /// How many values `body` has decoded.
  func decodingCount(_ body: () throws -> Void) rethrows -> Int {
    let before = decodings.load(ordering: .relaxed)
    try body()
    return decodings.load(ordering: .relaxed) - before
  }
}

/// The error of a cache that a body throws.
func cacheError(_ body: () throws -> Void) -> StoreError? {
  do { try body() } catch { return error as? StoreError }
  return nil
}
