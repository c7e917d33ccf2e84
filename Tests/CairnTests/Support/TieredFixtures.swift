import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// What a test of both tiers decides itself: the directory, the time, and when background work runs.
final class TieredScene: Sendable {
  let disk = DiskScene()
  /// Of the tier in memory, and what tells the disk of it.
  let background = ManualBackgroundQueue()
  let monitor = PressureMonitor(source: SilentPressureSource(), queue: ManualBackgroundQueue())

  var clock: ManualClock { disk.clock }

  /// A cache with these limits and coders, and what else the test wants.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    keys: KeyCoder<Key>, values: ValueCoder<Value>, held: Int? = nil, cost: Int? = nil,
    count: Int? = nil, bytes: Int? = nil,
    files: (any FileSystem)? = nil, path: String? = nil,
    _ change: (inout TieredCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(CacheError) -> TieredCache<Key, Value> {
    var configuration = TieredCacheConfiguration(
      memory: MemoryCacheConfiguration(countLimit: held, costLimit: cost),
      disk: DiskCacheConfiguration(countLimit: count, byteLimit: bytes))
    configuration.disk.store.clock = clock
    configuration.disk.store.segmentByteLimit = 256 << 10
    change(&configuration)
    return try TieredCache(
      path: path ?? disk.path, configuration: configuration, keyCoder: keys, valueCoder: values,
      costing: costing,
      environment: Environment(
        fileSystem: files ?? SystemFileSystem(), background: disk.background,
        maintenance: disk.background, pause: { _ in }),
      memory: MemoryCacheEnvironment(background: background, pressureMonitor: monitor))
  }

  /// The same with the standard coders.
  func cache<Key: Hashable & Sendable & Codable, Value: Sendable & Codable>(
    held: Int? = nil, cost: Int? = nil, count: Int? = nil, bytes: Int? = nil,
    _ change: (inout TieredCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(CacheError) -> TieredCache<Key, Value> {
    try cache(
      keys: .standard, values: .standard, held: held, cost: cost, count: count, bytes: bytes,
      files: nil, path: nil, change, costing: costing)
  }

  /// Lets time pass, and what is due then happen.
  func advance(by duration: Duration) {
    clock.advance(by: duration)
    background.runAll(dueAfter: duration)
  }
}

extension TieredCache {
  /// What does not agree: in memory itself, and between it and the disk.
  func audit() throws -> [String] {
    var faults = held.audit()
    for entry in held.entries() {
      let stored = try disk.info(forKey: entry.key.key)
      if stored?.version != entry.info.version {
        faults.append("\(entry.key.key): \(entry.info.version) instead of \(stored?.version ?? 0)")
        continue
      }
      if let end = stored?.expires, entry.info.expires.map({ $0 > end }) ?? true {
        faults.append("\(entry.key.key) ends later in memory than on disk")
      }
      if stored?.idleLimit != entry.info.idleLimit { faults.append("another idle limit") }
    }
    return faults
  }
}
