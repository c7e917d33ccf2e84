import CairnStore
import FuzzSupport
import Testing

@Suite("Batches")
struct BatchTests {
  let directory: TemporaryDirectory
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store)
  }

  @Test("All operations are applied, and the closure's result is returned")
  func all() throws {
    try store.setValue("old", forKey: "a")
    let result = try store.write { batch in
      try batch.setValue("1", forKey: "b")
      try batch.removeValue(forKey: "a")
      try batch.setValue("2", forKey: "c", options: EntryOptions(cost: 5, metadata: [1]))
      return batch.count
    }
    #expect(result == 3)
    #expect(try store.contents() == ["b": Array("1".utf8), "c": Array("2".utf8)])
    #expect(try store.entry(forKey: "c")?.metadata == [1])
  }

  @Test("Each operation of a batch takes a version, and the next write takes the one after")
  func versions() throws {
    try store.write { batch in
      for key in ["a", "b", "c"] { try batch.setValue("1", forKey: key) }
    }
    let next = try store.setValue("2", forKey: "d")
    let versions = try ["a", "b", "c"].map { try store.info(forKey: $0)?.version ?? 0 }
    #expect(versions.map { $0 + 3 } == [next, next + 1, next + 2])
  }

  @Test("The last operation on a key wins, now and after a reopen")
  func lastWins() throws {
    try store.write { batch in
      try batch.setValue("1", forKey: "a")
      try batch.setValue("2", forKey: "a")
      try batch.setValue("1", forKey: "b")
      try batch.removeValue(forKey: "b")
      try batch.removeValue(forKey: "c")
      try batch.setValue("3", forKey: "c")
    }
    let expected = ["a": Array("2".utf8), "c": Array("3".utf8)]
    #expect(try store.contents() == expected)
    #expect(try store.count() == 2)
    try store.close()
    let again = try Store(directory.store)
    #expect(try again.contents() == expected)
    #expect(try again.count() == 2)
  }

  @Test("A closure that throws writes nothing, and its error comes out unchanged")
  func throwing() throws {
    try store.setValue("old", forKey: "a")
    let version = try store.statistics().lastVersion
    #expect(throws: WithValueTests.OwnError(number: 1)) {
      try store.write { batch in
        try batch.setValue("new", forKey: "a")
        try batch.setValue("new", forKey: "b")
        throw WithValueTests.OwnError(number: 1)
      }
    }
    #expect(try store.contents() == ["a": Array("old".utf8)])
    #expect(try store.statistics().lastVersion == version)
  }

  @Test("No part of a batch is visible before its closure returns")
  func invisible() throws {
    try store.write { batch in
      try batch.setValue("1", forKey: "a")
      #expect(try store.value(forKey: "a") == nil)
      try store.setValue("outside", forKey: "b")
    }
    #expect(try store.text("a") == "1")
    #expect(try store.text("b") == "outside")
  }

  @Test("An empty batch writes nothing")
  func empty() throws {
    try store.write { _ in }
    #expect(try store.statistics().lastVersion == 0)
    #expect(try Image(of: directory.store).segmentNames == [])
  }

  @Test("A refused operation leaves the batch unchanged")
  func refused() throws {
    try store.write { batch in
      try batch.setValue("1", forKey: "a")
      #expect(throws: StoreError.self) { try batch.setValue("1", forKey: "") }
      #expect(batch.count == 1)
    }
    #expect(try store.contents() == ["a": Array("1".utf8)])
  }

  @Test("Entries of a batch expire")
  func expiring() throws {
    let other = try TemporaryDirectory()
    let clock = ManualClock()
    let store = try Store(other.store, .small(clock: clock))
    try store.write { batch in
      try batch.setValue("1", forKey: "a", options: .lifetime(.seconds(5)))
      try batch.setValue("2", forKey: "b", options: .idleLimit(.seconds(50)))
      try batch.setValue("3", forKey: "c")
    }
    clock.advance(by: .seconds(5))
    #expect(try store.count() == 2)
    clock.advance(by: .seconds(52))
    #expect(try store.contents() == ["c": Array("3".utf8)])
  }

  @Test("Records of a batch are contiguous and carry their index")
  func placed() throws {
    try store.setValue("v", forKey: "before")
    try store.write { batch in
      for number in 0..<4 { try batch.setValue("v", forKey: "k\(number)") }
    }
    let image = try Image(of: directory.store)
    let records = try image.records(in: #require(image.segmentNames.first))
    #expect(records.map(\.header.batchCount) == [0, 4, 4, 4, 4])
    #expect(records.dropFirst().map(\.header.batchIndex) == [0, 1, 2, 3])
  }
}
