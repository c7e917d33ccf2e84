import Cairn
import CairnStore
import FuzzSupport
import Synchronization

/// A cache of two tiers, whose memory holds few of the keys, so that they come and go.
struct TieredSubject: HistorySubject {
  let cache: TieredCache<[UInt8], [UInt8]>
  private let choice = Choice()

  /// Every other read asks for the version too, which goes to disk.
  private final class Choice: Sendable {
    let number = Atomic(0)
    func next() -> Int { number.add(1, ordering: .relaxed).newValue }
  }

  init(path: String, heldCount: Int) throws {
    var disk = DiskCacheConfiguration.unlimited
    disk.store = StoreSubject.configuration
    cache = try TieredCache(
      path: path,
      configuration: TieredCacheConfiguration(
        memory: MemoryCacheConfiguration(countLimit: heldCount, costLimit: nil), disk: disk))
  }

  func set(_ value: [UInt8], forKey key: [UInt8], durability: Durability) throws -> UInt64 {
    try cache.setValue(value, forKey: key, durability: durability)
  }

  func change(_ changes: [(key: [UInt8], value: [UInt8]?)], durability: Durability) throws {
    try cache.setValues(
      changes.compactMap { change in change.value.map { (change.key, $0) } }, durability: durability
    )
    for change in changes where change.value == nil { try cache.removeValue(forKey: change.key) }
  }

  func get(_ key: [UInt8]) throws -> (value: [UInt8], version: UInt64)? {
    if choice.next().isMultiple(of: 2) { return try cache.value(forKey: key).map { ($0, 0) } }
    return try cache.entry(forKey: key).map { ($0.value, $0.info.version) }
  }

  func getAll(_ keys: [[UInt8]], choice: Int) throws -> [(value: [UInt8], version: UInt64)?] {
    try cache.values(forKeys: keys).map { value in value.map { ($0, 0) } }
  }

  func remove(_ key: [UInt8]) throws -> Bool { try cache.removeValue(forKey: key) }
  func removeAll() throws { try cache.removeAll() }

  func compareAndSet(
    _ value: [UInt8], forKey key: [UInt8], expecting version: UInt64?
  ) throws -> CompareAndSetResult {
    try cache.compareAndSet(value, forKey: key, expecting: version)
  }

  func compareAndRemove(_ key: [UInt8], expecting version: UInt64) throws -> Bool {
    try cache.compareAndRemove(key, expecting: version)
  }

  func keepHouse(choice: Int) throws {
    switch choice % 6 {
    case 0: try cache.compact()
    case 1: try cache.sync()
    case 2: cache.memory.trim(toCount: 0)
    case 3: cache.memory.removeAll()
    case 4: try cache.removeExpired()
    default: cache.enterBackground()
    }
  }
}
