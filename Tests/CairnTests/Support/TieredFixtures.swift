import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// The scene of a test of both tiers. It controls the directory, the time, and when background work
/// runs.
final class TieredScene: Sendable {
  let disk = DiskScene()
  /// The queue of the memory tier, and of its reports to the disk.
  let background = ManualBackgroundQueue()
  /// Runs at the points where a large batch lets others continue.
  let pause = Lock<(@Sendable () -> Void)?>(nil)
  let monitor = PressureMonitor(source: SilentPressureSource(), queue: ManualBackgroundQueue())

  var clock: ManualClock { disk.clock }

  /// A cache with these limits, coders and other options.
  func cache<Key: Hashable & Sendable, Value: Sendable>(
    keys: KeyCoder<Key>, values: ValueCoder<Value>, held: Int? = nil, cost: Int? = nil,
    count: Int? = nil, bytes: Int? = nil,
    files: (any FileSystem)? = nil, path: String? = nil,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache<Key, Value> {
    var configuration = DiskCacheConfiguration(
      countLimit: count, byteLimit: bytes,
      memory: MemoryConfiguration(countLimit: held, costLimit: cost))
    configuration.store.clock = clock
    configuration.store.log = .silent
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

  /// A cache with the standard coders.
  func cache<Key: Hashable & Sendable & Codable, Value: Sendable & Codable>(
    held: Int? = nil, cost: Int? = nil, count: Int? = nil, bytes: Int? = nil,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in },
    costing: (@Sendable (Key, Value) -> Int)? = nil
  ) throws(StoreError) -> DiskCache<Key, Value> {
    try cache(
      keys: .standard, values: .standard, held: held, cost: cost, count: count, bytes: bytes,
      files: nil, path: nil, change, costing: costing)
  }

  /// Memory is short, and the caches respond.
  func press(_ pressure: MemoryPressure) {
    monitor.tell(pressure)
    background.runAll(dueAfter: .zero)
  }

  /// Lets time pass, and runs the jobs that are then due.
  func advance(by duration: Duration) {
    clock.advance(by: duration)
    background.runAll(dueAfter: duration)
  }
}

/// An event of a cache or of its memory tier.
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
  /// Reports events of the cache and of its memory tier.
  @discardableResult
  func observeTiers(
    _ body: @escaping @Sendable (TierEvent<Key>) -> Void
  ) -> [CacheObservation] {
    [
      tier.observe { event, _ in body(TierEvent(event, in: .memory)) },
      observe { event in body(TierEvent(event, in: .disk)) },
    ]
  }

  /// A write that another thread has not finished: it is on disk, but not in memory.
  @discardableResult
  func setStored(
    _ value: Value, forKey key: Key, options: EntryOptions = .standard
  ) throws -> UInt64 {
    let options = try stored(options)
    var removals: [RemovalEvent] = []
    defer { for removal in removals { events.noteRemoval(removal) } }
    var version: UInt64 = 0
    try encode(value, forKey: key) { (key, value) throws(StoreError) in
      let (result, pending) = try store.enter(
        value, forKey: key, options: options, durability: nil, removals: &removals)
      pending.replaced?.add(to: &removals, ofKey: key)
      if case .stored(let stored) = result { version = stored }
    }
    return version
  }

  /// A value on disk and what memory needs to keep it, as a read that misses memory finds them.
  func fetchedValue(forKey key: Key) throws -> FetchedValue<Key, Value> {
    let found = try fetch(key) { (record) throws(StoreError) in
      let hasTags = CacheMetadata.hasTags(record.metadata)
      return (try decode(record), TierSource(record, hasTags: hasTags, history: nil))
    }
    let (value, source) = try #require(found)
    return FetchedValue(value: value, source: source, key: try tierKey(key))
  }

  /// Inconsistencies: in memory itself, and between the values that reads find there and the disk.
  func audit() throws -> [String] {
    var faults = tier.held.audit()
    for entry in tier.held.entries() where try tier.contains(entry.key.key) {
      let stored = try info(forKey: entry.key.key)
      let entry = Entry(
        key: entry.key, value: entry.value,
        info: try #require(try tier.info(forKey: entry.key.key)))
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

extension DiskCache<Int, Int> {
  /// The keys on disk, the least recently used first.
  func keysByRecency() throws -> [Int] {
    try store.keysByRecency().map { bytes in
      try bytes.withBytes { try KeyCoder<Int>.integer.decode($0) }
    }
  }
}

/// A value that was read from disk and has not reached memory yet.
struct FetchedValue<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let value: Value
  let source: TierSource
  let key: TierKey<Key>

  func promote(in cache: DiskCache<Key, Value>) {
    cache.promote(value, source, forKey: key)
  }
}
