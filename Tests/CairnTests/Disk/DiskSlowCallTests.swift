import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

@Suite("Durations of a disk cache's calls, and messages about slow ones", .timeLimit(.minutes(30)))
struct DiskSlowCallTests {
  typealias Cache = DiskCache<String, String>

  let scene = TieredScene()
  private let messages = Record<DiagnosticLog.Message>()

  private func filled(
    held: Int? = nil, memory: Bool = false,
    _ change: (inout DiskCacheConfiguration) -> Void = { _ in }
  ) throws -> Cache {
    let cache: Cache = try scene.cache(held: held) {
      if !memory { $0.memory = nil }
      listen(&$0)
      change(&$0)
    }
    try cache.setValue("1", forKey: "a", options: Self.options)
    try cache.setValue("2", forKey: "b", options: Self.options)
    return cache
  }

  /// Keeps the messages about slow calls.
  private func listen(_ configuration: inout DiskCacheConfiguration) {
    configuration.store.log = DiagnosticLog { [messages] message in
      if message.text.hasPrefix("slow call: ") { messages.add(message) }
    }
  }

  /// How many reads and writes the cache has timed.
  private func counts(_ cache: Cache) throws -> [UInt64] {
    let statistics = try cache.statistics()
    return [statistics.readDurations.count, statistics.writeDurations.count]
  }

  @Test(
    "With a threshold of zero, every call is timed, and the first is reported", arguments: calls)
  func kinds(call: Call) async throws {
    let cache = try filled()
    cache.slowCallThreshold = .zero
    try await call.body(cache)
    // The histograms count the calls, and those of loads count the loads.
    let statistics = try cache.statistics()
    let reads = call.timed.count { $0 == .read }
    let loads = call.timed.count { $0 == .load }
    #expect(statistics.readDurations.count == UInt64(reads))
    #expect(statistics.writeDurations.count == UInt64(call.timed.count - reads - loads))
    #expect(statistics.loadDurations.count == UInt64(loads))
    guard let first = call.timed.first else { return #expect(messages.all.isEmpty) }
    let message = try #require(messages.all.first)
    #expect(message.text.hasPrefix("slow call: a \(first.rawValue) took "), "\(message)")
    #expect(message.level == .warning && message.path == cache.path)
    #expect(message.category == (first == .read ? "reading" : "writing"))
  }

  @Test("Without a threshold, no call is timed", arguments: calls)
  func off(call: Call) async throws {
    let cache = try filled()
    #expect(cache.slowCallThreshold == nil)
    try await call.body(cache)
    #expect(messages.all.isEmpty)
    let statistics = try cache.statistics()
    #expect(statistics.readDurations == DurationHistogram())
    #expect(statistics.writeDurations == DurationHistogram())
    #expect(!statistics.prometheus(prefix: "a").contains("read_duration"))
  }

  @Test("Only reads that find nothing in memory are timed")
  func memory() async throws {
    let cache = try filled(held: 1, memory: true) { $0.slowCallThreshold = .zero }
    #expect(try counts(cache) == [0, 2])
    for _ in 0..<10 { #expect(try cache.value(forKey: "b") == "2") }
    #expect(try cache.contains("b") && cache.peekValue(forKey: "b") == "2")
    #expect(try await cache.value(forKey: "b") { "" } == "2")
    #expect(try counts(cache) == [0, 2])
    #expect(try cache.value(forKey: "a") == "1")
    #expect(try cache.value(forKey: "a") == "1")
    #expect(try cache.contains("absent") == false)
    #expect(try counts(cache) == [2, 2])
  }

  @Test("The threshold changes while the cache is open")
  func changed() throws {
    let cache = try filled { $0.slowCallThreshold = .seconds(3600) }
    #expect(cache.slowCallThreshold == .seconds(3600))
    _ = try cache.value(forKey: "a")
    #expect(messages.all.isEmpty)
    cache.slowCallThreshold = .zero
    _ = try cache.value(forKey: "b")
    cache.slowCallThreshold = nil
    #expect(cache.slowCallThreshold == nil)
    _ = try cache.value(forKey: "a")
    #expect(messages.all.count == 1)
    #expect(try counts(cache) == [2, 2])
  }

  @Test("The log gets one message a second, which counts those left out")
  func quiet() {
    var configuration = DiskCacheConfiguration()
    listen(&configuration)
    let calls = CallTimes(threshold: .zero, log: configuration.store.log, path: "/a")
    let second: UInt64 = 1_000_000_000
    for step in 0..<10 as Range<UInt64> { calls.reportIfSlow(.batch, 0, at: second + step) }
    calls.reportIfSlow(.read, 2 * second, at: 2 * second - 1)
    calls.reportIfSlow(.load, 3 * second, at: 2 * second)
    calls.reportIfSlow(.removal, 60_000_000, at: 9 * second)
    #expect(
      messages.all.map(\.text) == [
        "slow call: a batch took 0 µs",
        "slow call: a load took 3 s; 10 more since the last message",
        "slow call: a removal took 60 ms",
      ])
  }

  @Test("No message has the key")
  func secret() throws {
    let cache = try filled()
    cache.slowCallThreshold = .zero
    _ = try cache.value(forKey: "secret")
    #expect(messages.all.count == 1 && !messages.all[0].description.contains("secret"))
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
    if isKept {
      #expect(messages.all[0].text.contains("a write took"))
    } else {
      #expect(messages.all.allSatisfy { $0.text.contains("a load took") })
    }
    #expect(try cache.statistics().readDurations.count >= 1)
  }

  @Test("Calls with a slow coder are reported")
  func slowCoder() async throws {
    let coder = ValueCoder<String>.custom { value in
      if value == "slow" { pause(for: .milliseconds(60)) }
      return Array(value.utf8)
    } decode: { bytes in
      let value = String(copying: bytes) ?? ""
      if value == "slow" { pause(for: .milliseconds(60)) }
      return value
    }
    let cache: Cache = try scene.cache(keys: .standard, values: coder) {
      $0.memory = nil
      listen(&$0)
    }
    cache.slowCallThreshold = .milliseconds(50)
    let before = try cache.statistics()
    try await cache.setValue("slow", forKey: "a")
    try cache.synchronous { _ = try $0.setValue("slow", forKey: "b") }
    try await cache.setValues([(key: "c", value: "slow")])
    _ = try cache.value(forKey: "a")
    _ = try cache.entry(forKey: "c")
    #expect(messages.all[0].text.contains("a write took"))
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
      listen(&$0)
      $0.slowCallThreshold = .milliseconds(50)
    }
    try cache.synchronous { _ = try $0.setValue("1", forKey: "a", durability: .durable) }
    try await cache.setValue("2", forKey: "b", durability: .durable)
    _ = try await cache.removeValue(forKey: "a", durability: .durable)
    #expect(messages.all[0].text.contains("a write took"))
    #expect(try slowWriteCount(cache) == 3)
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
      $0.store.concurrentCallLimit = 1
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
    #expect(try slowWriteCount(cache) == 2)
  }

