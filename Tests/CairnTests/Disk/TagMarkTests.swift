import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("The record of removed tags", .timeLimit(.minutes(30)))
struct TagMarkTests {
  let scene = TieredScene()

  @Test("No limit and no trim removes a mark", arguments: [false, true])
  func pressure(tiered: Bool) throws {
    let cache = try scene.tagged(tiered: tiered, count: 10) { $0.idleLimit = .seconds(60) }
    try cache.setValue("old", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    for number in 0..<100 {
      try cache.setValue("value", forKey: "\(number)")
      // The mark takes no entry's place.
      #expect(try cache.keys().count <= 10)
      try cache.expectAbsent("a")
    }
    #expect(try cache.keys().count == 10)
    #expect(try cache.statistics()["sweepingTags"] == 1)
    #expect(try cache.trim(.toCount(.max)).count == 0)
    #expect(try cache.trim(.toCount(4)).count == 6)
    #expect(try cache.keys().count == 4)
    try cache.trim(.toBytes(1))
    #expect(try cache.count() == 0)
    try cache.setValue("1", forKey: "b")
    scene.disk.clock.advance(by: .seconds(3600))
    try cache.trim(.unused(for: .seconds(1)))
    try cache.trim(.expired)
    try cache.trim(.toCount(0))
    #expect(try cache.keys().isEmpty)
    #expect(try cache.marks.recordCount() == 1)
    #expect(try cache.store.contains(ReservedKey.marks))
    try cache.sweepTags()
    #expect(try !cache.store.contains(ReservedKey.marks))
    for number in 0..<30 { try cache.setValue("value", forKey: "\(number)") }
    #expect(try cache.count() == 10)
    #expect(try cache.store.count() == 10)
  }

  @Test("A removal of everything removes the marks")
  func removalOfAll() throws {
    let cache = try scene.tagged(tiered: true)
    let counts = Lock<[Int]>([])
    cache.observe { event in
      if case .removedAll(let count) = event { counts.withLock { $0.append(count) } }
    }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.setValue("2", forKey: "b", options: .tags(["y"]))
    try cache.removeAll(tagged: "x")
    try cache.removeAll()
    #expect(counts.withLock { $0 } == [2])
    #expect(try cache.statistics()["sweepingTags"] == 0)
    #expect(!cache.marks.isActive)
    try cache.setValue("3", forKey: "a", options: .tags(["x"]))
    #expect(try cache.value(forKey: "a") == "3")
    #expect(try cache.count() == 1)
    try cache.removeAll(tagged: "x")
    try cache.expectAbsent("a")
  }

  @Test("Observers do not see marks")
  func events() throws {
    let cache = try scene.tagged(tiered: true)
    let told = Lock<[CacheEvent<String>]>([])
    cache.observe { event in told.withLock { $0.append(event) } }
    try cache.setValue("1", forKey: "a", options: .tags(["x"]))
    try cache.removeAll(tagged: "x")
    try cache.removeAll(tagged: "y")
    #expect(told.withLock { $0 } == [.inserted(key: "a")])
    try cache.sweepTags()
    #expect(told.withLock { $0 } == [.inserted(key: "a"), .removed(key: "a", cause: .removed)])
    #expect(try cache.statistics()["replacements"] == 0)
    #expect(try cache.statistics()["removals"] == 1)
  }

  @Test("A damaged record of marks hides all entries with tags")
  func distrusted() throws {
    do {
      let cache = try scene.tagged(tiered: false)
      try cache.setValue("1", forKey: "a", options: .tags(["x"]))
      try cache.setValue("2", forKey: "b")
      try cache.removeAll(tagged: "y")
      try cache.close()
    }
    let store = try scene.disk.store()
    try store.setValue([1, 2, 3], forKey: ReservedKey.marks)
    try store.close()
    let cache = try scene.tagged(tiered: false)
    try cache.expectAbsent("a")
    #expect(try cache.keys() == ["b"])
    try cache.setValue("3", forKey: "c", options: .tags(["x"]))
    #expect(try cache.value(forKey: "c") == "3")
    try cache.sweepTags()
    #expect(try cache.keys().sorted() == ["b", "c"])
  }
}
