import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// What a test of both tiers decides itself: the directory, the time, and when background work runs.
final class TieredScene: Sendable {
  let disk = DiskScene()
  /// Of the tier in memory, and what tells the disk of it.
  let background = ManualBackgroundQueue()
  /// What runs where a large batch lets others continue.
  let pause = Lock<(@Sendable () -> Void)?>(nil)
  let monitor = PressureMonitor(source: SilentPressureSource(), queue: ManualBackgroundQueue())

  var clock: ManualClock { disk.clock }

  /// A cache with these limits and coders, and what else the test wants.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    keys: KeyCoder<Key>, values: ValueCoder<Value>, held: Int? = nil, cost: Int? = nil,
    count: Int? = nil, bytes: Int? = nil,
    files: (any FileSystem)? = nil, path: String? = nil,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache<Key, Value> {
    var configuration = DiskCacheConfiguration(
      countLimit: count, byteLimit: bytes,
      memory: MemoryTierConfiguration(countLimit: held, costLimit: cost))
    configuration.store.clock = clock
    configuration.store.log = .none
    configuration.store.segmentByteLimit = 256 << 10
    change(&configuration)
    return try DiskCache(
      path: path ?? disk.path, configuration: configuration, keyCoder: keys, valueCoder: values,
      costing: costing,
      environment: Environment(
        fileSystem: files ?? SystemFileSystem(), background: disk.background,
        maintenance: disk.background,
        pause: { [weak self] _ in self?.pause.withLock { $0.take() }?() }),
      memory: MemoryCacheEnvironment(background: background, pressureMonitor: monitor))
  }

  /// The same with the standard coders.
  func cache<Key: Hashable & Sendable & Codable, Value: Sendable & Codable>(
    held: Int? = nil, cost: Int? = nil, count: Int? = nil, bytes: Int? = nil,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(CacheError) -> DiskCache<Key, Value> {
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

/// Something that happened to a cache or to its tier in memory.
struct TierEvent<Key: Hashable & Sendable>: Sendable, Hashable {
  enum Tier { case memory, disk }

  var event: CacheEvent<Key>
  var tier: Tier

  init(_ event: CacheEvent<Key>, in tier: Tier) {
    self.event = event
    self.tier = tier
  }
}

extension DiskCache {
  /// Tells of the cache and of its tier in memory.
  @discardableResult
  func observeTiers(
    _ body: @escaping @Sendable (TierEvent<Key>) -> Void
  ) -> [CacheObservation] {
    [
      tier.observe { event, _ in body(TierEvent(event, in: .memory)) },
      observe { event in body(TierEvent(event, in: .disk)) },
    ]
  }

  /// A write as far as another thread may have come with it: it is on disk, and not in memory.
  @discardableResult
  func setStored(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard
  ) throws -> UInt64 {
    let options = try stored(options)
    var removals: [RemovalEvent] = []
    defer { for removal in removals { events.noteRemoval(removal) } }
    var version: UInt64 = 0
    try encode(value, forKey: key) { (key, value) throws(CacheError) in
      let result = try storing { () throws(StoreError) in
        try store.enter(
          value, forKey: key, options: options, durability: nil, removals: &removals
        ).result
      }
      if case .stored(let stored) = result { version = stored }
    }
    return version
  }

  /// A value and its version, as a read that misses in memory finds them on disk.
  func fetchedValue(forKey key: Key) throws -> (value: Value, version: UInt64)? {
    guard let value = try storedValue(forKey: key), let info = try storedInfo(forKey: key) else {
      return nil
    }
    return (value, info.version)
  }

  /// What does not agree: in memory itself, and between it and the disk.
  func audit() throws -> [String] {
    var faults = tier.held.audit()
    for entry in tier.held.entries() {
      let stored = try storedInfo(forKey: entry.key.key)
      if tier.held.infoAlone(forKey: entry.key) != nil {
        if stored != nil { faults.append("\(entry.key.key) in memory only, and on disk") }
        continue
      }
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
