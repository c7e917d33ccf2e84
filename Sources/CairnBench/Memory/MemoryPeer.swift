/// The benchmark's protocol for caches of objects: `MemoryCache`, its peers, and `DiskCache`. All
/// calls are safe from any thread.
///
/// Values are arrays, so that a read returns a reference and copies nothing.
protocol MemoryPeer: AnyObject, Sendable {
  /// The cache's key type; keys are made from text before the clock starts.
  associatedtype Key: Sendable
  static var name: String { get }

  /// - Parameters:
  ///   - countLimit: the maximum number of entries, if the cache has such a limit.
  ///   - path: the directory of a cache on disk.
  init(countLimit: Int, at path: String) throws
  static func key(_ text: String) -> Key

  func value(forKey key: Key) throws -> [UInt8]?
  func setValue(_ value: [UInt8], forKey key: Key) throws
  func close() throws
}

extension MemoryPeer {
  func close() throws {}
}
