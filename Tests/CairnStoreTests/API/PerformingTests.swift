import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// Work that continues until it is allowed to end.
private final class LongWork: Sendable {
  private let mayEnd = Atomic(false)
  private let (beginnings, beginning) = AsyncStream.makeStream(of: Void.self)

  /// Waits until work has begun this many times. Has no time limit, because a test may have to wait
  /// long for its turn.
  func begins(_ count: Int) async {
    var iterator = beginnings.makeAsyncIterator()
    for _ in 0..<count { await iterator.next() }
  }

  func run() {
    beginning.yield()
    while !mayEnd.load(ordering: .sequentiallyConsistent) { pause(for: .milliseconds(1)) }
  }

  func end() { mayEnd.store(true, ordering: .sequentiallyConsistent) }
}

@Suite("Work with a store off the threads that tasks run on")
struct PerformingTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("The call returns what the work returns, and throws what the work throws")
  func results() async throws {
    struct Refusal: Error {}
    let store = try Store(directory.store)
    let version = try await store.perform { (store) throws(StoreError) in
      try store.setValue("v", forKey: "key", durability: .durable)
    }
    #expect(version == 1)
    #expect(try await store.perform { try $0.count() } == 1)
    await #expect(throws: Refusal.self) { try await store.perform { _ in throw Refusal() } }
    try await store.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.perform { (store) throws(StoreError) in try store.sync() }
    }
  }

  @Test(
    "Open, sync and close run off the threads of tasks, the latter two even in a cancelled task"
  )
  func openingAndClosing() async throws {
    let store = try await Store(path: directory.store)
    let end = Task {
      while !Task.isCancelled { await Task.yield() }
      await #expect(throws: StoreError.cancelled) { try await store.perform { try $0.sync() } }
      try await store.setValue("v", forKey: "key", durability: .process)
      try await store.sync()
      try await store.close()
    }
    end.cancel()
    try await end.value
    let reader = try await Store(readingAt: directory.store)
    #expect(try reader.value(forKey: "key") == Array("v".utf8))
    try await reader.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.sync()
    }
    await #expect(throws: StoreError.self) {
      try await Store(path: directory("missing/store"))
    }
  }

  @Test("Long work leaves room for other work, up to the limit; a cancelled task does not wait")
  func line() async throws {
    #expect(StoreConfiguration().concurrentCallLimit == 16)
    let store = try Store(directory.store, .small { $0.concurrentCallLimit = 3 })
    let work = LongWork()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<2 {
        group.addTask {
          try await store.perform { (_) throws(StoreError) in work.run() }
        }
      }
      await work.begins(2)
      #expect(try await store.perform { try $0.count() } == 0)
      group.addTask {
        try await store.perform { (_) throws(StoreError) in work.run() }
      }
      await work.begins(1)
      let late = Task {
        do throws(StoreError) {
          try await store.perform { (store) throws(StoreError) in try store.removeAll() }
          return false
        } catch { return error == .cancelled }
      }
      late.cancel()
      #expect(await late.value)
      work.end()
      try await group.waitForAll()
    }
  }
}
