import Cairn

/// The tier in memory of a cache on disk.
protocol MemoryTierSize {
  static var kind: StoreKind { get }
  /// - Parameter count: the number of entries of the cache.
  static func entryLimit(of count: Int) -> Int?
  /// Whether the disk is also limited to the benchmark's number of entries.
  static var limitsDisk: Bool { get }
}

extension MemoryTierSize {
  static var limitsDisk: Bool { false }
}

/// Holds every entry: all reads are hits in memory.
enum WholeTier: MemoryTierSize {
  static let kind = StoreKind.tieredCache
  static func entryLimit(of count: Int) -> Int? { count }
}

/// Holds every entry, and the disk is at its limit, as it is in a cache after a while.
enum WholeTierOfFullDisk: MemoryTierSize {
  static let kind = StoreKind.tieredCacheFull
  static func entryLimit(of count: Int) -> Int? { count }
  static let limitsDisk = true
}

/// Holds one entry: nearly all reads are misses in memory, and hits on disk.
enum TinyTier: MemoryTierSize {
  static let kind = StoreKind.tieredCacheMissing
  static func entryLimit(of count: Int) -> Int? { 1 }
}

enum NoTier: MemoryTierSize {
  static let kind = StoreKind.diskCache
  static func entryLimit(of count: Int) -> Int? { nil }
}

/// Cairn's cache on disk, unsynced and without a limit in bytes.
final class DiskCachePeer<Tier: MemoryTierSize>: MemoryPeer {
  static var name: String { Tier.kind.rawValue }

  let cache: DiskCache<String, [UInt8]>

  init(countLimit: Int, at path: String) throws {
    var configuration = DiskCacheConfiguration()
    configuration.store.durability = .process
    if Tier.limitsDisk { configuration.countLimit = countLimit }
    configuration.memory = Tier.entryLimit(of: countLimit).map {
      MemoryConfiguration(countLimit: $0)
    }
    cache = try DiskCache<String, [UInt8]>.open(.path(path), configuration: configuration)
  }

  static func key(_ text: String) -> String { text }
  func value(forKey key: String) throws -> [UInt8]? { try cache.value(forKey: key) }
  func setValue(_ value: [UInt8], forKey key: String) throws {
    try cache.setValue(value, forKey: key)
  }
  func close() throws { try cache.close() }
}
