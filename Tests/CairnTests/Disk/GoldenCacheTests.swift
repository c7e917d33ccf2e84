import Cairn
import Foundation
import KillWriter
import Testing

/// A store that caches wrote once, by `KillWriter golden-cache`. Every version since then reads it.
@Suite("Golden caches")
struct GoldenCacheTests {
  typealias Page = GoldenCache.Page
  let scene = DiskScene()

  /// A copy, with the permissions of a store.
  private func copy(_ name: String) throws {
    let source = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "GoldenCaches/\(name)")
    try FileManager.default.createDirectory(
      atPath: scene.path, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    for file in try FileManager.default.contentsOfDirectory(atPath: source.path) {
      let isMade = FileManager.default.createFile(
        atPath: scene.path + "/" + file,
        contents: try Data(contentsOf: source.appending(path: file)),
        attributes: [.posixPermissions: 0o600])
      #expect(isMade)
    }
  }

  /// Whether the cache of these coders has exactly what was written.
  private func check<Key: Hashable & Sendable, Value: Equatable & Sendable>(
    _ keys: KeyCoder<Key>, _ values: ValueCoder<Value>, _ expected: [Key: Value],
    and body: (DiskCache<Key, Value>) throws -> Void = { _ in }
  ) throws {
    let cache = try GoldenCache.cache(scene.path, keys: keys, values: values)
    for (key, value) in expected {
      #expect(try cache.value(forKey: key) == value)
      // A value written again has the same key.
      let count = try cache.count()
      try cache.setValue(value, forKey: key)
      #expect(try cache.count() == count)
      #expect(try cache.value(forKey: key) == value)
    }
    try body(cache)
    try cache.close()
  }

  @Test("is read by each coder, and written to", arguments: ["1.0"])
  func read(name: String) throws {
    try copy(name)
    let page = GoldenCache.page
    let tagged = ValueCoder<Page>.json().tagged(GoldenCache.tag)
    let before = try GoldenCache.cache(scene.path, keys: .string, values: tagged)
    let entry = try #require(try before.entry(forKey: "with all"))
    #expect(entry.value == page)
    #expect(entry.info.cost == GoldenCache.cost)
    #expect(entry.metadata == GoldenCache.metadata)
    #expect(entry.info.expires != nil)
    #expect(entry.info.idleLimit == GoldenCache.century)
    #expect(try before.count() == 12)
    try before.close()
    let texts = try GoldenCache.cache(scene.path, keys: .string, values: .string)
    #expect(try texts.metadata(forKey: "text") == GoldenCache.metadata)
    #expect(try texts.metadata(forKey: "é") == [])
    #expect(throws: StoreError.self) { try texts.value(forKey: "tagged") }
    try texts.close()

    try check(.string, .string, ["é": "", "text": "of a text"])
    try check(.string, tagged, ["tagged": page, "with all": page])
    let bytes = GoldenCache.bytes
    try check(
      KeyCoder<Int>.integer, .bytes, [0: bytes, -1: bytes, .max: bytes, .min: bytes])
    try check(KeyCoder<UInt16>.integer, .data, [0x1234: Data(bytes)])
    try check(KeyCoder<UUID>.standard, .propertyList(), [GoldenCache.id: page])
    try check(KeyCoder<Page>.json(), ValueCoder<Int>.json(), [page: -7])
    try check(.bytes, .bytes, [bytes: []])
  }
}
