import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Loading through both tiers, and through the disk alone", .timeLimit(.minutes(30)))
struct TieredLoadingTests {
  let scene = TieredScene()

  @Test("Ten thousand callers of one key cause one load, and both tiers keep the value")
  func thundering() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let calls = Record<Int>()
    let gate = Gate()
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<10_000 {
        group.addTask {
          try await cache.value(forKey: "a") {
            calls.add(1)
            await gate.wait()
            return 7
          }
        }
      }
      await eventually { cache.flights.counts.joinedCount == 9_999 }
      gate.open()
      return try await group.reduce(0, +)
    }
    #expect(sum == 70_000 && calls.all == [1])
    #expect(try cache.tier.value(forKey: "a") == 7 && cache.storedValue(forKey: "a") == 7)
    let loads = cache.flights.counts
    #expect(loads.startedCount == 1 && loads.joinedCount == 9_999)
  }

  @Test("A value on disk is not loaded, and is copied into memory")
  func fromDisk() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    try await cache.setValue(1, forKey: "a")
    cache.tier.removeAll()
    #expect(try await cache.value(forKey: "a") { 2 } == 1)
    #expect(try cache.tier.contains("a"))
    // This holds even if the value appeared after the caller's lookup.
    cache.tier.removeAll()
    #expect(try await cache.loadValue(forKey: "a") { Loaded(3) } == 1)
    #expect(try cache.tier.contains("a"))
    #expect(cache.flights.counts.startedCount == 0)
  }

  @Test("The call and the load determine how the value is kept, in both tiers")
  func attributes() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    _ = try await cache.value(
      forKey: "a", options: EntryOptions(cost: 7, lifetime: .seconds(5), idleLimit: .seconds(2))
    ) { 1 }
    _ = try await cache.value(forKey: "b") {
      Loaded(1, options: EntryOptions(cost: 9, lifetime: .seconds(60)))
    }
    for _ in 0..<2 {
      #expect(try cache.tier.info(forKey: "a")?.cost == 7)
      #expect(try cache.tier.info(forKey: "a")?.idleLimit == .seconds(2))
      #expect(try cache.tier.info(forKey: "b")?.cost == 9)
      #expect(try cache.audit() == [])
      cache.tier.removeAll()
      _ = try cache.values(forKeys: ["a", "b"])
    }
    scene.advance(by: .seconds(5))
    #expect(try cache.value(forKey: "a") == nil && cache.value(forKey: "b") == 1)
  }

  enum Change: CaseIterable {
    case set, removed, taken, removedMany, removedAll, removedBelow, setAndRemoved
  }

  @Test("A load does not undo a write or removal during it", arguments: Change.allCases)
  func writtenMeanwhile(change: Change) async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let gate = Gate()
    let waiter = Task {
      try await cache.value(forKey: "a") {
        await gate.wait()
        return 1
      }
    }
    await eventually { gate.arrivedCount == 1 }
    var expected: Int?
    switch change {
    case .set:
      try await cache.setValue(2, forKey: "a")
      expected = 2
    case .removed: try await cache.removeValue(forKey: "a")
    case .taken: _ = try await cache.takeValue(forKey: "a")
    case .removedMany: try await cache.removeValues(forKeys: ["a", "b"])
    case .removedAll: try await cache.removeAll()
    case .removedBelow: try await cache.removeValue(forKey: "a")
    case .setAndRemoved:
      try await cache.setValue(2, forKey: "a")
      cache["a"] = nil
    }
    let later = try await cache.value(forKey: "a") { 3 }
    #expect(later == expected ?? 3)
    if change != .set { cache["a"] = nil }
    gate.open()
    #expect(try await waiter.value == 1)
    #expect(try cache.value(forKey: "a") == expected)
    #expect(try cache.storedValue(forKey: "a") == expected)
    #expect(cache.flights.counts.outdatedCount == 1)
  }

  @Test("A load that finds a value there does not replace it")
  func appeared() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let value = try await cache.value(forKey: "a") {
      // This write is not recorded, because no method of the cache did it.
      try cache.store.setValue("2", forKey: "a")
      return 1
    }
    #expect(value == 1)
    #expect(try cache.value(forKey: "a") == 2)
  }

  @Test("A value that the disk refuses is still returned, and counted")
  func unkept() async throws {
    let lines = Record<String>()
    let coder = ValueCoder<Int>.custom(
      encode: { _ in throw CodingFailure("not this") }, decode: { _ in 0 })
    let cache: DiskCache<String, Int> = try scene.cache(keys: .string, values: coder) {
      $0.store.log = DiagnosticLog { lines.add($0.text) }
    }
    #expect(try await cache.value(forKey: "a") { 5 } == 5)
    #expect(cache.flights.counts.unkeptCount == 1)
    #expect(lines.all.count { $0.contains("could not be kept") } == 1)
    #expect(try !cache.tier.contains("a"))
  }

  @Test("While the disk is full, the log reports once that values are not kept")
  func unkeptForRoom() async throws {
    let lines = Record<String>()
    let disk = SimulatedDisk()
    disk.makeDirectory("/data")
    let cache: DiskCache<String, [UInt8]> = try scene.cache(
      keys: .string, values: .bytes, files: SimulatedFileSystem(disk: disk, seed: 1),
      path: "/data/cache"
    ) { $0.store.log = DiagnosticLog { lines.add($0.text) } }
    let value = [UInt8](repeating: 1, count: 1 << 20)
    for times in 1...2 {
      let capacity = disk.capacity
      disk.capacity = disk.allocatedByteCount
      for number in 0..<5 {
        #expect(try await cache.value(forKey: "\(times)/\(number)") { value } == value)
      }
      #expect(cache.flights.counts.unkeptCount == 5 * UInt64(times))
      #expect(lines.all.count { $0.contains("could not be kept") } == times)
      disk.capacity = capacity
      _ = try await cache.value(forKey: "kept \(times)") { value }
      #expect(try cache.containsStored("kept \(times)"))
    }
    try await cache.close()
    scene.disk.background.discardAll()
  }

  @Test("Errors are thrown and not kept, and a loader may use the cache and load with it")
  func nested() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    await #expect(throws: LoadFailure()) {
      try await cache.value(forKey: "a") { throw LoadFailure() }
    }
    let value = try await cache.value(forKey: "a") {
      try await cache.setValue(1, forKey: "b")
      try await cache.trim(.toCount(10))
      return try await cache.value(forKey: "c") { try cache.value(forKey: "b")! + 1 } + 1
    }
    #expect(value == 3)
    await #expect(throws: StoreError.circularLoad) {
      try await cache.value(forKey: "d") { try await cache.value(forKey: "d") { 1 } }
    }
    await #expect(throws: StoreError.self) { try await cache.value(forKey: "") { 1 } }
    #expect(!cache.flights.isActive)
  }

  @Test("A cancelled caller leaves, and the load continues while any caller waits")
  func cancellation() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let gate = Gate()
    let waiters = (0..<3).map { _ in
      Task {
        try await cache.value(forKey: "a") {
          await gate.wait()
          try Task.checkCancellation()
          return 4
        }
      }
    }
    await eventually { gate.arrivedCount == 1 && cache.flights.counts.joinedCount == 2 }
    waiters[0].cancel()
    waiters[1].cancel()
    for waiter in waiters[..<2] {
      await #expect(throws: CancellationError.self) { try await waiter.value }
    }
    gate.open()
    #expect(try await waiters[2].value == 4)
    #expect(try cache.storedValue(forKey: "a") == 4)
  }

  @Test("A load in progress at a close returns its value, and nothing is kept")
  func closed() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let gate = Gate()
    let waiter = Task {
      try await cache.value(forKey: "a") {
        await gate.wait()
        return 1
      }
    }
    await eventually { gate.arrivedCount == 1 }
    try await cache.close()
    gate.open()
    #expect(try await waiter.value == 1)
    #expect(cache.tier.count() == 0)
    await #expect(throws: StoreError.self) { try await cache.value(forKey: "a") { 1 } }
  }

  @Test("Options that a loader returns with the value are kept on disk")
  func metadata() async throws {
    let cache: DiskCache<String, Int> = try scene.cache()
    let load: @Sendable () async throws -> Loaded<Int> = { Loaded(1, options: .metadata([7, 8])) }
    #expect(try await cache.value(forKey: "a", orLoadEntry: load) == 1)
    #expect(try cache.metadata(forKey: "a") == [7, 8])
    #expect(try await cache.value(forKey: "b", orLoadEntry: load) == 1)
    #expect(try cache.metadata(forKey: "b") == [7, 8])
    #expect(try await cache.value(forKey: "c") { 1 } == 1)
    #expect(try cache.metadata(forKey: "c") == [])
  }

  @Test("The disk alone loads in the same way")
  func diskAlone() async throws {
    let cache: DiskCache<String, Int> = try scene.disk.cache()
    #expect(try await cache.value(forKey: "a", lifetime: .seconds(5)) { 1 } == 1)
    #expect(try await cache.value(forKey: "a") { 2 } == 1)
    #expect(try cache.statistics().missCount == 1)
    scene.advance(by: .seconds(5))
    #expect(try await cache.value(forKey: "a") { Loaded(3, options: .lifetime(.seconds(1))) } == 3)
    let gate = Gate()
    let waiter = Task {
      try await cache.value(forKey: "b") {
        await gate.wait()
        return 1
      }
    }
    await eventually { gate.arrivedCount == 1 }
    #expect(try await !cache.removeValue(forKey: "b"))
    gate.open()
    #expect(try await waiter.value == 1)
    #expect(try cache.value(forKey: "b") == nil)
  }

  @Test("A removal that ends while a value is being kept leaves nothing")
  func removedWhileKept() async throws {
    let cache: DiskCache<Int, Int> = try scene.cache()
    for key in 0..<400 {
      let waiter = Task { try await cache.value(forKey: key) { key } }
      // Once the load has begun, no read after the removal may find the value.
      while cache.flights.counts.startedCount <= UInt64(key) { await Task.yield() }
      try await cache.removeValue(forKey: key)
      let afterwards = try cache.value(forKey: key)
      #expect(try await waiter.value == key)
      #expect(afterwards == nil)
      #expect(try cache.value(forKey: key) == nil)
    }
  }
}
