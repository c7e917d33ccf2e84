import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

@Suite("A cache on disk")
struct DiskCacheTests {
  struct Page: Codable, Sendable, Equatable {
    var title: String
    var size: Int
  }

  let scene = DiskScene()

  @Test("A value that was set is found, even after a reopen")
  func roundTrip() throws {
    let page = Page(title: "é", size: 3)
    do {
      let cache: DiskCache<String, Page> = try scene.cache()
      try cache.setValue(page, forKey: "a")
      #expect(try cache.value(forKey: "a") == page)
      try cache.close()
    }
    let cache: DiskCache<String, Page> = try scene.cache()
    #expect(try cache.value(forKey: "a") == page)
    #expect(try cache.value(forKey: "b") == nil)
    #expect(try cache.count() == 1)
  }

  @Test("An entry has the value and everything known about it")
  func entry() throws {
    let cache: DiskCache<String, String> = try scene.cache()
    let version = try cache.setValue(
      "value", forKey: "key",
      options: EntryOptions(
        cost: 7, lifetime: .seconds(60), idleLimit: .seconds(30), metadata: [1, 2, 3]))
    let entry = try #require(try cache.entry(forKey: "key"))
    #expect(entry.key == "key")
    #expect(entry.value == "value")
    #expect(entry.metadata == [1, 2, 3])
    #expect(entry.info.version == version)
    #expect(entry.info.cost == 7)
    #expect(entry.info.valueByteCount == 5)
    #expect(entry.info.written == ManualClock.start)
    #expect(entry.info.expires == ManualClock.start.advanced(by: .seconds(60)))
    #expect(entry.info.idleLimit == .seconds(30))
    #expect(try cache.info(forKey: "key") == entry.info)
    #expect(try cache.metadata(forKey: "key") == [1, 2, 3])
    #expect(try cache.metadata(forKey: "other") == nil)
    // Without its own cost, a value costs its bytes.
    try cache.setValue("four", forKey: "other")
    #expect(try cache.info(forKey: "other")?.cost == 4)
    #expect(try cache.metadata(forKey: "other") == [])
  }

  @Test("A value is removed, taken, compared and set")
  func writes() throws {
    let cache: DiskCache<String, [UInt8]> = try scene.cache()
    let first = try cache.setValue([1], forKey: "a")
    #expect(try cache.compareAndSet([2], forKey: "a", expecting: nil) == .mismatch(current: first))
    guard case .stored(let second) = try cache.compareAndSet([2], forKey: "a", expecting: first)
    else { return #expect(Bool(false), "it had that version") }
    #expect(try cache.value(forKey: "a") == [2])
    #expect(try !cache.compareAndRemove(forKey: "a", expecting: first))
    #expect(try cache.compareAndRemove(forKey: "a", expecting: second))
    #expect(try !cache.contains("a"))
    try cache.setValue([3], forKey: "a")
    #expect(try cache.takeValue(forKey: "a") == [3])
    #expect(try cache.takeValue(forKey: "a") == nil)
    try cache.setValue([], forKey: "empty")
    #expect(try cache.value(forKey: "empty") == [])
    #expect(try cache.removeValue(forKey: "empty"))
    #expect(try !cache.removeValue(forKey: "empty"))
  }

  @Test("Everything can be removed at once and by trims")
  func removingMany() throws {
    let cache: DiskCache<Int, String> = try scene.cache()
    for number in 0..<10 { try cache.setValue("value", forKey: number) }
    _ = try cache.value(forKey: 0)
    let summary = try cache.trim(.toCount(6))
    #expect(summary.count == 4)
    #expect(try cache.keys().sorted() == [0, 5, 6, 7, 8, 9])
    let each = try cache.totalCost() / 6
    #expect(summary.cost == 4 * each)
    #expect(try cache.trim(.toBytes(4 * each)).count == 2)
    #expect(try cache.keys().sorted() == [0, 7, 8, 9])
    try cache.removeAll()
    #expect(try cache.count() == 0)
    #expect(try cache.totalCost() == 0)
  }
}
