/// What the benchmark asks of a cache in memory: the protocol under which `MemoryCache` and its peers
/// stand side by side. All may be called from any thread.
///
/// Values are arrays, so that a read hands out a reference and copies nothing.
protocol MemoryPeer: AnyObject, Sendable {
  /// What the cache takes as a key; made from text before the clock starts.
  associatedtype Key: Sendable
  static var name: String { get }

  /// - Parameter countLimit: how many entries it holds at most, where it can be told.
  init(countLimit: Int)
  static func key(_ text: String) -> Key

  func value(forKey key: Key) -> [UInt8]?
  func setValue(_ value: [UInt8], forKey key: Key)
}
