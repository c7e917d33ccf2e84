import Cairn
import Foundation
import FuzzSupport
import Testing

@Suite("Views of a store")
struct StoreViewTests {
  struct User: Codable, Equatable, Sendable {
    var name: String
    var age: Int
  }

  private let scene = DiskScene()

  private func open() throws -> Store {
    var configuration = StoreConfiguration()
    configuration.durability = .process
    configuration.clock = scene.clock
    return try Store(path: scene.path, configuration: configuration)
  }

  @Test("Two types share one store, each under its prefix")
  func types() throws {
    let store = try open()
    let users = store.view(of: User.self, prefix: "user/")
    let counts = store.view(of: Int.self, prefix: "count/")
    try users.setValue(User(name: "Ann", age: 30), forKey: "1")
    try counts.setValue(7, forKey: "1")
    #expect(try users.value(forKey: "1") == User(name: "Ann", age: 30))
    #expect(try counts.value(forKey: "1") == 7)
    #expect(try users.value(forKey: "2") == nil)
    #expect(try store.contains("user/1") && store.contains("count/1"))
    var seen: [String: Int] = [:]
    try counts.forEachEntry { entry in
      seen[String(decoding: entry.key, as: UTF8.self)] = entry.value
      return .next
    }
    #expect(seen == ["1": 7])
    #expect(try users.removeValue(forKey: "1"))
    #expect(try users.value(forKey: "1") == nil && counts.value(forKey: "1") == 7)
  }

  @Test("Views of several types share a transaction, and see its writes")
  func transaction() throws {
    let store = try open()
    let users = store.view(of: User.self, prefix: "user/")
    let counts = store.view(of: Int.self, prefix: "count/")
    try counts.setValue(1, forKey: "old")
    var runCount = 0
    try store.write { batch in
      runCount += 1
      let count = try counts.value(forKey: "all", in: &batch) ?? 0
      if runCount == 1 { try counts.setValue(5, forKey: "all") }
      try counts.setValue(count + 1, forKey: "all", in: &batch)
      #expect(try counts.value(forKey: "all", in: &batch) == count + 1)
      try users.setValue(User(name: "Ann", age: 30), forKey: "1", in: &batch)
      #expect(try users.value(forKey: "1", in: &batch)?.name == "Ann")
      try counts.removeValue(forKey: "old", in: &batch)
      #expect(try counts.value(forKey: "old", in: &batch) == nil)
      // A value of another type, in the store and in the batch.
      let texts = store.view(of: [String].self, prefix: "user/")
      #expect(throws: StoreError.self) { try texts.value(forKey: "1", in: &batch) }
    }
    #expect(runCount == 2)
    #expect(try counts.value(forKey: "all") == 6)
    #expect(try counts.value(forKey: "old") == nil)
    #expect(try users.value(forKey: "1") == User(name: "Ann", age: 30))
  }

  @Test("Bytes and text are stored unchanged")
  func plain() throws {
    let store = try open()
    try store.view(of: String.self).setValue("text", forKey: "a")
    #expect(try store.value(forKey: "a") == Array("text".utf8))
    try store.setValue("other", forKey: "b")
    #expect(try store.view(of: String.self).value(forKey: "b") == "other")
  }

