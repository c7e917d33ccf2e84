import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Without memory for the index, a call throws, and nothing is lost or half done")
final class OutOfMemoryTests: StoreSuite {
  /// How many more bytes may be taken. Freed tables do not increase this number.
  private final class Memory: Sendable {
    private let left = Mutex(Int.max)

    func leave(_ byteCount: Int) { left.withLock { $0 = byteCount } }

    var budget: MemoryBudget {
      MemoryBudget { [self] byteCount in
        left.withLock { left in
          guard byteCount <= left else { return false }
          left -= byteCount
          return true
        }
      }
    }
  }

  private let memory = Memory()

  private func open(
    _ path: String? = nil, pause: @escaping @Sendable (Duration) -> Void = { _ in }
  ) throws -> Store {
    var environment = Environment(
      fileSystem: SystemFileSystem(), background: queue, pause: pause)
    environment.memory = memory.budget
    return try Store(
      path: path ?? directory.store,
      configuration: .small(clock: clock) { $0.asideOperationCount = 100 },
      environment: environment, readOnly: false)
  }

  private func isOutOfMemory(_ error: StoreError?) -> Bool {
    if case .outOfMemory = error { true } else { false }
  }

  /// Writes until memory runs out, and returns the number of the write that failed.
  private func fill(_ store: Store, from start: Int = 0) throws -> Int {
    var number = start
    let error = storeError {
      while number < start + 100_000 {
        try store.setValue("\(number)", forKey: "key \(number)")
        number += 1
      }
    }
    try #require(isOutOfMemory(error))
    return number
  }

  @Test("A deadline for which there is no memory is found later; until then, a count throws")
  func deadlines() throws {
    let store = try open()
    for number in 0..<1000 { try store.setValue("\(number)", forKey: "key \(number)") }
    memory.leave(0)
    // There is room for these entries, but none for their deadlines.
    for number in 0..<1000 {
      try store.setValue("\(number)", forKey: "key \(number)", lifetime: .seconds(60))
    }
    clock.advance(by: .seconds(61))
    #expect(try store.value(forKey: "key 1") == nil)
    #expect(isOutOfMemory(storeError { _ = try store.count() }))
    #expect(isOutOfMemory(storeError { _ = try store.trim(.expired) }))
    memory.leave(.max)
    #expect(try store.count() == 0)
    #expect(try store.trim(.expired).count == 1000)
    try store.close()
  }

  @Test("A write that needs memory has not happened, not even for the next open")
  func write() throws {
    let store = try open()
    memory.leave(100_000)
    let count = try fill(store)
    #expect(try store.count() == count)
    let version = try store.statistics().lastVersion
    #expect(isOutOfMemory(storeError { try store.setValue("v", forKey: "key \(count)") }))
    #expect(
      isOutOfMemory(
        storeError {
          _ = try store.compareAndSet("v", forKey: "key \(count)", expecting: nil)
        }))
    #expect(try store.statistics().lastVersion == version)
    for number in 0..<count { #expect(try store.text("key \(number)") == "\(number)") }
    #expect(try store.value(forKey: "key \(count)") == nil)
    let second = try reopenedAfterKill("killed")
    #expect(try second.count() == count)
    // Once there is memory, writes work again.
    memory.leave(.max)
    try store.setValue("v", forKey: "key \(count)")
    #expect(try store.text("key \(count)") == "v")
    try store.close()
  }

