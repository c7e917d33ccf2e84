import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Loading many keys at once", .timeLimit(.minutes(30)))
struct BulkLoadTests {
  let scene = MemoryScene()
  let disk = DiskScene()

  enum Kind: CaseIterable { case memory, disk }

  /// The calls that both kinds of caches have.
  private struct Subject {
    var values:
      @Sendable (
        [Int], Lifetime?, @escaping @Sendable ([Int]) async throws -> [Int: String]
      ) async throws -> [String?]
    var value: @Sendable (Int, @escaping @Sendable () async throws -> String) async throws -> String
    var set: @Sendable (String, Int) throws -> Void
    var peek: @Sendable (Int) throws -> String?
    var reportAbsent: @Sendable (Int) async throws -> Void
    /// Removes a value as an eviction does: without a write of its key.
    var expire: @Sendable (Int) throws -> Void
    var counts: @Sendable () -> LoadCounts
  }

  private func subject(_ kind: Kind) throws -> Subject {
    switch kind {
    case .memory:
      let cache: MemoryCache<Int, String> = scene.cache()
      return Subject(
        values: { try await cache.values(forKeys: $0, lifetime: $1, orLoad: $2) },
        value: { try await cache.value(forKey: $0, orLoad: $1) },
        set: { cache.setValue($0, forKey: $1) }, peek: { cache.peekValue(forKey: $0) },
        reportAbsent: { _ = try await cache.loaded(forKey: $0) { _ in .absent(for: .seconds(9)) } },
        expire: { _ in cache.trim(.toCount(0)) },
        counts: { cache.flights.counts })
    case .disk:
      let cache: DiskCache<Int, String> = try disk.cache()
      return Subject(
        values: { try await cache.values(forKeys: $0, lifetime: $1, orLoad: $2) },
        value: { try await cache.value(forKey: $0, orLoad: $1) },
        set: { try cache.setValue($0, forKey: $1) }, peek: { try cache.peekValue(forKey: $0) },
        reportAbsent: { _ = try await cache.loaded(forKey: $0) { _ in .absent(for: .seconds(9)) } },
        expire: { _ in try cache.trim(.toCount(0)) },
        counts: { cache.flights.counts })
    }
  }

