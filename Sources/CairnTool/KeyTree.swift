/// Keys in bytewise order as a tree of folders, as if `/` separated the names of a path.
///
/// A folder that contains only one other folder shares that folder's line. A folder of one key is
/// shown as the key.
package struct KeyTree {
  /// A line of the tree.
  package struct Line: Equatable {
    /// The number of enclosing folders.
    package let depth: Int
    /// The name of a key, or of a folder with its slash. Empty for omitted names.
    package let name: ArraySlice<UInt8>
    /// The number of keys in the folder, or of omitted names; 1 for a key.
    package let count: Int
  }

  /// Adjacent keys of one folder.
  private struct Part {
    let keys: Range<Int>
    /// How many bytes of each key the lines above show.
    let shownByteCount: Int
    let depth: Int
    var isRest = false
  }

  private static let slash = UInt8(ascii: "/")

  private let keys: [[UInt8]]
  private let limit: Int?

  /// - Parameter limit: the maximum number of names to show in a folder, or `nil` for all.
  package init(keys: [[UInt8]], limit: Int?) {
    self.keys = keys
    self.limit = limit
  }

  /// Calls `body` with each line. Does not recurse, however deep the folders are.
  package func forEachLine(_ body: (Line) throws -> Void) rethrows {
    var parts = Array(
      self.parts(of: Part(keys: keys.indices, shownByteCount: 0, depth: 0)).reversed())
    while let part = parts.popLast() {
      let count = part.keys.count
      if part.isRest {
        try body(Line(depth: part.depth, name: [], count: count))
        continue
      }
      let first = keys[part.keys.lowerBound]
      guard count > 1 else {
        try body(Line(depth: part.depth, name: first[part.shownByteCount...], count: 1))
        continue
      }
      // The keys are in order, so all of them begin with the bytes that the first and the last
      // share.
      let shared = zip(first, keys[part.keys.upperBound - 1]).prefix { $0 == $1 }.count
      let end = first[..<shared].lastIndex(of: Self.slash).map { $0 + 1 } ?? shared
      try body(Line(depth: part.depth, name: first[part.shownByteCount..<end], count: count))
      let below = Part(keys: part.keys, shownByteCount: end, depth: part.depth + 1)
      parts += self.parts(of: below).reversed()
    }
  }

  /// What the lines below a folder show.
  private func parts(of folder: Part) -> [Part] {
    let start = folder.shownByteCount
    var parts: [Part] = []
    var index = folder.keys.lowerBound
    var leftOutCount = 0
    // The key of the folder itself comes first, and has no name of its own.
    if start > 0, keys[index].count == start { index += 1 }
    while index < folder.keys.upperBound {
      let key = keys[index]
      let end = key[start...].firstIndex(of: Self.slash).map { slash in
        endOfKeys(beginningWith: key[...slash], in: index..<folder.keys.upperBound)
      }
      let range = index..<(end ?? index + 1)
      if parts.count < limit ?? .max {
        parts.append(Part(keys: range, shownByteCount: start, depth: folder.depth))
      } else {
        leftOutCount += 1
      }
      index = range.upperBound
    }
    if leftOutCount > 0 {
      parts.append(
        Part(keys: 0..<leftOutCount, shownByteCount: start, depth: folder.depth, isRest: true))
    }
    return parts
  }

  /// The end of the keys that begin with these bytes. These keys are the first ones of the range.
  private func endOfKeys(beginningWith bytes: ArraySlice<UInt8>, in range: Range<Int>) -> Int {
    var (low, high) = (range.lowerBound + 1, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if keys[middle].starts(with: bytes) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
