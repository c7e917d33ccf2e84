/// A two-tier cache simple enough to be obviously correct: one dictionary, searched for everything.
/// Memory contains some of what is on disk and changes no result, so the model has no memory tier.
struct TieredModel {
  struct Entry: Equatable {
    var value: String
    var version: UInt64
    var cost: Int?
    /// Milliseconds.
    var written: Int64
    var accessed: Int64
    var expires: Int64?
    var idleLimit: Int64?

    func hasExpired(at now: Int64) -> Bool {
      expires.map { $0 <= now } == true || idleLimit.map { accessed + $0 <= now } == true
    }
  }

  /// An expired value stays until it is removed. No call shows this.
  private(set) var entries: [Int: Entry] = [:]
  var now: Int64

  /// What a read finds.
  func entry(_ key: Int) -> Entry? {
    guard let entry = entries[key], !entry.hasExpired(at: now) else { return nil }
    return entry
  }

  /// What a read finds. Counts as an access.
  mutating func read(_ key: Int) -> Entry? {
    guard var entry = entry(key) else { return nil }
    entry.accessed = now
    entries[key] = entry
    return entry
  }

  mutating func set(_ entry: Entry, forKey key: Int) { entries[key] = entry }

  /// - Returns: the old value.
  mutating func remove(_ key: Int) -> Entry? {
    defer { entries[key] = nil }
    return entry(key)
  }

  mutating func removeAll() { entries = [:] }

  /// - Parameter version: the version that the entry then has.
  /// - Returns: whether the key exists.
  mutating func setLifetime(_ key: Int, to milliseconds: Int64, version: UInt64?) -> Bool {
    guard var entry = entry(key) else { return false }
    if entry.expires != now + milliseconds {
      entry.expires = now + milliseconds
      (entry.version, entry.written, entry.accessed) = (version ?? 0, now, now)
      entries[key] = entry
    }
    return true
  }

  var keys: [Int] { entries.keys.filter { entry($0) != nil }.sorted() }
}
