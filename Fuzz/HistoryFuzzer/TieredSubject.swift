import Cairn
import CairnStore
import FuzzSupport
import Synchronization

/// A two-tier cache. Its memory has room for only a few keys, so entries are often inserted and
/// evicted.
struct TieredSubject: HistorySubject {
  let cache: DiskCache<[UInt8], [UInt8]>
  private let choice = Choice()

  /// Decides which of several equivalent calls comes next. Every other read also requests the
  /// version, which requires a disk read.
  private final class Choice: Sendable {
    let number = Atomic(0)
    func isDue(each count: Int) -> Bool {
      number.add(1, ordering: .relaxed).newValue.isMultiple(of: count)
    }
  }

  init(path: String, heldCount: Int, clock: ManualClock) throws {
    var configuration = DiskCacheConfiguration(
      memory: MemoryConfiguration(countLimit: heldCount))
    configuration.store = StoreSubject.configuration
    configuration.store.clock = clock
    cache = try DiskCache.open(.path(path), configuration: configuration)
  }

  // A batch is written to the disk only.
  var unityOfChanges: HistoryCall.Unity { .apart }
  var unityOfRemovalOfAll: HistoryCall.Unity { .apart }
  func unityOfReads(choice: Int) -> HistoryCall.Unity { .apart }

  func set(
    _ value: [UInt8], forKey key: [UInt8], ending: HistoryOperation.Ending, durability: Durability
  ) throws -> UInt64 {
    let options = EntryOptions(lifetime: ending.lifetime(value), idleLimit: ending.idleLimit)
    if choice.isDue(each: 2) {
      return try inTask { [cache] in
        try await cache.setValue(value, forKey: key, options: options, durability: durability)
      }
    }
    return try cache.setValue(value, forKey: key, options: options, durability: durability)
  }

  func change(_ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability) throws {
    try cache.setValues(
      changes.compactMap { change in change.value.map { (change.key, $0) } }, durability: durability
    )
    for change in changes where change.value == nil { try cache.removeValue(forKey: change.key) }
  }

  func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)? {
    if choice.isDue(each: 2) { return try cache.value(forKey: key).map { ($0, 0) } }
    return try cache.entry(forKey: key).map { ($0.value, $0.info.version) }
  }

  func getAll(_ keys: [[UInt8]], choice: Int) throws -> [(value: [UInt8], version: UInt64)?] {
    try cache.values(forKeys: keys).map { value in value.map { ($0, 0) } }
  }

  func remove(_ key: [UInt8]) throws -> Bool {
    if choice.isDue(each: 2) {
      return try inTask { [cache] in try await cache.removeValue(forKey: key) }
    }
    return try cache.removeValue(forKey: key)
  }

  func take(_ key: [UInt8]) throws -> [UInt8]? { try cache.takeValue(forKey: key) }

  func setLifetime(_ key: [UInt8]) throws -> Bool {
    try cache.setLifetime(.after(HistoryPlan.time * 1000), forKey: key)
  }

  func removeAll() throws { try cache.removeAll() }

  func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult {
    try cache.compareAndSet(value, forKey: key, expecting: version)
  }

  func compareAndRemove(forKey key: [UInt8], expecting version: UInt64) throws -> Bool {
    try cache.compareAndRemove(forKey: key, expecting: version)
  }

  func keepHouse(choice: Int) throws {
    switch choice % 6 {
    case 0: try cache.compact()
    case 1: try cache.sync()
    case 2: cache.memory?.trim(.toCount(0))
    case 3: cache.memory?.removeAll()
    case 4: try cache.trim(.expired)
    default: cache.enterBackground()
    }
  }
}
