import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

@Suite("Durations of a disk cache's calls, and the log of slow ones", .timeLimit(.minutes(30)))
struct DiskSlowCallTests {
  typealias Cache = DiskCache<String, String>

  let scene = TieredScene()

  private func filled(
    held: Int? = nil, memory: Bool = false,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> Cache {
    let cache: Cache = try scene.cache(held: held) {
      if !memory { $0.memory = nil }
      change(&$0)
    }
    try cache.setValue("1", forKey: "a", options: Self.options)
    try cache.setValue("2", forKey: "b", options: Self.options)
    return cache
  }

  @Test("With a threshold of zero, every call is kept with its kind and key", arguments: calls)
  func kinds(call: Call) async throws {
    let cache = try filled()
    cache.slowCallThreshold = .zero
    try await call.body(cache)
    let calls = cache.slowCalls()
    #expect(calls.map { Kept($0) } == call.kept)
    #expect(calls.allSatisfy { $0.duration >= .zero })
    #expect(calls.allSatisfy { $0.began <= scene.clock.now() })
    // The histograms count the same calls, and those of loads count the loads.
    let statistics = try cache.statistics()
    let reads = call.kept.count { $0.operation == .read }
    let loads = call.kept.count { $0.operation == .load }
    #expect(statistics.readDurations.count == UInt64(reads))
    #expect(statistics.writeDurations.count == UInt64(call.kept.count - reads - loads))
    #expect(statistics.loads.durations.counts.reduce(0, +) == UInt64(loads))
  }

  @Test("Without a threshold, no call is timed", arguments: calls)
  func off(call: Call) async throws {
    let cache = try filled()
    #expect(cache.slowCallThreshold == nil)
    try await call.body(cache)
    #expect(cache.slowCalls().isEmpty)
    let statistics = try cache.statistics()
    #expect(statistics.readDurations == DurationHistogram())
    #expect(statistics.writeDurations == DurationHistogram())
    #expect(!statistics.prometheus(prefix: "a").contains("read_duration"))
  }

  @Test("Only reads that find nothing in memory are timed")
  func memory() async throws {
    let cache = try filled(held: 1, memory: true) { $0.slowCallThreshold = .zero }
    #expect(cache.slowCalls().map { Kept($0) } == [Kept(.write), Kept(.write, "b")])
    for _ in 0..<10 { #expect(try cache.value(forKey: "b") == "2") }
    #expect(try cache.contains("b") && cache.peekValue(forKey: "b") == "2")
    #expect(try await cache.value(forKey: "b") { "" } == "2")
    #expect(cache.slowCalls().count == 2)
    #expect(try cache.value(forKey: "a") == "1")
    #expect(try cache.value(forKey: "a") == "1")
    #expect(try cache.contains("absent") == false)
    #expect(
      cache.slowCalls().dropFirst(2).map { Kept($0) } == [Kept(.read), Kept(.read, "absent")])
  }

  @Test("The threshold changes while the cache is open, and the log stays")
  func changed() throws {
    let cache = try filled { $0.slowCallThreshold = .seconds(3600) }
    #expect(cache.slowCallThreshold == .seconds(3600))
    _ = try cache.value(forKey: "a")
    #expect(cache.slowCalls().isEmpty)
    cache.slowCallThreshold = .zero
    _ = try cache.value(forKey: "b")
    cache.slowCallThreshold = nil
    #expect(cache.slowCallThreshold == nil)
    _ = try cache.value(forKey: "a")
    #expect(cache.slowCalls().map { Kept($0) } == [Kept(.read, "b")])
    #expect(try cache.statistics().readDurations.count == 2)
    #expect(try cache.statistics().writeDurations.count == 2)
  }

  @Test("The log has the last 128 calls, oldest first")
  func bounded() throws {
    let cache = try filled { $0.slowCallThreshold = .zero }
    for number in 0..<400 {
      #expect(try cache.value(forKey: "\(number)") == nil)
      let keys = cache.slowCalls().map(\.key)
      let expected = (["a", "b"] + (0...number).map { "\($0)" }).suffix(128)
      #expect(keys == Array(expected))
    }
    #expect(try cache.statistics().readDurations.count == 400)
  }

  @Test(
    "No threshold traps",
    arguments: [
      (.zero, true), (.nanoseconds(-1), true), (.seconds(Int64.min), true),
      (Duration(secondsComponent: .min, attosecondsComponent: 0), true),
      (.nanoseconds(Int64.max), false), (.seconds(Int64.max), false),
      (Duration(secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999), false),
      (.milliseconds(Int64.max), false), (.seconds(1e18), false),
    ] as [(Duration, Bool)])
  func extremes(threshold: Duration, isKept: Bool) async throws {
    let cache = try filled { $0.slowCallThreshold = threshold }
    let clamped = min(max(threshold, .zero), .nanoseconds(Int64.max))
    #expect(cache.slowCallThreshold == clamped)
    cache.slowCallThreshold = threshold
    #expect(cache.slowCallThreshold == clamped)
    _ = try cache.value(forKey: "a")
    // A clock may jump by any amount during a load.
    _ = try await cache.value(forKey: "c") { [scene] in
      scene.clock.advance(by: .milliseconds(Int64.max / 4))
      return ""
    }
    let operations = cache.slowCalls().map(\.operation)
    if isKept {
      #expect(operations.starts(with: [.write, .write, .read]) && operations.contains(.load))
    } else {
      #expect(!operations.contains { $0 != .load })
    }
    #expect(try cache.statistics().readDurations.count >= 1)
  }

  @Test("Calls with a slow coder are kept, and fast ones are not")
  func slowCoder() async throws {
    let coder = ValueCoder<String>.custom { value in
      if value == "slow" { pause(for: .milliseconds(60)) }
      return Array(value.utf8)
    } decode: { bytes in
      let value = String(copying: bytes) ?? ""
      if value == "slow" { pause(for: .milliseconds(60)) }
      return value
    }
    let cache: Cache = try scene.cache(keys: .standard, values: coder) { $0.memory = nil }
    cache.slowCallThreshold = .milliseconds(50)
    let before = try cache.statistics()
    try await cache.setValue("slow", forKey: "a")
    try cache.synchronous { _ = try $0.setValue("slow", forKey: "b") }
    try await cache.setValues([(key: "c", value: "slow")])
    _ = try cache.value(forKey: "a")
    _ = try cache.entry(forKey: "c")
    let calls = cache.slowCalls()
    let expected = [
      Kept(.write), Kept(.write, "b"), Kept(.batch, nil), Kept(.read), Kept(.read, "c"),
    ]
    #expect(calls.map { Kept($0) } == expected)
    #expect(calls.allSatisfy { $0.duration >= .milliseconds(60) })
    let recent = try cache.statistics().since(before)
    #expect(recent.readDurations.counts[..<4].reduce(0, +) == 0)
    #expect(recent.readDurations.count == 2 && recent.writeDurations.count == 3)
    #expect(recent.readDurations.total >= .milliseconds(120))
    #expect(recent.writeDurations.total >= .milliseconds(180))
  }

  @Test("A durable write takes until the end of its sync")
  func slowSync() async throws {
    let files = DelayedSyncFileSystem(SystemFileSystem(), delay: .milliseconds(60))
    let cache: Cache = try scene.cache(keys: .standard, values: .standard, files: files) {
      $0.memory = nil
      $0.slowCallThreshold = .milliseconds(50)
    }
    try cache.synchronous { _ = try $0.setValue("1", forKey: "a", durability: .durable) }
    try await cache.setValue("2", forKey: "b", durability: .durable)
    _ = try await cache.removeValue(forKey: "a", durability: .durable)
    let kept = cache.slowCalls().map { Kept($0) }
    #expect(kept == [Kept(.write), Kept(.write, "b"), Kept(.removal)])
    #expect(try cache.statistics().writeDurations.count == 3)
  }

  @Test("The duration of an async call includes its wait for a thread")
  func queued() async throws {
    let state = QueueState()
    let coder = ValueCoder<String>.custom { value in
      state.block()
      return Array(value.utf8)
    } decode: {
      String(copying: $0) ?? ""
    }
    let cache: Cache = try scene.cache(keys: .standard, values: coder) {
      $0.memory = nil
      $0.concurrentCallLimit = 1
    }
    cache.slowCallThreshold = .milliseconds(50)
    let batch = Task { try await cache.setValues([(key: "a", value: "1")]) }
    await eventually { state.hasBegun }
    let isCalled = Lock(false)
    let removal = Task {
      isCalled.withLock { $0 = true }
      return try await cache.removeValue(forKey: "b")
    }
    await eventually { isCalled.withLock { $0 } }
    try await Task.sleep(for: .milliseconds(200))
    state.open()
    try await batch.value
    #expect(try await removal.value == false)
    #expect(cache.slowCalls().map { Kept($0) } == [Kept(.batch, nil), Kept(.removal, "b")])
  }

  @Test("Slow loads are kept by the cache's clock, also those that fail", arguments: [false, true])
  func loads(hasMemory: Bool) async throws {
    let cache = try filled(held: 10, memory: hasMemory) { $0.slowCallThreshold = .seconds(2) }
    let start = scene.clock.now()
    for (key, seconds) in [("c", 2), ("d", 1), ("e", 3)] {
      _ = try await cache.value(forKey: key) { [scene] in
        scene.clock.advance(by: .seconds(seconds))
        return ""
      }
    }
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(10)
    await #expect(throws: LoadFailure.self) {
      _ = try await cache.loaded(forKey: "f", policy: policy) { [scene] _ in
        scene.clock.advance(by: .seconds(4))
        throw LoadFailure()
      }
    }
    let calls = cache.slowCalls()
    #expect(calls.map { Kept($0) } == ["c", "e", "f"].map { Kept(.load, $0) })
    #expect(calls.map(\.duration) == [.seconds(2), .seconds(3), .seconds(4)])
    #expect(calls.map(\.began) == [0, 3, 6].map { start.advanced(by: .seconds($0)) })
    cache.slowCallThreshold = nil
    _ = try await cache.value(forKey: "g") { [scene] in
      scene.clock.advance(by: .seconds(9))
      return ""
    }
    #expect(cache.slowCalls().count == 3)
  }

