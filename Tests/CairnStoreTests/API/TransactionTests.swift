import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Transactions")
struct TransactionTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let clock = ManualClock()
  private static let accountCount = 10

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(
      directory.store, .small(durability: .process, clock: clock) { $0.asideOperationCount = 8 },
      background: ManualBackgroundQueue())
  }

  @Test("A transaction reads what it has written, and nothing is written before it ends")
  func ownWrites() throws {
    try store.setValue("old", forKey: "a")
    let result = try store.write { batch in
      #expect(try batch.value(forKey: "a") == Array("old".utf8))
      #expect(try batch.value(forKey: "b") == nil)
      try batch.setValue("new", forKey: "a")
      try batch.setValue("new", forKey: "b", options: .cost(7))
      #expect(try batch.value(forKey: "b") == Array("new".utf8))
      try batch.removeValue(forKey: "a")
      #expect(try batch.value(forKey: "a") == nil)
      #expect(try store.value(forKey: "a") == Array("old".utf8))
      return 5
    }
    #expect(result == 5)
    #expect(try store.contents() == ["b": Array("new".utf8)])
    #expect(try store.info(forKey: "b")?.cost == 7)
  }

  /// Writes by others between the reads and the end of a batch.
  enum Change: CaseIterable { case write, remove, add, expire, removeAll, batch, largeBatch }

  @Test(
    "If a key that was read has changed, the closure runs again",
    arguments: Change.allCases, [1, 20])
  func conflict(change: Change, writtenCount: Int) throws {
    try store.setValue(
      "1", forKey: "read", lifetime: change == .expire ? .seconds(5) : .unlimited)
    var runCount = 0
    let found = try store.write { batch in
      runCount += 1
      let found = try batch.value(forKey: "read")
      let absent = try batch.value(forKey: "absent")
      if runCount == 1 {
        switch change {
        case .write: try store.setValue("2", forKey: "read")
        case .remove: try store.removeValue(forKey: "read")
        case .add: try store.setValue("2", forKey: "absent")
        case .expire: clock.advance(by: .seconds(5))
        case .removeAll: try store.removeAll()
        case .batch: try store.setValues([(key: "read", value: "2")])
        case .largeBatch: try store.setValues((0..<9).map { (key: "read", value: "\($0)") })
        }
      }
      for number in 0..<writtenCount {
        try batch.setValue("\(runCount)", forKey: "written\(number)")
      }
      return (found ?? []) + (absent ?? [])
    }
    #expect(runCount == 2)
    let expected: String =
      switch change {
      case .write, .batch: "2"
      case .remove, .expire, .removeAll: ""
      case .add: "12"
      case .largeBatch: "8"
      }
    #expect(found == Array(expected.utf8))
    for number in 0..<writtenCount {
      #expect(try store.value(forKey: "written\(number)") == [UInt8(ascii: "2")])
    }
    #expect(try store.auditUsage() == [])
  }

  @Test("A large transaction is checked again after its records are written")
  func whileWriting() throws {
    let scene = try StoreScene()
    let store = try scene.open { $0.asideOperationCount = 8 }
    try store.setValue("1", forKey: "read")
    let isWritten = Atomic(false)
    scene.fileSystem.setHook { [store] event in
      guard event.call == .write, event.file.hasPrefix("seg-"),
        !isWritten.exchange(true, ordering: .relaxed)
      else { return nil }
      _ = try? store.setValue("2", forKey: "read")
      return nil
    }
    defer { scene.fileSystem.setHook(nil) }
    var found: [[UInt8]?] = []
    try store.write { batch in
      found.append(try batch.value(forKey: "read"))
      for number in 0..<20 { try batch.setValue("\(found.count)", forKey: "\(number)") }
    }
    #expect(found == [[UInt8(ascii: "1")], [UInt8(ascii: "2")]])
    #expect(try store.value(forKey: "19") == [UInt8(ascii: "2")])
    scene.fileSystem.setHook(nil)
    try store.close()
  }

  @Test("A transaction that writes nothing is checked too, and a changed key is not read twice")
  func readsOnly() throws {
    try store.setValue("1", forKey: "a")
    var runCount = 0
    let both = try store.write { batch in
      runCount += 1
      let first = try batch.value(forKey: "a")
      if runCount == 1 { try store.setValue("2", forKey: "a") }
      return [first, try batch.value(forKey: "a")]
    }
    #expect(runCount == 2)
    #expect(both == [[UInt8(ascii: "2")], [UInt8(ascii: "2")]])
    let version = try store.info(forKey: "a")?.version
    try store.write { batch in _ = try batch.value(forKey: "a") }
    #expect(try store.info(forKey: "a")?.version == version)
  }

  private struct Wrong: Error {}

  @Test("An error of the closure writes nothing; after a conflict, the closure runs again first")
  func errors() throws {
    try store.setValue("1", forKey: "a")
    #expect(throws: Wrong.self) {
      try store.write { batch in
        _ = try batch.value(forKey: "a")
        try batch.setValue("2", forKey: "a")
        throw Wrong()
      }
    }
    #expect(try store.value(forKey: "a") == Array("1".utf8))
    var runCount = 0
    try store.write { batch in
      runCount += 1
      let value = try batch.value(forKey: "a")
      if runCount == 1 { try store.setValue("2", forKey: "a") }
      if value == Array("1".utf8) { throw Wrong() }
    }
    #expect(runCount == 2)
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.write { batch in _ = try batch.value(forKey: "") }
    }
  }

  @Test("A transaction whose keys change each time ends with a typed error")
  func endless() async throws {
    let expected = StoreError.conflict(path: store.path, key: Array("a".utf8))
    var runCount = 0
    #expect(throws: expected) {
      try store.write { batch in
        runCount += 1
        _ = try batch.value(forKey: "a")
        try store.setValue("\(runCount)", forKey: "a")
        try batch.setValue("mine", forKey: "b")
      }
    }
    #expect(runCount == 100)
    runCount = 0
    await #expect(throws: expected) {
      try await store.write { batch in
        runCount += 1
        _ = try batch.value(forKey: "a")
        try store.increment(forKey: "other")
        try store.setValue("\(runCount)", forKey: "a")
        try batch.setValue("mine", forKey: "b")
      }
    }
    #expect(runCount == 100)
    #expect(try store.value(forKey: "b") == nil)
    #expect("\(expected)".contains("the key a has another version"))
    try await store.close()
    await #expect(throws: StoreError.closed(path: store.path)) {
      try await store.write { batch in _ = try batch.value(forKey: "a") }
    }
  }

  @Test("A cancelled task makes no further attempt")
  func cancellation() async throws {
    let task = Task { [store] in
      var runCount = 0
      do {
        try await store.write { batch in
          runCount += 1
          _ = try batch.value(forKey: "a")
          try store.setValue("\(runCount)", forKey: "a")
          unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
        }
      } catch { return (runCount, error as? StoreError) }
      return (runCount, nil)
    }
    let (runCount, error) = await task.value
    #expect(runCount == 1)
    #expect(error == .cancelled)
  }

  @Test("A key that changes twice between two reads is a conflict, even if it is again as before")
  func changedTwice() throws {
    var runCount = 0
    try store.write { batch in
      runCount += 1
      _ = try batch.value(forKey: "a")
      if runCount > 1 { return }
      try store.setValue("1", forKey: "a")
      defer { _ = try? store.removeValue(forKey: "a") }
      _ = try batch.value(forKey: "a")
    }
    #expect(runCount == 2)
  }

  @Test("A closure that ignores a read's error cannot commit")
  func ignored() throws {
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.write { batch in
        _ = try? batch.value(forKey: "")
        try batch.setValue("1", forKey: "a")
      }
    }
    #expect(try store.value(forKey: "a") == nil)
  }

  @Test("On a store that is open for reading, a transaction throws at once")
  func readOnly() async throws {
    try await store.close()
    let reader = try await Store(readingAt: directory.store)
    await #expect(throws: StoreError.readOnly(path: reader.path)) {
      try await reader.write { batch in _ = try batch.value(forKey: "a") }
    }
    await #expect(throws: Wrong.self) { try await reader.write { _ in throw Wrong() } }
    try await reader.close()
  }

  @Test("A batch with a requirement is written if the key has this version, or is absent")
  func requirements() async throws {
    let version = try await store.setValue("1", forKey: "a")
    try await store.write { batch in
      try batch.require(version, forKey: "a")
      try batch.require(nil, forKey: "b")
      try batch.setValue("2", forKey: "a")
    }
    for (key, version) in [("a", version), ("b", version)] {
      #expect(throws: StoreError.conflict(path: store.path, key: Array(key.utf8))) {
        try store.write { batch in
          try batch.require(version, forKey: key)
          try batch.setValue("3", forKey: "a")
        }
      }
    }
    await #expect(throws: StoreError.conflict(path: store.path, key: Array("a".utf8))) {
      try await store.write { batch in
        try batch.require(nil, forKey: "a")
        for number in 0..<20 { try batch.setValue("3", forKey: "\(number)") }
      }
    }
    #expect(try store.contents() == ["a": Array("2".utf8)])
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.write { batch in try batch.require(nil, forKey: "") }
    }
  }

  @Test("A batch counts, with what it has written itself, and keeps what an entry has")
  func increments() async throws {
    let options = EntryOptions(
      cost: 7, lifetime: .seconds(50), idleLimit: .seconds(9), metadata: [1])
    try await store.increment(forKey: "a", by: 5, options: options)
    let numbers = try await store.write { batch in
      [
        try batch.increment(forKey: "a", by: 2), try batch.increment(forKey: "a"),
        try batch.increment(forKey: "b", by: -3, options: .metadata("text")),
        try batch.increment(forKey: "b"),
      ]
    }
    #expect(numbers == [7, 8, -3, -2])
    let entry = try #require(try store.entry(forKey: "a"))
    #expect(try store.counter(forKey: "a") == 8 && store.counter(forKey: "b") == -2)
    #expect(entry.info.givenCost == 7 && entry.info.idleLimit == .seconds(9))
    #expect(entry.metadata == [1])
    #expect(entry.info.expires == clock.now().advanced(by: .seconds(50)))
    #expect(try store.entry(forKey: "b")?.metadata == Array("text".utf8))
    // No addition is lost, and none is made twice.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask { [store] in
          for _ in 0..<10 {
            try await store.write { batch in
              try batch.increment(forKey: "a")
              try batch.increment(forKey: "b", by: -1)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.counter(forKey: "a") == 208 && store.counter(forKey: "b") == -202)
    await #expect(throws: StoreError.self) {
      try await store.write { batch in
        try batch.setValue("text", forKey: "c")
        try batch.increment(forKey: "c")
      }
    }
    #expect(try !store.contains("c"))
  }

  @Test("A batch reads large values that it has written")
  func largeValues() throws {
    let large = [UInt8](repeating: 7, count: 70_000)
    try store.write { batch in
      for number in 0..<5 { try batch.setValue("\(number)", forKey: "\(number)") }
      try batch.setValue(large, forKey: "large", options: .metadata([9]))
      try batch.setValue("after", forKey: "after")
      #expect(try batch.value(forKey: "large") == large)
      #expect(try batch.value(forKey: "after") == Array("after".utf8))
      try large.withBytes { try batch.setValue($0, forKey: "again") }
      #expect(try batch.value(forKey: "again") == large)
      #expect(try batch.value(forKey: "3") == Array("3".utf8))
    }
    #expect(try store.entry(forKey: "large")?.metadata == [9])
    #expect(try store.value(forKey: "again") == large)
  }

  @Test("withStore closes the store, also after an error")
  func scoped() async throws {
    let path = directory("scoped")
    let count = try await Store.withStore(path: path) { store in
      try await store.setValue("hello", forKey: "greeting")
      return try store.count()
    }
    #expect(count == 1)
    await #expect(throws: Wrong.self) {
      try await Store.withStore(path: path) { store in
        try await store.setValue("again", forKey: "greeting")
        throw Wrong()
      }
    }
    let (text, wasClean) = try await Store.withStore(path: path) { store in
      (try store.text("greeting"), try store.statistics().recovery.wasClean)
    }
    #expect(text == "again" && wasClean)
  }

  // MARK: Transfers

  private static func balance(_ value: [UInt8]?) -> Int {
    Int(String(decoding: value ?? [], as: UTF8.self)) ?? 0
  }

  private func open() throws {
    for number in 0..<Self.accountCount { try store.setValue("100", forKey: "account\(number)") }
  }

  private static func sum(in store: Store) throws -> Int {
    try store.write { batch in
      try (0..<accountCount).reduce(0) { sum, number in
        sum + balance(try batch.value(forKey: "account\(number)"))
      }
    }
  }

  /// Moves an amount, unless the account has less.
  private static func transfer(
    _ random: inout some RandomNumberGenerator, _ batch: inout Batch
  ) throws {
    let from = "account\(Int.random(in: 0..<accountCount, using: &random))"
    let to = "account\(Int.random(in: 0..<accountCount, using: &random))"
    let amount = Int.random(in: 1...50, using: &random)
    let rest = balance(try batch.value(forKey: from)) - amount
    if rest < 0 { return }
    try batch.setValue("\(rest)", forKey: from)
    let sum = balance(try batch.value(forKey: to)) + amount
    try batch.setValue("\(sum)", forKey: to)
  }

  @Test("Fifty tasks and four threads that transfer keep the sum, also in backups made meanwhile")
  func transfers() async throws {
    try open()
    let threads = (0..<4).map { thread in
      Background { [store] in
        for number in 0..<100 {
          var random = FuzzRandom(seed: UInt64(thread * 1000 + number))
          try store.write { try Self.transfer(&random, &$0) }
          // Large batches are published piece by piece.
          if number % 10 == 0 {
            try store.write { batch in
              for number in 0..<Self.accountCount {
                let value = try batch.value(forKey: "account\(number)")
                try batch.setValue(value ?? [], forKey: "account\(number)")
              }
            }
          }
        }
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<50 {
        group.addTask { [store] in
          for number in 0..<10 {
            var random = FuzzRandom(seed: UInt64(100_000 + task * 1000 + number))
            try await store.write { try Self.transfer(&random, &$0) }
          }
        }
      }
      group.addTask { [store, directory] in
        for number in 0..<10 {
          #expect(try Self.sum(in: store) == 100 * Self.accountCount)
          try await store.backup(to: directory("copy\(number)"))
        }
      }
      try await group.waitForAll()
    }
    for thread in threads { #expect(thread.finishes() && thread.error == nil) }
    #expect(try Self.sum(in: store) == 100 * Self.accountCount)
    for number in 0..<10 {
      let copy = try Store(directory("copy\(number)"))
      #expect(try Self.sum(in: copy) == 100 * Self.accountCount)
      try await copy.close()
    }
    #expect(try store.auditUsage() == [])
    try await store.close()
    let again = try Store(directory.store)
    #expect(try Self.sum(in: again) == 100 * Self.accountCount)
    try await again.close()
  }
}
