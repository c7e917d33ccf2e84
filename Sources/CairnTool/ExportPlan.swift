/// Decides which keys of a store become plain paths and which are encoded.
///
/// A plain path may still conflict with another: a key `a` and a key `a/b` would need a file and a
/// directory of the same name. The shorter key is then encoded, but only if the directory exists
/// once the longer keys have been written. It is missing if their values are damaged or expired.
/// Without the directory, an import would take the encoded path literally.
package struct ExportPlan {
  /// Keys that are the path of their file or empty directory, in bytewise order.
  package private(set) var plain: [[UInt8]] = []
  /// Keys in the way of a directory that later keys need, in bytewise order. Write them in reverse
  /// order: the first of them to be a plain path makes the directory for the others.
  package private(set) var obstructing: [[UInt8]] = []
  /// All other keys.
  package private(set) var encoded: [[UInt8]] = []

  /// Plans the export of the keys, which must be in bytewise order. `isEmpty` returns whether a key
  /// has an empty value. It is called only for keys that end in a slash.
  package init(keys: [[UInt8]], isEmpty: ([UInt8]) throws -> Bool) rethrows {
    var candidates: [[UInt8]] = []
    for key in keys {
      let valueIsEmpty = key.last == UInt8(ascii: "/") ? try isEmpty(key) : false
      if TreePath.isPlain(key, valueIsEmpty: valueIsEmpty) {
        candidates.append(key)
      } else {
        encoded.append(key)
      }
    }
    for (index, key) in candidates.enumerated() {
      if ExportPlan.hasKeyBelow(key, after: index, in: candidates) {
        obstructing.append(key)
      } else {
        plain.append(key)
      }
    }
  }

  /// Whether a later key is in the directory that `key` names or would name.
  ///
  /// Keys with a common prefix are adjacent, but not always next to the prefix itself: `a!` comes
  /// between `a` and `a/b`.
  private static func hasKeyBelow(
    _ key: [UInt8], after index: Int, in keys: [[UInt8]]
  ) -> Bool {
    let slash = UInt8(ascii: "/")
    let directory = key.last == slash ? key : key + [slash]
    var low = index + 1
    var high = keys.count
    while low < high {
      let middle = low + (high - low) / 2
      if keys[middle].lexicographicallyPrecedes(directory) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low < keys.count && keys[low].starts(with: directory)
  }
}
