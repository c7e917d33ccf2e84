import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// A batch that is added to the index while others continue.
@Suite("A batch that is being added to the index")
struct UnpublishedBatchTests {
  static let count = 5000

  @Test("Writes meanwhile find the batch's values and win; a snapshot waits for the whole batch")
  func meanwhile() throws {
    let directory = try TemporaryDirectory()
    let held = Mutex<Store?>(nil)
    let isFirst = Mutex(true)
    let problems = Messages()
    let snapshot = Mutex<Background?>(nil)
    let queue = ManualBackgroundQueue()
    @Sendable func others(_ store: Store) throws {
      for number in stride(from: 0, to: Self.count, by: 50) {
        let version = try store.info(forKey: "key\(number)")?.version
        try store.setValue("put", forKey: "key\(number)")
        if try !store.removeValue(forKey: "key\(number + 1)") { problems.add("not there") }
        // The version from before the batch does not match if the batch's version is seen.
        if let version,
          case .stored = try store.compareAndSet(
            "never", forKey: "key\(number + 2)", expecting: version)
        {
          problems.add("stored")
        }
        if try !store.setLifetime(.seconds(1 << 30), forKey: "key\(number + 3)") {
          problems.add("not extended")
        }
        // It comes after the batch, whose value it replaces. So it must have read the batch's value.
        let found = try store.write { batch in
          let found = try batch.value(forKey: "key\(number + 4)")
          try batch.setValue("transaction", forKey: "key\(number + 5)")
          return found
        }
        if found != Array("new".utf8) { problems.add("an old value was read") }
      }
      snapshot.withLock {
        $0 = Background {
          let snapshot = try store.snapshot()
          for number in 0..<Self.count where number % 50 > 1 && number % 50 != 5 {
            if try snapshot.value(forKey: "key\(number)") != Array("new".utf8) {
              problems.add("a part is missing: \(number)")
            }
          }
        }
      }
      snapshot.withLock { $0 }?.waitUntilBlocked()
    }
    let store = try Store(
      path: directory.store,
      configuration: .small {
        $0.segmentByteLimit = 4 << 20
        $0.asideOperationCount = 4000
      },
      environment: Environment(
        fileSystem: SystemFileSystem(), background: queue,
        pause: { _ in
          guard let store = held.withLock({ $0 }),
            isFirst.withLock({ isFirst in
              defer { isFirst = false }
              return isFirst
            })
          else { return }
          do { try others(store) } catch { problems.add("\(error)") }
        }), readOnly: false)
    for number in 0..<Self.count {
      try store.setValue("old", forKey: "key\(number)", lifetime: .seconds(1 << 20))
    }
    held.withLock { $0 = store }
    try store.write { batch in
      for number in 0..<Self.count {
        try batch.setValue("first", forKey: "key\(number)")
        try batch.setValue("new", forKey: "key\(number)", options: .lifetime(.seconds(1 << 20)))
      }
    }
    #expect(!isFirst.withLock { $0 })
    let background = try #require(snapshot.withLock { $0 })
    #expect(background.finishes())
    #expect(background.error == nil)
    #expect(problems.all == [])
    let contents = try store.contents()
    for number in 0..<Self.count {
      let expected: String? =
        switch number % 50 {
        case 0: "put"
        case 1: nil
        case 5: "transaction"
        default: "new"
        }
      #expect(contents["key\(number)"] == expected.map { Array($0.utf8) }, "\(number)")
    }
    #expect(try store.auditUsage() == [])
    held.withLock { $0 = nil }
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    queue.runAll()
    try store.close()
    #expect(try Store(directory.store).contents() == contents)
  }