  @Test("A read of a stale value is timed")
  func stale() async throws {
    var policy = LoadPolicy()
    policy.staleWhileRevalidating = .seconds(100)
    let cache = try filled { $0.loadPolicy = policy }
    scene.advance(by: .seconds(70))
    cache.slowCallThreshold = .zero
    let loaded = try await cache.loaded(forKey: "a") { _ in throw LoadFailure() }
    #expect(loaded?.isStale == true)
    await eventually { cache.loadStatistics.failedCount == 1 }
    // One read looks for a fresh value, and the next one finds the stale value.
    #expect(cache.slowCalls().prefix(2).map { Kept($0) } == [Kept(.read), Kept(.read)])
    #expect(cache.slowCalls().last?.operation == .load)
  }

  @Test("A closed cache, and one whose directory is gone, do not trap")
  func closed() async throws {
    let cache = try filled { $0.slowCallThreshold = .zero }
    try FileManager.default.removeItem(atPath: cache.path)
    await #expect(throws: StoreError.self) {
      try await cache.setValue("1", forKey: "c", durability: .durable)
    }
    #expect(throws: Never.self) { try cache.value(forKey: "c") }
    try? await cache.close()
    #expect(throws: StoreError.self) { try cache.value(forKey: "a") }
    #expect(throws: StoreError.self) { try cache.synchronous { try $0.removeValue(forKey: "a") } }
    await #expect(throws: StoreError.self) { try await cache.setValue("1", forKey: "a") }
    cache.slowCallThreshold = nil
    cache.slowCallThreshold = .zero
    let kept = cache.slowCalls().map { Kept($0) }
    #expect(kept.suffix(2) == [Kept(.read), Kept(.removal)])
    #expect(kept.contains(Kept(.write, "c")))
  }

  @Test("A following cache times its reads")
  func follower() throws {
    let scene = FollowingScene()
    let writer = try scene.writer()
    try writer.setValue("1", forKey: "a")
    let follower = try scene.follower { $0.slowCallThreshold = .zero }
    #expect(try follower.value(forKey: "a") == "1")
    #expect(try follower.value(forKey: "a") == "1")
    #expect(throws: StoreError.self) { try follower.setValue("2", forKey: "a") }
    #expect(follower.slowCalls().map { Kept($0) } == [Kept(.read), Kept(.write)])
    #expect(try follower.statistics().readDurations.count == 1)
  }

  @Test("A key that cannot be decoded leaves a call without a key")
  func undecodable() throws {
    let keys = KeyCoder<String>.custom {
      Array($0.utf8)
    } decode: { _ in
      throw CodingFailure("never")
    }
    let cache: Cache = try scene.cache(keys: keys, values: .standard) {
      $0.memory = nil
      $0.slowCallThreshold = .zero
    }
    try cache.setValue("1", forKey: "a")
    _ = try cache.value(forKey: "a")
    #expect(cache.slowCalls().map { Kept($0) } == [Kept(.write, nil), Kept(.read, nil)])
  }

  @Test("Threads that read, write, read the log and set the threshold lose no count")
  func threads() async throws {
    let cache = try filled { $0.slowCallThreshold = .zero }
    let before = try cache.statistics()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          for _ in 0..<500 {
            if (try? cache.value(forKey: "a")) == nil { Issue.record("no value") }
            if number == 0 { cache.slowCallThreshold = .nanoseconds(Int64(number)) }
            if number == 1 {
              let calls = cache.slowCalls()
              if calls.count > 128 || calls.contains(where: { $0.key == nil }) {
                Issue.record("not a log of single keys: \(calls)")
              }
            }
          }
        }
      }
    }
    #expect(try cache.statistics().since(before).readDurations.count == 2000)
    #expect(cache.slowCalls().count == 128)
  }

  @Test("The durations are in the text for Prometheus, and in the difference of two statistics")
  func exported() throws {
    let cache = try filled { $0.slowCallThreshold = .zero }
    let before = try cache.statistics()
    _ = try cache.values(forKeys: ["a", "b", "c"])
    let statistics = try cache.statistics()
    let page = try PrometheusPage(statistics.prometheus(prefix: "x"))
    #expect(page["x_read_duration_seconds_count"] == 3)
    #expect(page["x_read_duration_seconds_bucket", ["le": "+Inf"]] == 3)
    #expect(page["x_write_duration_seconds_count"] == 2)
    let sum = try #require(page["x_read_duration_seconds_sum"])
    #expect(sum > 0 && abs(sum - statistics.readDurations.total.inSeconds) < 1e-6)
    let recent = statistics.since(before)
    #expect(recent.readDurations.count == 3 && recent.writeDurations.count == 0)
    #expect(recent.writeDurations.total == .zero)
    #expect(statistics.readDurations.counts.count == DurationHistogram.bounds.count + 1)
  }

  @Test("A duration on a bound is in the bucket that it ends")
  func buckets() {
    var histogram = DurationHistogram()
    for milliseconds in [0, 5, 6, 10_000, 10_001] { histogram.note(.milliseconds(milliseconds)) }
    #expect(histogram.counts == [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    #expect(histogram.count == 5 && histogram.total == .milliseconds(20_012))
  }
}

/// Holds the thread that encodes a value.
private final class QueueState: Sendable {
  private let begun = Atomic(false)
  private let opened = Atomic(false)

  var hasBegun: Bool { begun.load(ordering: .acquiring) }

  func open() { opened.store(true, ordering: .releasing) }

  func block() {
    begun.store(true, ordering: .releasing)
    while !opened.load(ordering: .acquiring) { pause(for: .milliseconds(1)) }
  }
}
