package import Cairn
package import Foundation

/// The contents of a cache's golden store. One cache for each built-in coder of keys and of values
/// wrote into the same store. The tests use this list.
package enum GoldenCache {
  package struct Page: Codable, Hashable, Sendable {
    package var title: String
    package var sizes: [Int]
  }

  package static let page = Page(title: "Grüße/\"1\"", sizes: [0, -1, .max])
  package static let bytes = [UInt8](0...255)
  package static let id = UUID(
    uuid: (0x9A, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 0xFF))
  package static let metadata = Array("metadata".utf8)
  package static let cost = 9_000_000_000
  package static let tag: UInt32 = 0xFEED_0002
  /// Far enough in the future for any test.
  package static let century = Duration.seconds(100 * 365 * 86_400)

  package static func cache<Key: Hashable & Sendable, Value: Sendable>(
    _ path: String, keys: KeyCoder<Key>, values: ValueCoder<Value>
  ) throws -> DiskCache<Key, Value> {
    var configuration = DiskCacheConfiguration()
    configuration.store.segmentByteLimit = 64 << 10
    return try DiskCache.open(
      .path(path), configuration: configuration, keyCoder: keys, valueCoder: values)
  }

  /// Writes the store.
  static func write(path: String) throws {
    let texts = try cache(path, keys: .string, values: .string)
    try texts.setValue("", forKey: "é")
    try texts.setValue("of a text", forKey: "text", options: .metadata(metadata))
    try texts.close()

    let tagged = try cache(path, keys: .string, values: ValueCoder<Page>.json().tagged(tag))
    try tagged.setValue(page, forKey: "tagged")
    try tagged.setValue(
      page, forKey: "with all",
      options: EntryOptions(
        cost: cost, lifetime: .after(century), idleLimit: century, metadata: metadata))
    try tagged.close()

    let integers = try cache(path, keys: KeyCoder<Int>.integer, values: .bytes)
    for number in [0, -1, .max, .min] { try integers.setValue(bytes, forKey: number) }
    try integers.close()

    let short = try cache(path, keys: KeyCoder<UInt16>.integer, values: .data)
    try short.setValue(Data(bytes), forKey: 0x1234)
    try short.close()

    let ids = try cache(
      path, keys: KeyCoder<UUID>.standard, values: ValueCoder<Page>.propertyList())
    try ids.setValue(page, forKey: id)
    try ids.close()

    let pages = try cache(path, keys: KeyCoder<Page>.json(), values: ValueCoder<Int>.json())
    try pages.setValue(-7, forKey: page)
    try pages.close()

    let raw = try cache(path, keys: .bytes, values: .bytes)
    try raw.setValue([], forKey: bytes)
    try raw.close()
  }
}