  @Test("An update keeps the entry's options, and removes the entry if there is no new value")
  func update() throws {
    let store = try open()
    let counts = store.view(of: Int.self, prefix: "n/")
    #expect(try counts.update(forKey: "a") { ($0 ?? 0) + 1 }?.value == 1)
    try counts.setValue(5, forKey: "b", options: .lifetime(.seconds(60)))
    #expect(try counts.update(forKey: "b") { ($0 ?? 0) + 1 }?.value == 6)
    scene.clock.advance(by: .seconds(61))
    #expect(try counts.value(forKey: "b") == nil)
    #expect(try counts.update(forKey: "a") { _ in nil } == nil)
    #expect(try counts.value(forKey: "a") == nil)
    #expect(throws: CancellationError.self) {
      try counts.update(forKey: "a") { _ in throw CancellationError() }
    }
  }

  @Test("The async form of an update does the same, and loses no change")
  func asyncUpdate() async throws {
    let store = try open()
    let counts = store.view(of: Int.self, prefix: "n/")
    try await counts.setValue(5, forKey: "b", options: .lifetime(.seconds(60)))
    #expect(try await counts.update(forKey: "b") { ($0 ?? 0) + 1 }?.value == 6)
    #expect(try store.info(forKey: "n/b")?.expires != nil)
    #expect(try await counts.update(forKey: "b") { _ in nil } == nil)
    #expect(try await counts.update(forKey: "b") { _ in nil } == nil)
    #expect(try !store.contains("n/b"))
    await #expect(throws: CancellationError.self) {
      try await counts.update(forKey: "a") { _ in throw CancellationError() }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 {
        group.addTask { try await counts.update(forKey: "a") { ($0 ?? 0) + 1 } }
      }
      try await group.waitForAll()
    }
    #expect(try counts.value(forKey: "a") == 100)
    try await store.close()
    await #expect(throws: StoreError.closed(path: scene.path)) {
      try await counts.update(forKey: "a") { $0 }
    }
  }

  @Test("A view has its own keys, takes values and extends lifetimes")
  func calls() throws {
    let store = try open()
    let view = store.view(of: Int.self, prefix: "n/")
    try store.setValue("other", forKey: "a")
    try view.setValue(1, forKey: "a", lifetime: .seconds(1000))
    try view.setValue(2, forKey: "b", lifetime: .seconds(1000))
    #expect(Set(try view.keys()) == [[0x61], [0x62]])
    #expect(try view.contains("a") && !view.contains("c"))
    let before = try #require(try view.info(forKey: "a")?.expires)
    #expect(try view.setLifetime(.seconds(5000), forKey: "a"))
    #expect(try #require(try view.info(forKey: "a")?.expires) > before)
    #expect(try !view.setLifetime(.seconds(5000), forKey: "c"))
    #expect(try view.takeValue(forKey: "a") == 1)
    #expect(try view.takeValue(forKey: "a") == nil)
    #expect(try view.keys() == [[0x62]] && store.contains("a"))
  }

  @Test(
    "An entry has the key without the prefix, the value and its metadata, which an update keeps")
  func entries() throws {
    let view = try open().view(of: Int.self, prefix: "n/")
    try view.setValue(1, forKey: "a", options: EntryOptions(cost: 3, metadata: Array("tag".utf8)))
    try view.update(forKey: "a") { ($0 ?? 0) + 1 }
    let entry = try #require(try view.entry(forKey: "a"))
    #expect(entry.key == [0x61] && entry.value == 2 && entry.info.cost == 3)
    #expect(entry.metadata == Array("tag".utf8) && entry.tags == [])
    try view.update(forKey: "a", options: .metadata("new")) { $0 }
    #expect(try view.entry(forKey: "a")?.metadata == Array("new".utf8))
    #expect(try view.entry(forKey: "b") == nil)
  }

  @Test("An update by a view of a cache's store keeps the tags")
  func tags() throws {
    let scene = DiskScene()
    let cache: DiskCache<String, Int> = try scene.cache()
    try cache.setValue(1, forKey: "a", options: EntryOptions(metadata: [7], tags: ["x", "y"]))
    let path = cache.path
    try cache.close()
    let store = try Store(path: path)
    let view = store.view(of: Int.self)
    try view.update(forKey: "a") { ($0 ?? 0) + 1 }
    #expect(try view.entry(forKey: "a")?.tags == ["x", "y"])
    try store.close()
    let again: DiskCache<String, Int> = try scene.cache()
    let entry = try #require(try again.entry(forKey: "a"))
    #expect(entry.value == 2 && entry.tags == ["x", "y"] && entry.metadata == [7])
  }

  @Test("The async forms of these calls do the same")
  func asyncCalls() async throws {
    let view = try open().view(of: Int.self, prefix: "n/")
    try await view.setValue(1, forKey: "a", lifetime: .seconds(1000))
    let before = try #require(try view.info(forKey: "a")?.expires)
    #expect(try await view.setLifetime(.seconds(5000), forKey: "a"))
    #expect(try #require(try view.info(forKey: "a")?.expires) > before)
    #expect(try await view.takeValue(forKey: "a") == 1)
    #expect(try await view.takeValue(forKey: "a") == nil)
  }

  @Test("Another tag, and bytes that are not a value, are errors that say so")
  func errors() throws {
    let store = try open()
    let old = store.view(coder: ValueCoder<Int>.json().tagged(1))
    let new = store.view(coder: ValueCoder<Int>.json().tagged(2))
    try old.setValue(1, forKey: "a")
    #expect(try old.value(forKey: "a") == 1)
    let changed = #expect(throws: StoreError.self) { try new.value(forKey: "a") }
    guard case .undecodable(_, "it was written with the tag 1, not 2") = changed else {
      return #expect(Bool(false), "\(changed!)")
    }
    try store.setValue("no JSON", forKey: "b")
    let bad = #expect(throws: StoreError.self) { try store.view(of: Int.self).value(forKey: "b") }
    guard case .undecodable = bad else { return #expect(Bool(false), "\(bad!)") }
    try store.close()
    let closed = #expect(throws: StoreError.self) { try old.value(forKey: "a") }
    guard case .closed = closed else { return #expect(Bool(false), "\(closed!)") }
  }

  @Test("In async code, writes hold no thread, and updates of many tasks are all counted")
  func tasks() async throws {
    let store = try open()
    let counts = store.view(of: Int.self)
    try await counts.setValue(0, forKey: "sum")
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<100 {
        group.addTask { _ = try? counts.update(forKey: "sum") { ($0 ?? 0) + 1 } }
      }
    }
    #expect(try counts.value(forKey: "sum") == 100)
    #expect(try await counts.removeValue(forKey: "sum"))
    try await store.close()
  }
}
