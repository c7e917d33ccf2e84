import Cairn

extension Store {
  /// All keys with the prefix, in bytewise order.
  ///
  /// The store has no order, so they are held in memory and sorted.
  func sortedKeys(prefix: [UInt8] = []) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    try forEachKey(prefix: prefix) { key in
      keys.append(key.copied)
      return .next
    }
    keys.sort { $0.lexicographicallyPrecedes($1) }
    return keys
  }
}
