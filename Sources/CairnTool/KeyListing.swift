import Cairn

extension Store {
  /// All keys with the prefix, in bytewise order.
  ///
  /// The store is unordered, so the keys are collected in memory and sorted.
  ///
  /// - Parameter damage: set to the error for the first record whose key is unreadable.
  func sortedKeys(
    prefix: [UInt8] = [], passingOver damage: inout StoreError?
  ) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    do {
      try forEachKey(prefix: prefix) { key in
        keys.append(key.copied)
        return .next
      }
    } catch let error as StoreError {
      guard case .corrupt = error else { throw error }
      damage = error
    }
    keys.sort { $0.lexicographicallyPrecedes($1) }
    return keys
  }
}
