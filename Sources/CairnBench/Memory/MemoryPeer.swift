/// The benchmark's protocol for caches in memory, for `MemoryCache` and its peers. All calls are
/// safe from any thread.
///
/// Values are arrays, so that a read returns a reference and copies nothing.
protocol MemoryPeer: AnyObject, Sendable {
  /// The cache's key type; keys are made from text before the clock starts.
  associatedtype Key: Sendable
  static var name: String { get }

  /// - Parameter countLimit: the maximum number of entries, if the cache has such a limit.
  init(countLimit: Int)
  static func key(_ text: String) -> Key

  func value(forKey key: Key) -> [UInt8]?
  func setValue(_ value: [UInt8], forKey key: Key)
}
