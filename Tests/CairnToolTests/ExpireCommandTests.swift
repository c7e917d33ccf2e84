import Cairn
import Testing

@Suite("expire")
struct ExpireCommandTests {
  let directory: TemporaryDirectory
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    let open = try Store(path: store)
    try open.setValue(
      "never", forKey: "never",
      options: EntryOptions(cost: 7, idleLimit: .seconds(90_000), metadata: [1, 2]))
    try open.setValue("soon", forKey: "soon", lifetime: .seconds(1000))
    try open.setValue("late", forKey: "late", lifetime: .seconds(1_000_000))
    try open.close()
  }

  private func info(_ key: String) throws -> EntryInfo {
    let open = try Store(readingAt: store)
    return try #require(try open.info(forKey: key))
  }

  /// The minutes that a key has left, rounded.
  private func minutes(_ key: String) throws -> Int64 {
    let expires = try #require(try info(key).expires)
    let left = expires.millisecondsSinceEpoch - SystemClock().now().millisecondsSinceEpoch
    return (left + 30_000) / 60_000
  }

  @Test func `a key expires when it is told to, sooner or later than before`() throws {
    let versions = try ["soon", "late"].map { try info($0).version }
    let outcome = try cairn("expire", store, "never", "soon", "late", "--lifetime", "2h")
    #expect(outcome.status == 0)
    #expect(outcome.text == "3 keys expire in 2 h 0 min\n")
    for key in ["never", "soon", "late"] { #expect(try minutes(key) == 120, "\(key)") }
    // The value is written again.
    #expect(try info("soon").version > versions[0])
    #expect(try info("late").version > versions[1])
    let changed = try info("never")
    #expect(changed.cost == 7 && changed.idleLimit == .seconds(90_000))
    #expect(changed.metadataByteCount == 2)
    for key in ["never", "soon", "late"] { #expect(try cairn("get", store, key).text == key) }
  }

  @Test func `a key that is missing exits 1, and the others are changed`() throws {
    let outcome = try cairn("expire", store, "none", "never", "--lifetime=1h", "--json")
    #expect(outcome.status == 1)
    #expect(outcome.text == #"{"changed": 1, "missing": 1}"# + "\n")
    #expect(outcome.errors == "cairn: expire: none: no such key\n")
    #expect(try minutes("never") == 60)
    #expect(try cairn("expire", directory("nowhere"), "key", "--lifetime", "1h").status == 5)
    #expect(!directory.exists("nowhere"))
  }

  @Test func `without a lifetime it says which command removes keys`() throws {
    let outcome = try cairn("expire", store, "soon")
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains("--lifetime is needed; cairn delete removes keys at once"))
  }

  @Test func `a cache's entry with tags changes unless a tag is being removed`() throws {
    let path = directory("cache")
    let cache = try DiskCache<String, String>.open(
      .path(path), configuration: DiskCacheConfiguration(),
      keyCoder: .standard, valueCoder: .standard)
    try cache.setValue(
      "value", forKey: "key", options: EntryOptions(lifetime: .seconds(5000), tags: ["t"]))
    try cache.close()
    let key = try #require(try cairn("keys", path).lines.first)
    for lifetime in ["3h", "1h"] {
      #expect(try cairn("expire", path, key, "--lifetime", lifetime).status == 0)
    }
    // The mark of a removed tag. A cache would soon remove the entry and the mark.
    let again = try Store(path: path)
    try again.setValue([1], forKey: ReservedKey.marks)
    try again.close()
    let outcome = try cairn("expire", path, key, "--lifetime", "1h")
    #expect(outcome.status == 5)
    #expect(
      outcome.errors
        == "cairn: expire: \(key): the cache has not finished the removal of a tag\n")
    #expect(outcome.text == "0 keys expire in 1 h 0 min\n")
  }

  @Test func `metadata that a later version may understand is not rewritten`() throws {
    let path = directory("later")
    let store = try Store(path: path)
    try store.setValue(
      "value", forKey: "key",
      options: EntryOptions(lifetime: .seconds(5000), metadata: [CacheMetadata.mark, 0xFF, 1]))
    let version = try #require(try store.info(forKey: "key")).version
    try store.close()
    #expect(try cairn("expire", path, "key", "--lifetime", "1h").status == 5)
    let reader = try Store(readingAt: path)
    #expect(try reader.info(forKey: "key")?.version == version)
    try reader.close()
  }
}
