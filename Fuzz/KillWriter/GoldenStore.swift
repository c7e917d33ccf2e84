import CairnLibC
import CairnStore

/// The stores that every later version must open: one that was closed, and others whose process
/// died. They contain every kind of file and record. `entries` lists their contents for the tests.
package enum GoldenStore {
  package struct Expected: Equatable, Sendable {
    package var byteCount: Int
    package var cost: Int?
    package var metadata: [UInt8]
    package var hasEnd: Bool
    package var hasIdleLimit: Bool

    package init(
      byteCount: Int, cost: Int? = nil, metadata: [UInt8] = [], hasEnd: Bool = false,
      hasIdleLimit: Bool = false
    ) {
      self.byteCount = byteCount
      self.cost = cost
      self.metadata = metadata
      self.hasEnd = hasEnd
      self.hasIdleLimit = hasIdleLimit
    }
  }

  /// Far enough in the future for any test.
  private static let century = Duration.seconds(100 * 365 * 86_400)

  package static func value(_ key: String, byteCount: Int) -> [UInt8] {
    let seed = key.utf8.reduce(5381) { ($0 &* 33 &+ Int($1)) & 0xFFFF }
    return (0..<byteCount).map { UInt8(truncatingIfNeeded: ($0 &* 31 &+ seed) >> 3 &+ $0) }
  }

  /// The contents of each store.
  package static let entries: [String: Expected] = {
    var entries: [String: Expected] = [
      "plain": Expected(byteCount: 100), "empty": Expected(byteCount: 0),
      "of its own segment": Expected(byteCount: 70_000),
      "overwritten": Expected(byteCount: 60), "set again": Expected(byteCount: 33),
      "in a batch": Expected(byteCount: 20), "also in the batch": Expected(byteCount: 5000),
      "compared and set": Expected(byteCount: 44),
      "with all": Expected(
        byteCount: 12, cost: 7, metadata: Array("metadata".utf8), hasEnd: true, hasIdleLimit: true),
      "extended": Expected(byteCount: 9, hasEnd: true),
      String(repeating: "long key ", count: 60): Expected(byteCount: 3),
    ]
    for number in 0..<40 { entries["number \(number)"] = Expected(byteCount: 400 + number) }
    return entries
  }()

  /// Keys that once existed.
  package static let absent = [
    "before all was removed", "removed", "expired", "removed in a batch",
  ]

  /// How the last session left the store.
  package enum End: String {
    /// It was closed.
    case closed
    /// Its process died.
    case killed
    /// It was closed. The next session continued in the same segment, and its process died.
    case resumed
  }

  /// The additional contents of a store that was resumed.
  package static let entriesAfterwards = ["after a close": Expected(byteCount: 200)]

  /// Writes one of the stores.
  static func write(path: String, _ moment: End) throws {
    var store = try Store(path: path, configuration: goldenConfiguration)
    try begin(store)
    if moment == .killed {
      // A close with a checkpoint; the next session writes beyond it.
      try store.close()
      store = try Store(path: path, configuration: goldenConfiguration)
    }
    try end(store)
    try store.sync()
    if moment == .killed { _exit(0) }
    try store.close()
    if moment == .closed { return }
    store = try Store(path: path, configuration: goldenConfiguration)
    for (key, expected) in entriesAfterwards {
      try store.setValue(value(key, byteCount: expected.byteCount), forKey: key)
    }
    _exit(0)
  }

  static var goldenConfiguration: StoreConfiguration {
    var configuration = configuration()
    configuration.checkpointRecordThreshold = 0
    return configuration
  }

  /// Writes what is in the checkpoint if there are two sessions.
  static func begin(_ store: Store) throws {
    func set(_ key: String, _ byteCount: Int) throws {
      try store.setValue(value(key, byteCount: byteCount), forKey: key)
    }
    try set("before all was removed", 1000)
    try store.removeAll()
    for number in 0..<40 {
      try set("number \(number)", 3000)
      try set("number \(number)", 400 + number)
    }
    for key in ["overwritten", "removed", "set again"] { try set(key, 500) }
    // The next compaction moves some of what follows. Tombstones stay in the log in between.
    try store.compact()
    try store.removeValue(forKey: "removed")
    try store.removeValue(forKey: "set again")
    try set("set again", 33)
    try set("overwritten", 60)
    try set("plain", 100)
    try set("empty", 0)
    try set("of its own segment", 70_000)
    try set(String(repeating: "long key ", count: 60), 3)
    try set("compared and set", 10)
    let version = try store.info(forKey: "compared and set")?.version
    _ = try store.compareAndSet(
      value("compared and set", byteCount: 44), forKey: "compared and set", expecting: version)
    try store.setValue(
      value("with all", byteCount: 12), forKey: "with all",
      options: EntryOptions(
        cost: 7, lifetime: .after(century), idleLimit: century, metadata: Array("metadata".utf8)))
    try store.setValue([1], forKey: "expired", lifetime: .seconds(0))
    try set("removed in a batch", 10)
  }

  /// Writes the contents that come after that checkpoint.
  static func end(_ store: Store) throws {
    try store.write { batch in
      try batch.setValue(value("in a batch", byteCount: 20), forKey: "in a batch")
      try batch.removeValue(forKey: "removed in a batch")
      try batch.setValue(value("also in the batch", byteCount: 5000), forKey: "also in the batch")
    }
    try store.setValue(value("extended", byteCount: 9), forKey: "extended", lifetime: .seconds(900))
    try store.setLifetime(.after(century), forKey: "extended")
  }
}
