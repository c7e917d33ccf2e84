import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

/// A disk whose syncs fail from some time on.
private final class FailingDisk: FileSystemDecorator {
  let base: any FileSystem = SystemFileSystem()
  let fails = Atomic(false)

  private func check() throws(SystemError) {
    if fails.load(ordering: .relaxed) {
      throw SystemError(call: "fdatasync", errorNumber: SystemError.inputOutput)
    }
  }

  func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    try check()
    try base.synchronizeData(descriptor)
  }

  func synchronize(_ descriptor: Int32) throws(SystemError) {
    try check()
    try base.synchronize(descriptor)
  }
}

@Suite("A cache whose disk takes no more writes goes on in memory", .timeLimit(.minutes(30)))
struct StoppedDiskTests {
  private let scene = TieredScene()
  private let disk = FailingDisk()
  private let messages = Record<String>()

  /// Why the disk takes no more writes.
  enum Cause: CaseIterable {
    case failedSync, removedDirectory
  }

  private func open(
    memory: Bool = true, _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> DiskCache<String, Int> {
    try scene.cache(keys: .standard, values: .standard, files: disk) {
      $0.store.log = DiagnosticLog { [messages] in messages.add($0.text) }
      if !memory { $0.memory = nil }
      change(&$0)
    }
  }

  /// Stops the disk of a cache.
  private func stop(_ cache: DiskCache<String, Int>, _ cause: Cause = .failedSync) {
    #expect(throws: Never.self) {
      try cache.synchronous { _ = try $0.setValue(0, forKey: "filler") }
    }
    if cause == .failedSync {
      disk.fails.store(true, ordering: .relaxed)
    } else {
      try? FileManager.default.removeItem(atPath: cache.path)
    }
    #expect(throws: StoreError.self) { try cache.synchronous { try $0.sync() } }
    disk.fails.store(false, ordering: .relaxed)
  }

