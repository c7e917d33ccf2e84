import CairnStore
import FuzzSupport
import Testing

@Suite("Counters")
struct IncrementTests {
  let directory: TemporaryDirectory
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, .small(durability: .process))
  }

  @Test("A counter begins at 0, counts both ways, and is 8 bytes, the least significant first")
  func bytes() throws {
    #expect(try store.increment(forKey: "n") == 1)
    #expect(try store.increment(forKey: "n", by: 0x0102) == 0x0103)
    #expect(try store.value(forKey: "n") == [3, 1, 0, 0, 0, 0, 0, 0])
    #expect(try store.increment(forKey: "n", by: -0x0105) == -2)
    #expect(try store.value(forKey: "n") == [0xFE] + [UInt8](repeating: 0xFF, count: 7))
    #expect(try store.increment(forKey: "n", by: .max) == .max - 2)
  }

  @Test("A value of another size stays unchanged, and so does a counter that would overflow")
  func refused() async throws {
    try await store.setValue("text", forKey: "text")
    #expect(
      throws: StoreError.notACounter(
        reason: "the value is not a counter: it has 4 bytes, and a counter has 8")
    ) {
      try store.increment(forKey: "text")
    }
    await #expect(
      throws: StoreError.notACounter(
        reason: "the value is not a counter: it has 4 bytes, and a counter has 8")
    ) {
      try await store.increment(forKey: "text")
    }
    #expect(try store.value(forKey: "text") == Array("text".utf8))
    try await store.increment(forKey: "n", by: .max)
    await #expect(throws: StoreError.notACounter(reason: "the counter would overflow 64 bits")) {
      try await store.increment(forKey: "n")
    }
    #expect(try await store.increment(forKey: "n", by: -1) == .max - 1)
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.increment(forKey: "")
    }
  }

  @Test("An increment keeps the entry's options; a new entry gets the given ones")
  func options() throws {
    let options = EntryOptions(
      cost: 7, lifetime: .seconds(1000), idleLimit: .seconds(500), metadata: [1, 2])
    try store.increment(forKey: "n", options: options)
    let before = try #require(try store.entry(forKey: "n"))
    #expect(before.info.cost == 7 && before.metadata == [1, 2])
    try store.increment(forKey: "n", by: 4, options: .cost(1))
    let after = try #require(try store.entry(forKey: "n"))
    #expect(after.info.cost == 7 && after.metadata == [1, 2])
    #expect(after.info.expires == before.info.expires)
    #expect(after.info.idleLimit == before.info.idleLimit)
    #expect(after.version > before.version)
    #expect(after.value == [5, 0, 0, 0, 0, 0, 0, 0])
  }

  @Test("Threads and tasks lose no increment")
  func together() async throws {
    let threads = (0..<4).map { _ in
      Background { [store] in for _ in 0..<500 { try store.increment(forKey: "n") } }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 {
        group.addTask { [store] in
          for _ in 0..<5 { try await store.increment(forKey: "n", by: 2) }
        }
      }
      try await group.waitForAll()
    }
    for thread in threads { #expect(thread.finishes() && thread.error == nil) }
    #expect(try await store.increment(forKey: "n", by: 0) == 4 * 500 + 100 * 5 * 2)
  }

  @Test("A counter is read as a number, and only a counter")
  func counter() throws {
    #expect(try store.counter(forKey: "n") == nil)
    try store.increment(forKey: "n", by: -3, lifetime: .hours(1))
    #expect(try store.counter(forKey: "n") == -3)
    #expect(try store.info(forKey: "n")?.expires != nil)
    try store.setValue("text", forKey: "t")
    #expect(
      throws: StoreError.notACounter(
        reason: "the value is not a counter: it has 4 bytes, and a counter has 8")
    ) {
      try store.counter(forKey: "t")
    }
  }

  @Test("Keys by prefix")
  func keys() async throws {
    try await store.setValues(
      ["a/1", "a/2", "b/1"].map { (key: $0, value: "v") })
    #expect(Set(try store.keys(prefix: "a/")) == [Array("a/1".utf8), Array("a/2".utf8)])
    #expect(try store.keys().count == 3)
    #expect(try store.keys(prefix: "c").isEmpty)
  }
}
