import Cairn
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Reads in a batch of a cache")
struct DiskTransactionTests {
  private let scene = TieredScene()

  private func cache() throws -> DiskCache<String, Int> { try scene.cache() }

  @Test("A batch reads what it has set, and nothing is written before it ends")
  func ownChanges() throws {
    let cache = try cache()
    try cache.setValue(1, forKey: "a")
    let result = try cache.write { batch in
      #expect(try batch.value(forKey: "a") == 1)
      #expect(try batch.value(forKey: "b") == nil)
      try batch.setValue(2, forKey: "a")
      try batch.setValue(3, forKey: "b")
      try batch.removeValue(forKey: "a")
      #expect(try batch.value(forKey: "a") == nil && batch.value(forKey: "b") == 3)
      #expect(try cache.value(forKey: "a") == 1)
      return batch.count
    }
    #expect(result == 3)
    #expect(try cache.values(forKeys: ["a", "b"]) == [nil, 3])
    #expect(try cache.audit() == [])
  }

  /// What others do between the read and the end of a batch.
  enum Change: CaseIterable { case write, remove, add, removeAll, removeTag, expire, batch, sweep }

  @Test("If a key that was read has changed, the closure runs again", arguments: Change.allCases)
  func conflict(change: Change) throws {
    let cache = try cache()
    try cache.setValue(
      1, forKey: "read",
      options: EntryOptions(
        lifetime: change == .expire ? .seconds(5) : .unlimited, tags: ["tag", "other"]))
    var runCount = 0
    let seen = try cache.write { batch in
      runCount += 1
      let seen = [try batch.value(forKey: "read"), try batch.value(forKey: "absent")]
      if runCount == 1 {
        switch change {
        case .write: try cache.setValue(2, forKey: "read")
        case .remove: try cache.removeValue(forKey: "read")
        case .add: try cache.setValue(2, forKey: "absent")
        case .removeAll: try cache.removeAll()
        // The entry is still in the store.
        case .removeTag: try cache.removeAll(tagged: "tag")
        case .sweep:
          try cache.removeAll(tagged: "tag")
          scene.advance(by: .milliseconds(1))
        case .expire: scene.clock.advance(by: .seconds(5))
        case .batch: try cache.setValues([(key: "read", value: 2)])
        }
      }
      try batch.setValue(runCount, forKey: "written")
      return seen
    }
    #expect(runCount == 2)
    switch change {
    case .write, .batch: #expect(seen == [2, nil])
    case .add: #expect(seen == [1, 2])
    case .remove, .removeAll, .removeTag, .sweep, .expire: #expect(seen == [nil, nil])
    }
    #expect(try cache.value(forKey: "written") == 2)
    #expect(try cache.audit() == [])
  }

  @Test("A value whose tag was removed before is absent, and the batch is written at once")
  func hidden() throws {
    let cache = try cache()
    try cache.setValue(1, forKey: "a", options: .tags(["tag"]))
    try cache.removeAll(tagged: "tag")
    var runCount = 0
    try cache.write { batch in
      runCount += 1
      #expect(try batch.value(forKey: "a") == nil)
      try batch.setValue(2, forKey: "a", options: .tags(["tag"]))
    }
    #expect(runCount == 1)
    #expect(try cache.value(forKey: "a") == 2)
    #expect(try cache.entry(forKey: "a")?.tags == ["tag"])
  }

  private struct Wrong: Error {}

  @Test("Errors of the closure and of its reads write nothing")
  func errors() async throws {
    let cache = try cache()
    try await cache.setValue(1, forKey: "a")
    #expect(throws: Wrong.self) {
      try cache.write { batch in
        _ = try batch.value(forKey: "a")
        try batch.setValue(2, forKey: "a")
        throw Wrong()
      }
    }
    #expect(throws: StoreError.self) {
      try cache.write { batch in
        _ = try? batch.value(forKey: "")
        try batch.setValue(2, forKey: "a")
      }
    }
    var runCount = 0
    let path = cache.path
    await #expect(throws: StoreError.conflict(path: path, key: Array("a".utf8))) {
      try await cache.write { batch in
        runCount += 1
        _ = try batch.value(forKey: "a")
        try cache.setValue(runCount, forKey: "a")
        try batch.setValue(0, forKey: "b")
      }
    }
    #expect(runCount == 100)
    #expect(try cache.value(forKey: "b") == nil)
    // Changed between two reads.
    runCount = 0
    try await cache.write { batch in
      runCount += 1
      let first = try batch.value(forKey: "a")
      if runCount == 1 { try cache.setValue(-1, forKey: "a") }
      #expect(try batch.value(forKey: "a") == first)
    }
    #expect(runCount == 2)
  }

  @Test("Fifty tasks and two threads that transfer keep the sum")
  func transfers() async throws {
    let cache = try cache()
    let accountCount = 8
    for number in 0..<accountCount { try await cache.setValue(100, forKey: "\(number)") }
    @Sendable func transfer(
      _ seed: Int, _ batch: inout DiskBatch<String, Int>
    ) throws {
      var random = FuzzRandom(seed: UInt64(seed))
      let (from, to) = ("\(random.below(accountCount))", "\(random.below(accountCount))")
      let amount = random.below(30)
      let rest = try (batch.value(forKey: from) ?? 0) - amount
      if rest < 0 { return }
      try batch.setValue(rest, forKey: from)
      try batch.setValue((batch.value(forKey: to) ?? 0) + amount, forKey: to)
    }
    @Sendable func sum() throws -> Int {
      try cache.write { batch in
        try (0..<accountCount).reduce(0) { try $0 + (batch.value(forKey: "\($1)") ?? 0) }
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<50 {
        group.addTask {
          for number in 0..<6 {
            try await cache.write { try transfer(10_000 + task * 100 + number, &$0) }
          }
        }
      }
      for thread in 0..<2 {
        group.addTask {
          try await cache.perform { cache in
            for number in 0..<200 { try cache.write { try transfer(thread * 1000 + number, &$0) } }
          }
        }
      }
      group.addTask {
        for _ in 0..<20 {
          let sum = try sum()
          #expect(sum == 100 * accountCount)
        }
      }
      try await group.waitForAll()
    }
    let values = try cache.values(forKeys: (0..<accountCount).map { "\($0)" })
    #expect(values.reduce(0) { $0 + ($1 ?? 0) } == 100 * accountCount)
    #expect(try cache.audit() == [])
  }
}
