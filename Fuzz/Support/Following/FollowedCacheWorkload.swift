package import Cairn

/// The writes of a followed cache: numbered, each of one key. The number of a write determines what
/// it does. So a value, or its absence, shows a reader how far the writer had got at that moment.
package enum FollowedCacheWorkload {
  private static let keyCount = 20

  package static func key(_ number: Int) -> String { "key \(number % keyCount)" }
  package static var keys: [String] { (0..<keyCount).map { key($0) } }

  /// Whether a write removes its key.
  private static func removes(_ number: Int) -> Bool { number % 7 == 0 }

  private static func value(_ number: Int) -> String {
    "\(number) " + String(repeating: "x", count: number * 37 % 900)
  }

  package static var configuration: DiskCacheConfiguration {
    var configuration = DiskCacheConfiguration()
    configuration.store = FollowedWorkload.configuration
    return configuration
  }

  /// Writes forever, and reports each write once it is acknowledged.
  ///
  /// - Parameter first: the number of the first write. If this write may already have been made, it
  ///   is repeated.
  package static func run(
    in cache: DiskCache<String, String>, from first: Int, _ tell: (Int) throws -> Void
  ) throws {
    var number = first
    while true {
      if number % 131 == 0 { try cache.compact() }
      if removes(number) {
        try cache.removeValue(forKey: key(number))
      } else {
        try cache.setValue(value(number), forKey: key(number))
      }
      try tell(number)
      number += 1
    }
  }

  /// What one thread has seen of a cache that it follows.
  package struct Reader {
    /// The last write seen of each key.
    private var seen: [String: Int] = [:]
    package private(set) var valueCount = 0

    package init() {}

    /// Reads all keys.
    ///
    /// - Parameter acknowledged: the last write that was acknowledged before.
    /// - Throws: if a value is older than one already found for its key, or than the last
    ///   acknowledged one.
    package mutating func look(
      at cache: DiskCache<String, String>, acknowledged: Int
    ) throws {
      for key in keys {
        // The last write of the key that must be seen.
        var least = acknowledged
        while least > 0, FollowedCacheWorkload.key(least) != key { least -= 1 }
        least = max(least, seen[key] ?? 0)
        if let value = try cache.value(forKey: key) {
          let number = Int(value.prefix { $0 != " " }) ?? 0
          guard number >= least, value == FollowedCacheWorkload.value(number), !removes(number),
            FollowedCacheWorkload.key(number) == key
          else { throw FollowedError("\(key) has \(number) after \(least)") }
          seen[key] = number
          valueCount += 1
        } else if least > 0 {
          // Write `least` is a removal, or a removal has followed it.
          while !removes(least) { least += keyCount }
          seen[key] = least
        }
      }
    }
  }
}
