import CairnRepair
import CairnStore
import Dispatch
import Synchronization
import Testing

/// Counts the threads that were started and those that have ended. Starts none while this is
/// forbidden.
private final class CountedThreads: Sendable {
  let startedCount = Atomic(0)
  let isAllowed = Atomic(true)
  private let ended = DispatchSemaphore(value: 0)

  var starter: ThreadStarter {
    ThreadStarter { [self] body in
      guard isAllowed.load(ordering: .relaxed) else { return false }
      startedCount.add(1, ordering: .relaxed)
      return ThreadStarter.system.start { [self] in
        body()
        ended.signal()
      }
    }
  }

  /// Waits until a thread has ended, but not forever.
  func waitForEnd() -> Bool { ended.wait(timeout: .now() + .seconds(100)) == .success }
}

@Suite("Background queues")
struct BackgroundQueueTests {
  private let threads = CountedThreads()
  private let done = DispatchSemaphore(value: 0)

  private func isDone() -> Bool { done.wait(timeout: .now() + .seconds(100)) == .success }

  @Test("One thread waits for the delayed jobs of all queues, and ends when they are done")
  func sharedTimer() {
    let timer = SharedTimer(threads: threads.starter)
    var queues = (0..<50).map { _ in ThreadBackgroundQueue(timer: timer) }
    for queue in queues { queue.run(after: .seconds(3600)) { Issue.record("run too early") } }
    queues[7].run(after: .milliseconds(1)) { [done] in done.signal() }
    #expect(isDone())
    #expect(threads.startedCount.load(ordering: .relaxed) == 1)
    queues = []
    #expect(threads.waitForEnd())
  }

  @Test("A job for which no thread can be started is not run under the lock that it takes")
  func lockHeld() {
    threads.isAllowed.store(false, ordering: .relaxed)
    let queue = ThreadBackgroundQueue(
      threads: threads.starter, timer: SharedTimer(threads: threads.starter))
    let lock = Lock(0)
    let isRun = lock.withLock { _ in
      // With the lock held, a job that ran at once would wait for itself.
      queue.run { Issue.record("run without a thread") }
      queue.run(after: .zero) { Issue.record("run without a thread") }
      return queue.runIfPossible { Issue.record("run although it was refused") }
        || queue.runIfPossible(after: .zero) { Issue.record("run although it was refused") }
    }
    #expect(!isRun)
  }

  /// A write with an interval syncs by itself if no thread can wait for it.
  @Test("A timer accepts no job while its thread fails to start")
  func failingStart() {
    let second = Lock<SharedTimer?>(nil)
    let job = Lock<Background?>(nil)
    let isTaken = Lock<Bool?>(nil)
    let starter = ThreadStarter { [threads] _ in
      guard let timer = second.withLock({ $0.take() }) else { return false }
      let adding = Background {
        let isAdded = timer.add(after: .zero, owner: ObjectIdentifier(threads), isKept: false) {}
        isTaken.withLock { $0 = isAdded }
      }
      job.withLock { $0 = adding }
      _ = adding.finishes(within: 1)
      return false
    }
    let timer = SharedTimer(threads: starter)
    second.withLock { $0 = timer }
    #expect(!timer.add(after: .zero, owner: ObjectIdentifier(timer), isKept: false) {})
    #expect(job.withLock { $0 }?.finishes() == true)
    #expect(isTaken.withLock { $0 } == false)
  }

  @Test("Kept jobs run in order as soon as a thread can be started")
  func kept() {
    threads.isAllowed.store(false, ordering: .relaxed)
    let queue = ThreadBackgroundQueue(
      threads: threads.starter, timer: SharedTimer(threads: threads.starter))
    let order = Mutex<[Int]>([])
    for number in 0..<3 { queue.run { order.withLock { $0.append(number) } } }
    #expect(!queue.runIfPossible { order.withLock { $0.append(9) } })
    threads.isAllowed.store(true, ordering: .relaxed)
    queue.run { [done] in
      order.withLock { $0.append(3) }
      done.signal()
    }
    #expect(isDone())
    #expect(order.withLock { $0 } == [0, 1, 2, 3])
  }

