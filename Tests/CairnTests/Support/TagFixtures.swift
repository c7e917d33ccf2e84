import Testing

@testable import Cairn

extension TieredScene {
  /// A cache with or without a memory tier.
  func tagged(
    tiered: Bool, count: Int? = nil, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> DiskCache<String, String> {
    if tiered { return try cache(count: count, change) }
    return try disk.cache(count: count, change)
  }
}

extension DiskCache<String, String> {
  /// Removes everything that marks hide, and then the marks.
  func sweepTags() throws {
    try maintain()
    #expect(try statistics()["sweepingTags"] == 0)
  }

  /// Expects that no read finds a key, whatever the kind of read.
  func expectAbsent(_ key: String) throws {
    #expect(try !contains(key))
    #expect(try peekValue(forKey: key) == nil)
    #expect(try info(forKey: key) == nil)
    #expect(try metadata(forKey: key) == nil)
    #expect(try memory?.value(forKey: key) == nil)
    #expect(try memory?.contains(key) != true)
    #expect(try value(forKey: key) == nil)
    #expect(try entry(forKey: key) == nil)
    #expect(try withValue(forKey: key) { _ in true } == nil)
    #expect(self[key] == nil)
    #expect(try !keys().contains(key))
    var seen: [String] = []
    try forEachEntry { entry in
      seen.append(entry.key)
      return .next
    }
    #expect(!seen.contains(key))
    try remove { found, _ in
      #expect(found != key)
      return false
    }
  }
}