  private func set(_ value: Int, _ key: String, _ cache: DiskCache<String, Int>) {
    let error = #expect(throws: StoreError.self) {
      try cache.synchronous { _ = try $0.setValue(value, forKey: key) }
    }
    #expect(error?.isOfStoppedDisk == true)
  }

  @Test(
    "A value is loaded once; the log has one line, and a reopening heals",
    arguments: Cause.allCases)
  func loads(_ cause: Cause) async throws {
    let cache = try open()
    try await cache.setValue(1, forKey: "old")
    #expect(try !cache.statistics().isMemoryOnly)
    stop(cache, cause)
    scene.disk.background.runAll()
    #expect(messages.all.count == 1)
    let count = Atomic(0)
    for _ in 0..<100 {
      let value = try await cache.value(forKey: "hot") {
        count.add(1, ordering: .relaxed)
        return 7
      }
      #expect(value == 7)
    }
    #expect(count.load(ordering: .relaxed) == 1 && cache.flights.counts.unkeptCount == 1)
    #expect(try cache.contains("hot") && cache.peekValue(forKey: "hot") == 7)
    for _ in 0..<10 { cache.synchronous { $0["old"] = 2 } }
    #expect(try cache.value(forKey: "old") == 1)
    scene.disk.background.runAll()
    #expect(messages.all.count == 1)
    let statistics = try cache.statistics()
    #expect(statistics.isMemoryOnly && statistics.prometheus(prefix: "a").contains("memory_only 1"))
    #expect(throws: StoreError.self) { try cache.synchronous { try $0.close() } }

    let next = try open()
    #expect(try !next.statistics().isMemoryOnly)
    #expect(try next.value(forKey: "hot") == nil)
    #expect(try next.value(forKey: "old") == (cause == .failedSync ? 1 : nil))
    try await next.setValue(3, forKey: "hot")
    try await next.close()
  }

  @Test("A set throws; memory keeps it only if the disk has nothing for the key")
  func sets() async throws {
    let cache = try open()
    try await cache.setValue(1, forKey: "there")
    stop(cache)
    set(2, "there", cache)
    #expect(try cache.value(forKey: "there") == 1)
    for value in 3...4 {
      set(value, "new", cache)
      #expect(try cache.value(forKey: "new") == value)
      await #expect(throws: StoreError.self) { try await cache.setValue(-value, forKey: "async") }
      #expect(try cache.value(forKey: "async") == -value)
    }
    // What depends on a condition or belongs to a batch is not kept.
    #expect(throws: StoreError.self) {
      try cache.synchronous { try $0.compareAndSet(5, forKey: "other", expecting: nil) }
    }
    #expect(throws: StoreError.self) {
      try cache.synchronous { try $0.write { try $0.setValue(5, forKey: "other") } }
    }
    #expect(try cache.value(forKey: "other") == nil)
    // Nothing else would bring the value back.
    cache.tier.removeAll()
    #expect(try cache.value(forKey: "new") == nil && cache.value(forKey: "there") == 1)
  }

  @Test(
    "A removal takes the value out of memory, also if it throws", arguments: 0..<7, Cause.allCases)
  func removals(kind: Int, cause: Cause) async throws {
    let cache = try open()
    try await cache.setValue(1, forKey: "there")
    stop(cache, cause)
    set(2, "new", cache)
    #expect(try cache.value(forKey: "new") == 2)
    var hasThrown = false
    do {
      switch kind {
      case 0: _ = try cache.synchronous { try $0.removeValue(forKey: "new") }
      case 1: _ = try await cache.removeValue(forKey: "new")
      case 2: _ = try cache.synchronous { try $0.removeValues(forKeys: ["new", "b"]) }
      case 3: try cache.synchronous { try $0.removeAll() }
      case 4: try cache.synchronous { try $0.removeAll(tagged: "x") }
      case 5: try await cache.removeAll(tagged: "x")
      default: try cache.synchronous { try $0.write { try $0.removeValue(forKey: "new") } }
      }
    } catch { hasThrown = true }
    // The disk has nothing for the key, so a removal of the key alone writes nothing.
    #expect(hasThrown == (kind > 2 || cause == .removedDirectory))
    #expect(try cache.value(forKey: "new") == nil && !cache.contains("new"))
    // The disk still has this key, so the removal has not happened.
    #expect(try cache.value(forKey: "there") == 1)
  }

  @Test("A load that a removal has overtaken keeps nothing", arguments: 0..<4)
  func overtaken(kind: Int) async throws {
    let cache = try open()
    stop(cache)
    let gate = Gate()
    let task = Task {
      try await cache.value(forKey: "a", options: .tags(["x"])) {
        await gate.wait()
        return 1
      }
    }
    await eventually { gate.arrivedCount == 1 }
    switch kind {
    case 0: _ = try cache.synchronous { try $0.removeValue(forKey: "a") }
    case 1: #expect(throws: StoreError.self) { try cache.synchronous { try $0.removeAll() } }
    case 2:
      #expect(throws: StoreError.self) {
        try cache.synchronous { try $0.removeAll(tagged: "x") }
      }
    default: set(2, "a", cache)
    }
    gate.open()
    #expect(try await task.value == 1)
    #expect(try cache.value(forKey: "a") == (kind == 3 ? 2 : nil))
  }

  @Test("A value that is not wanted is not kept, and one that is no longer wanted is dropped again")
  func unwanted() throws {
    let cache = try open()
    stop(cache)
    let error = try #require(
      #expect(throws: StoreError.self) {
        try cache.synchronous { _ = try $0.setValue(9, forKey: "other") }
      })
    let key = try cache.tierKey("a")
    for answers in [[false], [true, false], [true, true]] {
      var rest = answers[...]
      cache.keepOnly("a", after: error, byteCount: 1, ifWanted: { rest.popFirst() ?? true }) {
        cache.take($0, of: 1, forKey: key, .standard)
      }
      #expect(try cache.value(forKey: "a") == (answers == [true, true] ? 1 : nil))
    }
  }

  @Test("A value in memory expires, and the older one that has expired on disk stays away")
  func expiry() async throws {
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(3600)
    let cache = try open { $0.loadPolicy = policy }
    try await cache.setValue(1, forKey: "a", lifetime: .seconds(5))
    stop(cache)
    scene.clock.advance(by: .seconds(6))
    let options = EntryOptions.lifetime(.seconds(5))
    #expect(try await cache.value(forKey: "a", options: options) { 2 } == 2)
    #expect(try cache.value(forKey: "a") == 2)
    struct Down: Error {}
    cache.tier.removeAll()
    await #expect(throws: Down.self) { try await cache.value(forKey: "a") { throw Down() } }
    #expect(try await cache.value(forKey: "a", options: options) { 3 } == 3)
    scene.clock.advance(by: .seconds(6))
    #expect(try cache.value(forKey: "a") == nil)
    #expect(try await cache.value(forKey: "a", options: options) { 4 } == 4)
    #expect(try cache.value(forKey: "a") == 4)
  }

  @Test("What cannot be kept is not loaded ahead, but still when its lifetime has ended")
  func refreshes() async throws {
    var policy = LoadPolicy()
    policy.refreshAhead = 0
    let cache = try open { $0.loadPolicy = policy }
    try await cache.setValue(1, forKey: "a", lifetime: .seconds(5))
    stop(cache)
    let count = Atomic(0)
    for _ in 0..<20 {
      let value = try await cache.value(forKey: "a") {
        count.add(1, ordering: .relaxed)
        return 2
      }
      #expect(value == 1)
      await eventually { !cache.flights.isActive }
    }
    #expect(count.load(ordering: .relaxed) == 1)
    scene.clock.advance(by: .seconds(6))
    #expect(try await cache.value(forKey: "a") { 3 } == 3)
  }

  @Test("Without a memory tier, each request loads, and the log stays silent")
  func untiered() async throws {
    let cache = try open(memory: false)
    stop(cache)
    scene.disk.background.runAll()
    let lines = messages.all.count
    for number in 0..<3 {
      #expect(try await cache.value(forKey: "a") { number } == number)
    }
    scene.disk.background.runAll()
    #expect(cache.flights.counts.unkeptCount == 3 && messages.all.count == lines)
  }
}