  @Test("The timer's thread runs jobs for which a queue can start no thread")
  func timerHelps() {
    threads.isAllowed.store(false, ordering: .relaxed)
    let queue = ThreadBackgroundQueue(threads: threads.starter, timer: SharedTimer())
    queue.run { [done] in done.signal() }
    #expect(isDone())
    queue.run(after: .milliseconds(1)) { [done] in done.signal() }
    #expect(isDone())
  }

  @Test("Work that a caller waits for is done without threads")
  func awaited() async {
    threads.isAllowed.store(false, ordering: .relaxed)
    let queue = WorkQueue(width: 2, threads: threads.starter)
    let results = await withTaskGroup(of: Int.self) { group in
      for number in 0..<20 { group.addTask { await queue.performUncancelled { number } } }
      return await group.reduce(0, +)
    }
    #expect(results == 190)
  }

  @Test("A store works without threads, whatever its log does with a lock held")
  func store() throws {
    let directory = try TemporaryDirectory()
    threads.isAllowed.store(false, ordering: .relaxed)
    let timer = SharedTimer(threads: threads.starter)
    let environment = Environment(
      fileSystem: SystemFileSystem(),
      background: ThreadBackgroundQueue(threads: threads.starter, timer: timer),
      maintenance: ThreadBackgroundQueue(threads: threads.starter, timer: timer))
    let store = try Store(
      path: directory.store, configuration: .small(durability: .interval(.seconds(1))),
      environment: environment, readOnly: false)
    for number in 0..<200 {
      try store.setValue([UInt8](repeating: 1, count: 5000), forKey: "key \(number % 50)")
      try store.setValue("short", forKey: "short \(number)", lifetime: .milliseconds(1))
    }
    try store.trim(.toCount(20))
    try store.compact()
    // All but the last are sealed, although nothing runs in the background.
    let statistics = try store.statistics()
    #expect(statistics.segments.filter { !$0.isSealed }.count <= 1)
    try store.close()
    #expect(try Store.verify(path: directory.store).errors == [])
  }

  @Test("If no thread can be started, maintenance waits and writes continue")
  func noThread() throws {
    let directory = try TemporaryDirectory()
    let result = try KillWriterProcess.run("thread-limit", directory.store)
    #expect(result.status == 0, "\(result.output)")
  }

  @Test("A body runs with all elements at the same time, and without threads one after the other")
  func atOnce() throws {
    let begun = Lock(0, waits: true)
    let numbers = Array(1...5)
    try ThreadStarter.system.forEach(numbers) { (_: Int) throws(StoreError) in
      begun.withLock { $0 += 1 }
      begun.wakeAll()
      begun.waitUntil { $0 == 5 ? () : nil }
    }
    let order = Mutex<[Int]>([])
    try ThreadStarter.none.forEach(numbers) { (number: Int) throws(StoreError) in
      order.withLock { $0.append(number) }
    }
    #expect(order.withLock { $0 } == numbers)
    try ThreadStarter.system.forEach([Int]()) { (_: Int) throws(StoreError) in }
  }

  @Test("Of several errors the first element's is thrown, once all calls have returned")
  func firstError() {
    let returnedCount = Atomic(0)
    let error = #expect(throws: StoreError.self) {
      try ThreadStarter.system.forEach(Array(0..<4)) { (number: Int) throws(StoreError) in
        if number == 1 { pause(for: .milliseconds(20)) }
        defer { returnedCount.add(1, ordering: .relaxed) }
        if number > 0 { throw .closed(path: "\(number)") }
      }
    }
    guard case .closed(let path) = error else { return }
    #expect(path == "1" && returnedCount.load(ordering: .relaxed) == 4)
  }
}
