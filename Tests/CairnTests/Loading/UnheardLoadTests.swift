import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

/// Loads whose callers have gone, and what a load leaves behind.
@Suite("Loads without waiting callers", .timeLimit(.minutes(30)))
struct UnheardLoadTests {
  let scene = LoadScene()
  let origin = Origin()
  private let policy = LoadPolicy.with { $0.staleWhileRevalidating = .seconds(30) }

  @Test("A failure in the background is told to observers")
  func memory() async throws {
    let cache = scene.memory(policy)
    let events = Record<CacheEvent<String>>()
    cache.observe { event in if case .loadFailed = event { events.add(event) } }
    try await fail(LoadSubject(cache)) { events.all.count }
    #expect(events.all == [.loadFailed(key: "a", reason: "Failure()")])
  }

  @Test(
    "A failure in the background is told to observers and to the log", arguments: [true, false])
  func disk(isTiered: Bool) async throws {
    let messages = Record<String>()
    let log = DiagnosticLog { messages.add($0.description) }
    let cache = try scene.disk(policy, memory: isTiered, log: log)
    let events = Record<CacheEvent<String>>()
    cache.observe { event in if case .loadFailed = event { events.add(event) } }
    try await fail(LoadSubject(cache)) { events.all.count }
    #expect(events.all == [.loadFailed(key: "a", reason: "Failure()")])
    #expect(messages.all.count == 1 && messages.all[0].hasSuffix("failed: Failure"))
    try await cache.close()
  }

  /// Lets a load fail before a caller that waits for it, and then one in the background.
  private func fail(_ subject: LoadSubject, _ toldCount: () -> Int) async throws {
    origin.isFailing = true
    await #expect(throws: Origin.Failure.self) { try await subject.ask(origin) }
    #expect(toldCount() == 0)
    origin.isFailing = false
    #expect(try await subject.ask(origin)?.value == "2")
    scene.advance(by: .seconds(60))
    origin.isFailing = true
    #expect(try await subject.ask(origin)?.isStale == true)
    await eventually { toldCount() == 1 }
    #expect(subject.loads.failedCount == 2)
  }

  @Test("A removal of a tag ends a remembered absence", arguments: [true, false])
  func absence(isTiered: Bool) async throws {
    let cache = try scene.disk(.standard, memory: isTiered)
    let gate = Gate()
    @Sendable func ask() async throws -> Loaded<String>? {
      try await cache.loaded(forKey: "a") { [origin] _ in
        _ = try origin.answer()
        await gate.wait()
        return .absent(for: .seconds(3600), tags: ["x", "z"])
      }
    }
    // A removal during the load ends the absence that the load reports.
    let first = Task { try await ask() }
    await eventually { gate.arrivedCount == 1 }
    try await cache.removeAll(tagged: "x")
    gate.open()
    #expect(try await first.value == nil)
    #expect(try await ask() == nil)
    #expect(try await ask() == nil)
    #expect(origin.callCount == 2)
    try await cache.removeAll(tagged: "y")
    #expect(try await ask() == nil)
    #expect(origin.callCount == 2)
    try await cache.removeAll(tagged: "z")
    #expect(try await ask() == nil)
    #expect(origin.callCount == 3)
    try await cache.close()
  }

  @Test(
    "An end long ago does not prolong the life of an unmodified value",
    arguments: LoadingKind.allCases)
  func longAgo(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, .with { $0.refreshAhead = 0 })
    #expect(try await subject.ask(origin)?.value == "1")
    func end() async throws -> Timestamp? {
      func end(_ cache: some ContractCache<String, String>) throws -> Timestamp? {
        try cache.info(forKey: "a")?.expires
      }
      return try end(subject.cache)
    }
    let before = try await end()
    for time: Int64 in [.min, .min + 1, -1, 0] {
      let round = subject.loads.notModifiedCount
      _ = try await subject.cache.loaded(forKey: "a", policy: nil) { prior in
        try #require(prior).notModified(
          lifetime: .until(Timestamp(millisecondsSinceEpoch: time)))
      }
      await eventually { subject.loads.notModifiedCount == round + 1 }
      #expect(try await end() == before)
    }
  }
}