  /// A store whose batches of 100 operations are published in pieces, and code that runs after the
  /// first piece.
  private func withBatch(
    in directory: TemporaryDirectory, meanwhile body: @escaping @Sendable (Store) throws -> Void,
    _ write: (Store) throws -> Void
  ) throws -> Store {
    let next = Mutex<Store?>(nil)
    let problems = Messages()
    let store = try Store(
      path: directory.store, configuration: .small { $0.asideOperationCount = 100 },
      environment: Environment(
        fileSystem: SystemFileSystem(), background: ManualBackgroundQueue(),
        pause: { _ in
          guard let store = next.withLock({ $0.take() }) else { return }
          do { try body(store) } catch { problems.add("\(error)") }
        }), readOnly: false)
    for number in 0..<20 { try store.setValue("old", forKey: "old\(number)") }
    try store.setValue([UInt8](repeating: 1, count: 40_000), forKey: "filler")
    // Something to compact.
    for _ in 0..<2 { try store.setValue([UInt8](repeating: 1, count: 10_000), forKey: "waste") }
    try store.removeValue(forKey: "waste")
    next.withLock { $0 = store }
    try write(store)
    #expect(next.withLock { $0 == nil })
    #expect(problems.all == [])
    return store
  }

  private func removeAndFill(_ store: Store) throws {
    try store.write { batch in
      for number in 0..<4000 { try batch.setValue("new", forKey: "new\(number)") }
      for number in 0..<20 { try batch.removeValue(forKey: "old\(number)") }
    }
  }

  /// It once did nothing instead, and said so to nobody.
  @Test("A compaction waits for the batch: what the batch removes would reappear after a kill")
  func compaction() throws {
    let directory = try TemporaryDirectory()
    let compaction = Mutex<Background?>(nil)
    let removedCount = Mutex(0)
    let store = try withBatch(
      in: directory,
      meanwhile: { store in
        let background = Background {
          let report = try store.compact()
          removedCount.withLock { $0 = report.removedSegmentCount }
        }
        background.waitUntilBlocked()
        compaction.withLock { $0 = background }
      }, removeAndFill)
    let background = try #require(compaction.withLock { $0 })
    #expect(background.finishes())
    #expect(background.error == nil)
    #expect(removedCount.withLock { $0 } > 0)
    // Afterwards, only the removals of the batch's segment are left.
    for number in 0..<4000 { try store.setValue("newer", forKey: "new\(number)") }
    try store.maintain()
    let contents = try store.contents()
    #expect(contents.count == 4001)
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    try store.close()
  }

  enum Trim: CaseIterable { case count, age, predicate, expired }

  @Test(
    "A trim meanwhile does not remove what the batch has written, not even after a kill",
    arguments: Trim.allCases)
  func trimmed(trim: Trim) throws {
    let directory = try TemporaryDirectory()
    let store = try withBatch(in: directory) { store in
      switch trim {
      case .count: try store.trim(.toCount(store.count() - 15))
      case .age: try store.trim(.older(than: .milliseconds(1)))
      case .predicate:
        _ = try store.remove { key, _ in key.load(UInt8.self, at: 0) == UInt8(ascii: "o") }
      case .expired: _ = try store.trim(.expired)
      }
    } _: { store in
      if trim == .expired {
        for number in 0..<20 {
          try store.setValue("old", forKey: "old\(number)", lifetime: .seconds(0))
        }
      }
      try store.write { batch in
        for number in 0..<4000 { try batch.setValue("new", forKey: "new\(number)") }
        for number in 0..<20 { try batch.setValue("new", forKey: "old\(number)") }
      }
    }
    let contents = try store.contents()
    for number in 0..<20 { #expect(contents["old\(number)"] == Array("new".utf8), "\(number)") }
    #expect(try store.auditUsage() == [])
    try Image(of: directory.store).write(to: directory("killed"))
    let killed = try Store(directory("killed"))
    #expect(try killed.contents() == contents)
    try killed.close()
    try store.close()
  }

  @Test("The keys of a batch count as written in its order, whatever the order in the index")
  func order() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(
      directory.store,
      .small {
        $0.segmentByteLimit = 4 << 20
        $0.asideOperationCount = 1000
      })
    try store.write { batch in
      for number in 0..<2000 { try batch.setValue("v", forKey: "key\(number)") }
    }
    try store.trim(.toCount(500))
    #expect(try store.count() == 500)
    for number in 0..<2000 {
      #expect(try store.contains("key\(number)") == (number >= 1500), "\(number)")
    }
    try store.close()
  }
}