  /// How many timed writes took more than 50 ms.
  private func slowWriteCount(_ cache: Cache) throws -> UInt64 {
    let first = DurationHistogram.bucket(of: .milliseconds(50)) + 1
    return try cache.statistics().writeDurations.counts[first...].reduce(0, +)
  }

  @Test(
    "Slow loads are timed by the cache's clock, also those that fail", arguments: [false, true])
  func loads(hasMemory: Bool) async throws {
    let cache = try filled(held: 10, memory: hasMemory) { $0.slowCallThreshold = .seconds(2) }
    _ = try await cache.value(forKey: "c") { [scene] in
      scene.clock.advance(by: .seconds(1))
      return ""
    }
    #expect(messages.all.isEmpty)
    var policy = LoadPolicy()
    policy.staleOnError = .seconds(10)
    await #expect(throws: LoadFailure.self) {
      _ = try await cache.loaded(forKey: "f", policy: policy) { [scene] _ in
        scene.clock.advance(by: .seconds(4))
        throw LoadFailure()
      }
    }
    #expect(messages.all.map(\.text) == ["slow call: a load took 4 s"])
    cache.slowCallThreshold = nil
    _ = try await cache.value(forKey: "g") { [scene] in
      scene.clock.advance(by: .seconds(9))
      return ""
    }
    #expect(messages.all.count == 1)
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
    await eventually { cache.flights.counts.failedCount == 1 }
    // One read looks for a fresh value, and the next one finds the stale value.
    #expect(try cache.statistics().readDurations.count >= 2)
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
    let (reads, writes) = cache.calls.durations
    #expect(reads.count == 2 && writes.count >= 4)
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
    #expect(try counts(follower) == [1, 1])
  }

  @Test("Threads that read, and set the threshold, lose no count")
  func threads() async throws {
    let cache = try filled { $0.slowCallThreshold = .zero }
    let before = try cache.statistics()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          for _ in 0..<500 {
            if (try? cache.value(forKey: "a")) == nil { Issue.record("no value") }
            if number == 0 { cache.slowCallThreshold = .nanoseconds(Int64(number)) }
          }
        }
      }
    }
    #expect(try cache.statistics().since(before).readDurations.count == 2000)
    #expect(!messages.all.isEmpty)
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
