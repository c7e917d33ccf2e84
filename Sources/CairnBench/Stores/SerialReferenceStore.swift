import Cairn
import Synchronization

/// `bare-map` with a full fence after each operation.
///
/// Without a fence, the processor begins the next operation of a loop while it waits for the memory
/// of the current one. A program that uses what it has read gains nothing from that. So this store
/// is the limit for single calls, and `bare-map` is the limit for calls with many keys.
final class SerialReferenceStore: KeyValueStore {
  static let name = StoreKind.bareMapSerial.rawValue
  static let abilities = ReferenceStore.abilities

  private let map: ReferenceStore

  init(at path: String, options: StoreOptions) throws {
    map = try ReferenceStore(at: path, options: options)
  }

  @inline(__always)
  private func fenced<R>(_ operation: () throws -> R) rethrows -> R {
    defer { atomicMemoryFence(ordering: .sequentiallyConsistent) }
    return try operation()
  }

  func value(forKey key: RawSpan) throws -> [UInt8]? {
    try fenced { try map.value(forKey: key) }
  }

  func withValue<R>(forKey key: RawSpan, _ body: (RawSpan) throws -> R) throws -> R? {
    try fenced { try map.withValue(forKey: key, body) }
  }

  func setValue(_ value: RawSpan, forKey key: RawSpan) throws {
    try fenced { try map.setValue(value, forKey: key) }
  }

  func removeValue(forKey key: RawSpan) throws -> Bool {
    try fenced { try map.removeValue(forKey: key) }
  }

  func close() throws { try map.close() }
}
