import Foundation

/// Foundation's cache, with keys made beforehand: a program would also make an `NSString` for each
/// call.
// SAFETY: `@unchecked Sendable` because `NSCache` is safe to use from any thread.
final class NSCachePeer: MemoryPeer, @unchecked Sendable {
  static let name = StoreKind.nsCache.rawValue

  struct Key: @unchecked Sendable {
    // SAFETY: the string is not mutable.
    let text: NSString
  }

  private final class Box {
    let value: [UInt8]
    init(_ value: [UInt8]) { self.value = value }
  }

  private let cache = NSCache<NSString, Box>()

  init(countLimit: Int, at path: String) { cache.countLimit = countLimit }

  static func key(_ text: String) -> Key { Key(text: NSString(string: text)) }
  func value(forKey key: Key) -> [UInt8]? { cache.object(forKey: key.text)?.value }
  func setValue(_ value: [UInt8], forKey key: Key) { cache.setObject(Box(value), forKey: key.text) }
}
