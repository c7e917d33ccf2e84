import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("How a cache of two tiers distinguishes keys")
struct TierKeyTests {
  let scene = TieredScene()

  /// The same letter, as one scalar and as two.
  static let composed = "caf\u{E9}"
  static let decomposed = "cafe\u{301}"

  @Test("Canonically equal strings with different bytes are two keys, in both tiers")
  func canonicalEquality() throws {
    #expect(Self.composed == Self.decomposed)
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: Self.composed)
    #expect(try cache.value(forKey: Self.decomposed) == nil)
    try cache.setValue(2, forKey: Self.decomposed)
    for _ in 0..<2 {
      #expect(try cache.value(forKey: Self.composed) == 1)
      #expect(try cache.value(forKey: Self.decomposed) == 2)
      #expect(try cache.count() == 2 && cache.tier.count() == 2)
      cache.tier.removeAll()
    }
    try cache.removeValue(forKey: Self.composed)
    #expect(try cache.value(forKey: Self.composed) == nil)
    #expect(try cache.value(forKey: Self.decomposed) == 2)
    // This holds for equal lengths in UTF-8 too.
    let (one, other) = ("a\u{323}\u{302}", "a\u{302}\u{323}")
    #expect(one == other && one.utf8.count == other.utf8.count)
    try cache.setValue(3, forKey: one)
    #expect(try cache.value(forKey: other) == nil)
  }

  struct Name: Hashable, Sendable, Codable {
    var text: String
  }

  @Test("Keys that are encoded are distinguished by their bytes, whatever their equality says")
  func encoded() throws {
    let cache: DiskCache<Name, Int> = try scene.cache()
    try cache.setValue(1, forKey: Name(text: Self.composed))
    try cache.setValue(2, forKey: Name(text: Self.decomposed))
    #expect(try cache.value(forKey: Name(text: Self.composed)) == 1)
    #expect(try cache.value(forKey: Name(text: Self.decomposed)) == 2)
    #expect(try cache.audit() == [])
  }

  @Test("Keys that differ but have the same bytes are one key, in both tiers")
  func coarse() throws {
    let coder = KeyCoder<String>.custom(
      encode: { Array($0.lowercased().utf8) },
      decode: { String(decoding: [UInt8](copying: $0), as: UTF8.self) })
    let cache: DiskCache<String, Int> = try scene.cache(keys: coder, values: .standard)
    try cache.setValue(1, forKey: "Key")
    try cache.setValue(2, forKey: "KEY")
    #expect(try cache.value(forKey: "Key") == 2)
    #expect(cache.tier.count() == 1)
    try cache.removeValue(forKey: "key")
    #expect(try cache.value(forKey: "Key") == nil && cache.tier.count() == 0)
  }

  @Test("A key that can no longer be decoded leaves nothing stale")
  func undecodable() throws {
    struct Odd: Error {}
    let fails = Record<Bool>()
    let coder = KeyCoder<String>.custom(
      encode: { Array($0.utf8) },
      decode: { bytes in
        if !fails.all.isEmpty { throw Odd() }
        return String(decoding: [UInt8](copying: bytes), as: UTF8.self)
      })
    let cache: DiskCache<String, Int> = try scene.cache(keys: coder, values: .standard)
    try cache.setValue(1, forKey: "a")
    fails.add(true)
    try cache.setStored(2, forKey: "a")
    #expect(try cache.value(forKey: "a") == 2)
  }

  @Test("A key that cannot be decoded takes only its own value out of memory")
  func undecodableAlone() throws {
    struct Odd: Error {}
    let coder = KeyCoder<String>.custom(
      encode: { Array($0.utf8) }, decode: { _ in throw Odd() })
    let cache: DiskCache<String, Int> = try scene.cache(keys: coder, values: .standard)
    for key in ["a", "b", "c"] { try cache.setValue(1, forKey: key) }
    try cache.setValue(2, forKey: "a")
    #expect(cache.tier.count() == 3)
    try cache.setStored(3, forKey: "a")
    try cache.removeValue(forKey: "b")
    #expect(try cache.tier.contains("c") && !cache.tier.contains("a"))
    #expect(try cache.values(forKeys: ["a", "b", "c"]) == [3, nil, 1])
  }

  @Test("A batch encodes each key once, before anything is written")
  func batches() throws {
    struct Odd: Error {}
    let encoded = Record<String>()
    let coder = KeyCoder<String>.custom(
      encode: {
        if encoded.all.contains($0) { throw Odd() }
        encoded.add($0)
        return Array($0.utf8)
      }, decode: { String(copying: $0) ?? "" })
    let cache: DiskCache<String, Int> = try scene.cache(keys: coder, values: .standard)
    try cache.setValues([(key: "a", value: 1), (key: "b", value: 2)])
    encoded.removeAll()
    #expect(try cache.tier.held.peekValue(forKey: cache.tierKey("a"))?.value == 1)
    #expect(try cache.statistics()["insertions"] == 2)
  }

  @Test("Keys of the other kinds", arguments: [0, 1, 2])
  func kinds(number: Int) throws {
    func check<Key: Hashable & Sendable & Codable>(_ keys: [Key]) throws {
      let cache: DiskCache<Key, Int> = try scene.cache()
      for (number, key) in keys.enumerated() { try cache.setValue(number, forKey: key) }
      for _ in 0..<2 {
        for (number, key) in keys.enumerated() {
          #expect(try cache.value(forKey: key) == number)
        }
        cache.tier.removeAll()
      }
      #expect(try Set(cache.keys()) == Set(keys))
      try cache.removeValue(forKey: keys[0])
      #expect(try cache.value(forKey: keys[0]) == nil && cache.count() == keys.count - 1)
    }
    switch number {
    case 0: try check([Int.min, -1, 0, 7, .max])
    case 1: try check([Data([1]), Data([1, 2])])
    default: try check([UUID(), UUID(), UUID()])
    }
  }
}
