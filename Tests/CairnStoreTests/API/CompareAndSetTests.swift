import CairnStore
import FuzzSupport
import Testing

@Suite("Compare-and-set")
struct CompareAndSetTests {
  let directory: TemporaryDirectory
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store)
  }

  @Test("With the right version, a compare-and-set writes and returns the new version")
  func right() throws {
    let version = try store.setValue("one", forKey: "key")
    guard case .stored(let next) = try store.compareAndSet("two", forKey: "key", expecting: version)
    else {
      Issue.record("not stored")
      return
    }
    #expect(next > version)
    #expect(try store.info(forKey: "key")?.version == next)
    #expect(try store.text("key") == "two")
  }

  @Test("With a wrong version, a compare-and-set writes nothing and returns the current one")
  func wrong() throws {
    let version = try store.setValue("one", forKey: "key")
    let result = try store.compareAndSet("two", forKey: "key", expecting: version + 1)
    #expect(result == .mismatch(current: version))
    #expect(try store.text("key") == "one")
    #expect(try store.statistics().lastVersion == version)
  }

  @Test("A compare-and-set that expects absence writes an absent key once")
  func absent() throws {
    #expect(try store.compareAndSet("one", forKey: "key", expecting: nil) == .stored(version: 1))
    #expect(
      try store.compareAndSet("two", forKey: "key", expecting: nil) == .mismatch(current: 1))
    #expect(try store.text("key") == "one")
  }

  @Test("A compare-and-set that expects a version of an absent key writes nothing")
  func missing() throws {
    #expect(
      try store.compareAndSet("one", forKey: "key", expecting: 3) == .mismatch(current: nil))
    #expect(try store.value(forKey: "key") == nil)
  }

  @Test("Attributes are stored with the value")
  func attributes() throws {
    _ = try store.compareAndSet(
      "one", forKey: "key", expecting: nil, options: EntryOptions(cost: 4, metadata: [9]))
    #expect(try store.entry(forKey: "key")?.info.cost == 4)
    #expect(try store.entry(forKey: "key")?.metadata == [9])
  }

  @Test("A value larger than a segment is compared and set like any other")
  func large() throws {
    let large = [UInt8](repeating: 5, count: 200_000)
    #expect(try store.compareAndSet(large, forKey: "key", expecting: nil) == .stored(version: 1))
    #expect(
      try store.compareAndSet(large, forKey: "key", expecting: nil) == .mismatch(current: 1))
    #expect(try store.value(forKey: "key") == large)
  }

  @Test("Compare-and-remove removes only with the right version")
  func remove() throws {
    let version = try store.setValue("one", forKey: "key")
    #expect(try store.compareAndRemove(forKey: "key", expecting: version + 1) == false)
    #expect(try store.text("key") == "one")
    #expect(try store.compareAndRemove(forKey: "key", expecting: version))
    #expect(try store.value(forKey: "key") == nil)
    #expect(try store.compareAndRemove(forKey: "key", expecting: version) == false)
  }

  @Test("Threads that increment by compare-and-set lose no increment")
  func increments() throws {
    let store = store
    try store.setValue("0", forKey: "key")
    try onThreads(4) { _ in
      for _ in 0..<100 {
        while true {
          let entry = try #require(try store.entry(forKey: "key"))
          let number = try #require(Int(String(decoding: entry.value, as: UTF8.self)))
          let result = try store.compareAndSet(
            "\(number + 1)", forKey: "key", expecting: entry.info.version)
          if case .stored = result { break }
        }
      }
    }
    #expect(try store.text("key") == "400")
  }

  @Test("A compare-and-set on a damaged record throws", arguments: [nil, 1] as [UInt64?])
  func damaged(expected: UInt64?) throws {
    // A record that cannot be read must not count as absent.
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "the key")
    try scene.damage("the key")
    #expect(throws: StoreError.self) {
      try store.compareAndSet("other", forKey: "the key", expecting: expected)
    }
    #expect(try store.statistics().lastVersion == 1)
  }
}