  @Test("Removals and overwrites continue; a batch is written whole or not at all")
  func batch() throws {
    let store = try open()
    memory.leave(100_000)
    let count = try fill(store)
    memory.leave(0)
    let error = storeError {
      try store.write { batch in
        for number in 0..<2000 { try batch.setValue("batch", forKey: "batch \(number)") }
      }
    }
    #expect(isOutOfMemory(error))
    #expect(try store.count() == count)
    for number in 0..<2000 { #expect(try !store.contains("batch \(number)")) }
    for number in 0..<(count / 2) { #expect(try store.removeValue(forKey: "key \(number)")) }
    #expect(try store.count() == count - count / 2)
    try store.setValue("new", forKey: "key 0")
    #expect(try store.text("key 0") == "new")
    let second = try reopenedAfterKill("killed")
    #expect(try second.count() == count - count / 2 + 1)
    try store.close()
  }

  @Test(
    "If others take the room of a batch that is being published, it is not acknowledged",
    arguments: [true, false])
  func batchOnItsWay(another: Bool) throws {
    let held = Mutex<Store?>(nil)
    let problems = Messages()
    let memory = memory
    let store = try open(pause: { _ in
      guard let store = held.withLock({ $0.take() }) else { return }
      memory.leave(0)
      // Writes continue until no shard has room, whatever the hashes are.
      var refusedCount = 0
      for number in 0..<200_000 where refusedCount < 5000 {
        let isStored = (try? store.setValue("other", forKey: "other \(number)")) != nil
        refusedCount = isStored ? 0 : refusedCount + 1
      }
      if !another { return }
      // The batch's operations on this key come first.
      let error = storeError {
        try store.write { batch in
          try batch.setValue("other", forKey: "key 7999")
          try batch.setValue("other", forKey: "never written")
        }
      }
      if case .poisoned = error {} else { problems.add("\(String(describing: error))") }
      if (try? store.contains("never written")) != false { problems.add("a part is there") }
    })
    held.withLock { $0 = store }
    let error = storeError {
      try store.write { batch in
        for number in 0..<8000 { try batch.setValue("batch", forKey: "key \(number)") }
      }
    }
    if case .poisoned = error {} else { Issue.record("\(String(describing: error))") }
    #expect(problems.all == [])
    #expect(store.writeFailure != nil)
    #expect(storeError { try store.sync() } != nil)
    memory.leave(.max)
    let second = try reopenedAfterKill("killed")
    #expect(try second.text("key 7999") == "batch")
    try second.close()
  }

  @Test("An open without memory throws, and the next one works", arguments: [true, false])
  func opening(isClosed: Bool) throws {
    let store = try open()
    for number in 0..<5000 { try store.setValue("v", forKey: "key \(number)") }
    if isClosed { try store.close() } else { try store.sync() }
    let path = directory("copy")
    try Image(of: directory.store).write(to: path)
    memory.leave(20_000)
    // After a close, the index is loaded as keys are requested.
    let error = storeError {
      let second = try open(path)
      for number in 0..<5000 { _ = try second.value(forKey: "key \(number)") }
    }
    #expect(isOutOfMemory(error))
    memory.leave(.max)
    let third = try open(path)
    for number in 0..<5000 { #expect(try third.text("key \(number)") == "v") }
    try third.close()
    try store.close()
  }

  @Test("Without memory for a snapshot's copy, a write continues, and the snapshot throws")
  func snapshot() throws {
    let store = try open()
    for number in 0..<2000 { try store.setValue("old", forKey: "key \(number)") }
    let snapshot = try store.snapshot()
    memory.leave(0)
    for number in 0..<2000 { try store.setValue("new", forKey: "key \(number)") }
    #expect(isOutOfMemory(storeError { _ = try snapshot.value(forKey: "key 0") }))
    #expect(try store.text("key 0") == "new")
    memory.leave(.max)
    let second = try store.snapshot()
    try store.setValue("newest", forKey: "key 0")
    #expect(try second.value(forKey: "key 0") == Array("new".utf8))
    try store.close()
  }

  @Test("A checkpoint for which there is no memory is made later")
  func checkpoint() throws {
    let store = try open()
    for number in 0..<2000 { try store.setValue("v", forKey: "key \(number)") }
    memory.leave(0)
    try store.close()
    memory.leave(.max)
    let second = try open()
    #expect(try second.count() == 2000)
    try second.close()
  }
}
