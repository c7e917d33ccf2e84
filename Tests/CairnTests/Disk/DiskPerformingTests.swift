import Cairn
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Counts how many calls run at the same time.
private final class Meter: Sendable {
  private let counts = Lock((now: 0, most: 0))

  var now: Int { counts.withLock { $0.now } }
  var most: Int { counts.withLock { $0.most } }

  func begin() {
    counts.withLock {
      $0.now += 1
      $0.most = max($0.most, $0.now)
    }
  }

  func end() { counts.withLock { $0.now -= 1 } }
}

/// Tries the asynchronous forms.
func useForms(of cache: DiskCache<Int, Int>, backup: String) async throws {
  for number in 0..<20 { try await cache.setValue(number, forKey: number) }
  #expect(try await cache.trim(.toCount(15)).count == 5)
  #expect(try await cache.trim(.toCount(14, order: .largestFirst)).count == 1)
  let each = Int(try cache.totalCost()) / 14
  #expect(try await cache.trim(.toBytes(10 * each)).count == 4)
  #expect(try await cache.trim(.toFreeDiskSpace(0)).count == 0)
  #expect(try await cache.trim(.unused(for: .seconds(1000))).count == 0)
  try await cache.setValue(
    1, forKey: 100, options: EntryOptions(cost: nil, lifetime: .seconds(0), idleLimit: nil))
  #expect(try await cache.trim(.expired).count == 1)
  try await cache.sync()
  #expect(try await cache.compact().unreadableSegmentCount == 0)
  #expect(try await cache.backup(to: backup).entryCount == 10)
  #expect(try await cache.perform { (cache) throws(StoreError) in try cache.count() } == 10)
  try await cache.removeAll()
  #expect(try cache.count() == 0)
  try await cache.close()
}

@Suite("The asynchronous forms of a cache on disk")
struct DiskPerformingTests {
  let scene = DiskScene()