  @Test(
    "One call loads what is missing; what the loader leaves out stays absent",
    arguments: Kind.allCases)
  func missing(kind: Kind) async throws {
    let cache = try subject(kind)
    try cache.set("two", 2)
    let calls = Record<[Int]>()
    let values = try await cache.values([3, 2, 1, 3, 9], .seconds(5)) { missing in
      calls.add(missing.sorted())
      return [1: "one", 3: "three", 7: "not asked for"]
    }
    #expect(values == ["three", "two", "one", "three", nil])
    #expect(calls.all == [[1, 3, 9]])
    #expect(try cache.peek(1) == "one" && cache.peek(3) == "three")
    #expect(try cache.peek(7) == nil && cache.peek(9) == nil)
    #expect(cache.counts().freshCount == 2)
    #expect(
      try await cache.values([1, 2, 3], nil) { _ in throw LoadFailure() } == [
        "one", "two", "three",
      ])
    #expect(try await cache.values([], nil) { _ in throw LoadFailure() } == [])
    scene.clock.advance(by: .seconds(5))
    disk.clock.advance(by: .seconds(5))
    #expect(try cache.peek(1) == nil && cache.peek(2) == "two")
  }

  @Test("A key that was reported absent is not loaded until that ends", arguments: Kind.allCases)
  func absent(kind: Kind) async throws {
    let cache = try subject(kind)
    try await cache.reportAbsent(1)
    let calls = Record<[Int]>()
    @Sendable func load(_ missing: [Int]) -> [Int: String] {
      calls.add(missing)
      return Dictionary(uniqueKeysWithValues: missing.map { ($0, "\($0)") })
    }
    #expect(try await cache.values([1, 2], nil, load) == [nil, "2"])
    #expect(try await cache.values([1], nil, load) == [nil])
    scene.advance(by: .seconds(9))
    disk.clock.advance(by: .seconds(9))
    #expect(try await cache.values([1], nil, load) == ["1"])
    #expect(calls.all == [[2], [1]])
    // A load that keeps a value ends the report.
    try await cache.reportAbsent(3)
    #expect(try await cache.value(3) { "3" } == "3")
    try cache.expire(3)
    #expect(try await cache.values([3], nil, load) == ["3"])
    #expect(calls.all.last == [3])
  }

  @Test("Calls that overlap load each key once, and wait for each other", arguments: Kind.allCases)
  func overlapping(kind: Kind) async throws {
    let cache = try subject(kind)
    let (calls, gate) = (Record<[Int]>(), Gate())
    @Sendable func load(_ missing: [Int]) async -> [Int: String] {
      calls.add(missing)
      await gate.wait()
      return Dictionary(uniqueKeysWithValues: missing.map { ($0, "\($0)") })
    }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for start in 0..<20 {
        group.addTask {
          let keys = Array(start..<start + 10)
          return try await cache.values(keys, nil, load) == keys.map { "\($0)" }
        }
      }
      group.addTask { try await cache.value(5) { await load([5])[5]! } == "5" }
      await eventually { calls.all.joined().count == 29 }
      gate.open()
      for try await isRight in group { #expect(isRight) }
    }
    #expect(calls.all.joined().sorted() == Array(0..<29))
  }

  @Test("If the loader fails, all its keys do; the next call loads again", arguments: Kind.allCases)
  func failure(kind: Kind) async throws {
    let cache = try subject(kind)
    await #expect(throws: LoadFailure(number: 1)) {
      try await cache.values([1, 2], nil) { _ in throw LoadFailure(number: 1) }
    }
    #expect(cache.counts().failedCount == 2)
    #expect(try await cache.values([1, 2], nil) { _ in [1: "one"] } == ["one", nil])
  }

  @Test(
    "If another call's load fails, this call keeps what it has loaded, then throws",
    arguments: Kind.allCases)
  func joinedFailure(kind: Kind) async throws {
    let cache = try subject(kind)
    let gate = Gate()
    let other = Task {
      try await cache.value(1) {
        await gate.wait()
        throw LoadFailure(number: 2)
      }
    }
    await eventually { cache.counts().startedCount == 1 }
    let call = Task { try await cache.values([1, 2], nil) { _ in [2: "two"] } }
    await eventually { (try? cache.peek(2)) == "two" }
    gate.open()
    await #expect(throws: LoadFailure(number: 2)) { try await call.value }
    _ = await other.result
    #expect(try cache.peek(2) == "two")
  }

  @Test(
    "A cancelled call ends at once, and the loader with its last caller", arguments: Kind.allCases)
  func cancellation(kind: Kind) async throws {
    let cache = try subject(kind)
    let (started, ended) = (Gate(), Record<Bool>())
    let call = Task {
      try await cache.values([1, 2], nil) { _ in
        started.open()
        defer { ended.add(true) }
        try await Task.sleep(for: .seconds(600))
        return [:]
      }
    }
    await started.wait()
    let other = Task { try await cache.value(2) { "other" } }
    await eventually { cache.counts().joinedCount == 1 }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    #expect(ended.all == [])
    other.cancel()
    await eventually { ended.all == [true] }
    _ = await other.result
  }

  @Test(
    "A loader that asks for one of its keys is circular; for others, it is not",
    arguments: Kind.allCases)
  func circular(kind: Kind) async throws {
    let cache = try subject(kind)
    await #expect(throws: StoreError.circularLoad) {
      try await cache.values([1, 2], nil) { _ in
        [1: try await cache.value(2) { "never" }]
      }
    }
    await #expect(throws: StoreError.circularLoad) {
      try await cache.values([1, 2], nil) { _ in
        _ = try await cache.values([3, 1], nil) { _ in [:] }
        return [:]
      }
    }
    let values = try await cache.values([4, 5], nil) { missing in
      let more = try await cache.values([6, 7], nil) { _ in [6: "six", 7: "seven"] }
      return [4: more[0]!, 5: more[1]!]
    }
    #expect(values == ["six", "seven"])
  }

  @Test("The configured time limit applies")
  func timeLimit() async throws {
    let scene = LoadScene()
    let cache = scene.memory(.with { $0.timeLimit = .seconds(10) })
    let call = Task {
      try await cache.values(forKeys: ["1", "2"]) { _ in
        try await Task.sleep(for: .seconds(600))
        return [:]
      }
    }
    await eventually { cache.flights.counts.startedCount == 2 }
    scene.advance(by: .seconds(10))
    await #expect(throws: StoreError.loadTimedOut(limit: .seconds(10))) { try await call.value }
  }

  @Test("A key that is written during the load keeps what was written", arguments: Kind.allCases)
  func written(kind: Kind) async throws {
    let cache = try subject(kind)
    let values = try await cache.values([1, 2], nil) { missing in
      try cache.set("newer", 1)
      return [1: "old", 2: "two"]
    }
    #expect(values == ["old", "two"])
    #expect(try cache.peek(1) == "newer" && cache.peek(2) == "two")
    #expect(cache.counts().outdatedCount == 1)
  }
}
