import Cairn
import Synchronization

/// Cairn's cache in memory, with the default configuration.
final class MemoryCachePeer: MemoryPeer {
  static let name = StoreKind.memoryCache.rawValue
  private let cache: MemoryCache<String, [UInt8]>

  init(countLimit: Int, at path: String) {
    cache = MemoryCache(
      configuration: MemoryConfiguration(countLimit: countLimit))
  }

  static func key(_ text: String) -> String { text }
  func value(forKey key: String) -> [UInt8]? { cache.value(forKey: key) }
  func setValue(_ value: [UInt8], forKey key: String) { cache.setValue(value, forKey: key) }
}

/// The minimum for a cache: no order, no limit, no expiry.
final class DictionaryPeer: MemoryPeer {
  static let name = StoreKind.dictionary.rawValue
  private let values: Mutex<[String: [UInt8]]>

  init(countLimit: Int, at path: String) { values = Mutex([:]) }

  static func key(_ text: String) -> String { text }
  func value(forKey key: String) -> [UInt8]? { values.withLock { $0[key] } }
  func setValue(_ value: [UInt8], forKey key: String) { values.withLock { $0[key] = value } }
}