  @Test("The asynchronous forms do the same as the synchronous ones")
  func forms() async throws {
    let cache: DiskCache<Int, Int> = try await DiskCache.open(
      .path(scene.path), configuration: .init())
    try await useForms(of: cache, backup: scene("copy"))
    await #expect(throws: StoreError.closed(path: scene.path)) {
      try await cache.sync()
    }
    try Data().write(to: URL(filePath: scene("file")))
    await #expect(throws: StoreError.self) {
      let _: DiskCache<Int, Int> = try await DiskCache.open(
        .path(scene("file/path")), configuration: .init())
    }
    // Missing parent directories are created.
    let deep: DiskCache<Int, Int> = try await DiskCache.open(
      .url(URL(filePath: scene("missing/path"))), configuration: .init())
    #expect(deep.path == scene("missing/path"))
  }

  @Test("A removal of all reports progress, and throws if it fails")
  func removeAllProgress() async throws {
    let cache: DiskCache<Int, [UInt8]> = try scene.cache { $0.store.segmentByteLimit = 64 << 10 }
    for number in 0..<10 {
      try await cache.setValue([UInt8](repeating: 0, count: 50_000), forKey: number)
    }
    let updates = Record<WorkProgress>()
    try await cache.removeAll { updates.add($0) }
    #expect(try cache.count() == 0)
    let last = try #require(updates.all.last)
    #expect((last.totalCount ?? 0) > 5)
    #expect(updates.all.map(\.completedCount) == Array(1...(last.totalCount ?? 0)))
    try await cache.setValue([1], forKey: 1)
    var counts: [Int] = []
    try cache.synchronous { cache in try cache.removeAll { counts.append($0.completedCount) } }
    #expect(!counts.isEmpty)
    try await cache.close()
    await #expect(throws: StoreError.closed(path: scene.path)) {
      try await cache.removeAll { _ in }
    }
  }

  @Test("Work may throw any error, and the cache its own")
  func anyError() async throws {
    struct Refusal: Error, Equatable { var number: Int }
    let cache: DiskCache<Int, Int> = try scene.cache()
    try await cache.setValue(7, forKey: 1)
    let count = try await cache.perform { try $0.count() }
    #expect(count == 1)
    await #expect(throws: Refusal(number: 7)) {
      try await cache.perform { cache in
        if let number = try cache.value(forKey: 1) { throw Refusal(number: number) }
      }
    }
    let isCancelled = Task {
      while !Task.isCancelled { await Task.yield() }
      do {
        try await cache.perform { try $0.removeAll() }
        return false
      } catch { return error as? StoreError == .cancelled }
    }
    isCancelled.cancel()
    #expect(await isCancelled.value)
    #expect(try cache.count() == 1)
    try await cache.close()
    await #expect(throws: StoreError.closed(path: scene.path)) {
      try await cache.perform { try $0.count() }
    }
  }

  /// If a call held its thread, this would hang.
  @Test(
    "With one thread for calls, every kind of write waits for its sync and holds no thread",
    .timeLimit(.minutes(30)))
  func oneThread() async throws {
    let system = SlowSyncFileSystem()
    var configuration = DiskCacheConfiguration(
      memory: .init())
    configuration.store.concurrentCallLimit = 1
    configuration.store.durability = .durable
    configuration.store.log = .silent
    let cache = try DiskCache<String, String>(
      path: scene.path, configuration: configuration, keyCoder: .standard,
      valueCoder: .standard,
      environment: Environment(
        fileSystem: system, background: ThreadBackgroundQueue(),
        maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue()))
    for number in 0..<40 {
      try await cache.setValue(
        "v", forKey: "\(number)",
        options: EntryOptions(lifetime: .hours(1), tags: ["tag \(number)"]), durability: .process)
    }
    try await cache.sync()
    let version = try #require(try cache.info(forKey: "1")).version
    let later = SystemClock().now().advanced(by: .seconds(5400))
    system.holdSyncs()
    defer { system.releaseSyncs() }
    let returned = Record<Bool>()
    func begin(_ write: @escaping @Sendable () async throws -> Void) -> Task<Void, any Error> {
      Task {
        try await write()
        returned.add(true)
      }
    }
    var tasks = [
      begin { try await cache.removeValue(forKey: "0") },
      begin { _ = try await cache.compareAndRemove(forKey: "1", expecting: version) },
      begin { try await cache.removeValues(forKeys: ["2", "absent"]) },
      begin { try await cache.write { try $0.removeValue(forKey: "3") } },
      begin { try await cache.removeAll(tagged: "tag 4") },
      begin { _ = try await cache.takeValue(forKey: "5") },
      begin { try await cache.update(forKey: "6") { _ in nil } },
      begin { try await cache.remove { key, _ in key == "7" } },
      begin { try await cache.setLifetime(.seconds(7200), forKey: "8") },
      begin { try await cache.setLifetime(.seconds(7200), forKey: "9") },
      begin { _ = try await cache.value(forKey: "a") { "loaded" } },
      begin { _ = try await cache.value(forKey: "b") { "loaded" } },
    ]
    await eventually {
      (0..<8).allSatisfy { (try? cache.contains("\($0)")) == false }
        && ["a", "b"].allSatisfy { (try? cache.contains($0)) == true }
        // Before a trim removes these keys.
        && ["8", "9"].allSatisfy {
          (try? cache.info(forKey: $0))?.expires.map { $0 > later } == true
        }
    }
    tasks.append(begin { try await cache.trim(.toCount(10)) })
    await eventually { (try? cache.count()).map { $0 <= 10 } == true }
    tasks += [
      begin { try await cache.trim(.toBytes(0)) }, begin { try await cache.trim(.expired) },
    ]
    await eventually { (try? cache.count()) == 0 }
    // The threads for long work and for writes are both free.
    #expect(try await cache.perform { try $0.count() } == 0)
    try await cache.setValue(
      String(repeating: "v", count: 100_000), forKey: "large", durability: .process)
    #expect(returned.all == [])
    system.releaseSyncs()
    for task in tasks { try await task.value }
    #expect(returned.all.count == tasks.count)
    try await cache.close()
  }

  @Test("As many run at once as configured, on separate threads, in order")
  func width() async throws {
    for width in [0, 1, 3] {
      let cache: DiskCache<Int, Int> = try scene.cache(at: scene("\(width)")) {
        $0.store.concurrentCallLimit = width
      }
      let meter = Meter()
      let started = Record<Int>()
      let gate = DispatchSemaphore(value: 0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<6 {
          group.addTask {
            try await cache.perform { (_) throws(StoreError) in
              started.add(number)
              meter.begin()
              gate.wait()
              meter.end()
            }
          }
        }
        group.addTask {
          for count in 1...6 {
            await eventually { started.all.count >= min(6, count + max(1, width) - 1) }
            gate.signal()
          }
        }
        try await group.waitForAll()
      }
      #expect(meter.most == max(1, width))
      #expect(started.all.sorted() == Array(0..<6))
    }
  }

  @Test("An unlimited width costs nothing, and as many run at once as are requested")
  func noLimit() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.store.concurrentCallLimit = .max }
    let meter = Meter()
    let gate = DispatchSemaphore(value: 0)
    let count = 20
    for _ in 0..<2 {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<count {
          group.addTask {
            try await cache.perform { (_) throws(StoreError) in
              meter.begin()
              gate.wait()
              meter.end()
            }
          }
        }
        await eventually { meter.now == count }
        for _ in 0..<count { gate.signal() }
        try await group.waitForAll()
      }
      #expect(meter.now == 0)
    }
    #expect(meter.most == count)
  }

  @Test("A task that is cancelled before its work begins does nothing; one that has begun finishes")
  func cancellation() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.store.concurrentCallLimit = 1 }
    for number in 0..<5 { try await cache.setValue(number, forKey: number) }
    let hasBegun = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    let first = Task {
      try await cache.perform { (cache) throws(StoreError) in
        hasBegun.signal()
        mayEnd.wait()
        return try cache.trim(.toCount(4))
      }
    }
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        hasBegun.wait()
        continuation.resume()
      }
    }
    let outcome = Record<StoreError?>()
    let second = Task {
      do throws(StoreError) {
        try await cache.removeAll()
        outcome.add(nil)
      } catch { outcome.add(error) }
    }
    second.cancel()
    first.cancel()
    // The cancelled task does not wait, although the one thread is still at work.
    await eventually { outcome.all == [.cancelled] }
    // A task that is already queued.
    let third = Task {
      do throws(StoreError) { try await cache.removeAll() } catch { outcome.add(error) }
    }
    try await Task.sleep(for: .milliseconds(20))
    third.cancel()
    await eventually { outcome.all == [.cancelled, .cancelled] }
    mayEnd.signal()
    #expect(try await first.value.count == 1)
    await third.value
    // A cancelled call does not happen later either.
    #expect(try await cache.perform { (cache) throws(StoreError) in try cache.count() } == 4)
  }

  @Test("A close does not queue; in a cancelled task it still closes and syncs")
  func closing() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache { $0.store.concurrentCallLimit = 1 }
    try await cache.setValue(1, forKey: 1)
    let hasBegun = Record<Int>()
    let mayEnd = DispatchSemaphore(value: 0)
    let long = Task {
      try await cache.perform { (_) throws(StoreError) in
        hasBegun.add(1)
        mayEnd.wait()
      }
    }
    await eventually { hasBegun.all == [1] }
    let ends = Record<String>()
    let sync = Task {
      while !Task.isCancelled { await Task.yield() }
      do throws(StoreError) {
        try await cache.sync()
        ends.add("synced")
      } catch { ends.add("\(error)") }
    }
    sync.cancel()
    mayEnd.signal()
    try await long.value
    await sync.value
    #expect(ends.all == ["synced"])
    let second = Task {
      try await cache.perform { (_) throws(StoreError) in
        hasBegun.add(2)
        mayEnd.wait()
      }
    }
    await eventually { hasBegun.all == [1, 2] }
    let close = Task {
      while !Task.isCancelled { await Task.yield() }
      do throws(StoreError) {
        try await cache.close()
        ends.add("closed")
      } catch { ends.add("\(error)") }
    }
    close.cancel()
    await eventually { ends.all == ["synced", "closed"] }
    #expect(throws: StoreError.closed(path: scene.path)) { try cache.count() }
    mayEnd.signal()
    try await second.value
    await close.value
  }

  @Test("However many wait, each gets its turn, and none takes longer because of the others")
  func line() {
    let queue = WorkQueue(width: 1)
    let gate = DispatchSemaphore(value: 0)
    let done = Record<Int>()
    queue.run { gate.wait() }
    let count = 300_000
    for number in 0..<count { queue.run { if number % 1000 == 0 { done.add(number) } } }
    let end = DispatchSemaphore(value: 0)
    queue.run { end.signal() }
    let began = ContinuousClock.now
    gate.signal()
    #expect(end.wait(timeout: .now() + 120) == .success)
    #expect(done.all == Array(stride(from: 0, to: count, by: 1000)))
    // If each call moved all that wait, this would take a minute.
    #expect(began.duration(to: .now) < .seconds(10))
  }
}
