import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Stale values and refreshes of loads", .timeLimit(.minutes(30)))
struct LoadPolicyTests {
  let scene = LoadScene()
  let origin = Origin()

  // MARK: Stampedes

  @Test(
    "At the end of a lifetime, none of ten thousand callers waits, and the origin is called once",
    arguments: LoadingKind.allCases, [true, false])
  func stampede(_ kind: LoadingKind, isAhead: Bool) async throws {
    let policy = LoadPolicy.with {
      if isAhead { $0.refreshAhead = 0.8 } else { $0.staleWhileRevalidating = .seconds(30) }
    }
    let subject = try scene.cache(kind, policy)
    #expect(try await subject.ask(origin)?.value == "1")
    scene.advance(by: isAhead ? .seconds(48) : .seconds(60))
    // The origin returns after all callers have received their values.
    let gate = Gate()
    let given = try await withThrowingTaskGroup(of: Loaded<String>?.self) { group in
      for _ in 0..<10_000 {
        group.addTask { [origin] in
          try await subject.cache.loaded(forKey: "a", policy: nil) { _ in
            await gate.wait()
            return .loaded(try origin.answer(), options: .lifetime(.seconds(60)))
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(given.count == 10_000)
    #expect(given.allSatisfy { $0?.value == "1" && $0?.isStale == !isAhead })
    #expect(given.allSatisfy { $0?.age == (isAhead ? .seconds(48) : .seconds(60)) })
    gate.open()
    await eventually { !subject.isLoading() }
    #expect(origin.callCount == 2 && subject.loads.startedCount == 2)
    #expect(subject.loads.refreshedCount == 1 && subject.loads.freshCount == 1)
    #expect(subject.loads.staleServedCount == (isAhead ? 0 : 10_000))
    let new = try await subject.ask(origin)
    #expect(new?.value == "2" && new?.isStale == false && new?.age == .zero)
    #expect(origin.callCount == 2)
  }

  @Test(
    "A call for only the value also loads early, but not too early",
    arguments: LoadingKind.allCases)
  func valueAlone(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.refreshAhead = 0.5 })
    @Sendable func ask(_ key: String, policy: LoadPolicy? = nil) async throws -> String {
      try await subject.cache.value(
        forKey: key, options: .lifetime(.seconds(60)), policy: policy
      ) { [origin] in try origin.answer() }
    }
    #expect(try await ask("a") == "1")
    scene.advance(by: .milliseconds(29_999))
    for _ in 0..<10 { #expect(try await ask("a") == "1") }
    #expect(origin.callCount == 1)
    scene.advance(by: .milliseconds(1))
    #expect(try await ask("a", policy: .standard) == "1")
    #expect(origin.callCount == 1)
    #expect(try await ask("a") == "1")
    await eventually { origin.callCount == 2 && !subject.isLoading() }
    #expect(try await ask("a") == "2")
  }

  @Test(
    "While an origin fails for an hour, all get the stale value, and calls to the origin back off",
    arguments: LoadingKind.allCases)
  func failingOrigin(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.staleOnError = .seconds(7200) })
    _ = try await subject.ask(origin)
    origin.isFailing = true
    scene.advance(by: .seconds(60))
    for second in 0..<3600 {
      for _ in 0..<3 {
        let given = try await subject.ask(origin)
        #expect(given?.value == "1" && given?.isStale == true)
        #expect(given?.age == .seconds(60 + second))
      }
      scene.advance(by: .seconds(1))
    }
    // After 0, 1, 2, 4 … 32 seconds, and then every minute: no random number is above 0.
    #expect(origin.callCount == 1 + 7 + (3600 - 63) / 60)
    #expect(subject.loads.failedCount == UInt64(origin.callCount - 1))
    #expect(subject.loads.staleServedCount == 10_800)
    origin.isFailing = false
    scene.advance(by: .seconds(60))
    let new = try await subject.ask(origin)
    #expect(new?.isStale == false && new?.value == "\(origin.callCount)")
  }

  // MARK: What is returned, and to which calls

  @Test(
    "No value is returned that is older than its policy allows", arguments: LoadingKind.allCases)
  func noOlder(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(
      kind,
      LoadPolicy.with {
        $0.staleWhileRevalidating = .seconds(5)
        $0.staleOnError = .seconds(20)
      })
    _ = try await subject.ask(origin)
    // Another call may allow more. Values that such a call may receive stay for it.
    let longer = LoadPolicy.with { $0.staleOnError = .seconds(30) }
    _ = try await subject.cache.loaded(forKey: "a", policy: longer) { _ in .loaded("") }
    origin.isFailing = true
    scene.advance(by: .seconds(60) + .milliseconds(4999))
    let gate = Gate()
    let early = try await subject.cache.loaded(forKey: "a", policy: nil) { _ in
      await gate.wait()
      throw Origin.Failure()
    }
    #expect(early?.value == "1")
    gate.open()
    await eventually { subject.loads.failedCount == 1 }
    scene.advance(by: .seconds(15))
    #expect(try await subject.ask(origin)?.value == "1")
    // The call has waited for the failure.
    #expect(subject.loads.failedCount == 2)
    scene.advance(by: .milliseconds(1))
    await #expect(throws: Origin.Failure.self) { try await subject.ask(origin) }
    let given = try await subject.cache.loaded(forKey: "a", policy: longer) { _ in
      throw Origin.Failure()
    }
    #expect(given?.value == "1" && given?.isStale == true)
  }

  @Test(
    "A policy that only a call has keeps stale values from that call on",
    arguments: LoadingKind.allCases)
  func policyOfCall(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind)
    _ = try await subject.ask(origin)
    let policy = LoadPolicy.with { $0.staleOnError = .seconds(30) }
    @Sendable func value() async throws -> String {
      try await subject.cache.value(forKey: "a", options: .standard, policy: policy) {
        throw Origin.Failure()
      }
    }
    for _ in 0..<2 { #expect(try await value() == "1") }
    scene.advance(by: .seconds(70))
    // This read and the maintenance before it find an expired value, and leave it.
    #expect(try subject.cache.info(forKey: "a") == nil)
    #expect(try await value() == "1")
    scene.advance(by: .seconds(20))
    await #expect(throws: Origin.Failure.self) { try await value() }
  }

  @Test("For all other reads, a stale value has expired", arguments: LoadingKind.allCases)
  func plainReads(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(
      kind, LoadPolicy.with { $0.staleWhileRevalidating = .seconds(30) })
    try await checkPlainReads(subject.cache, subject)
  }

  private func checkPlainReads(
    _ cache: some ContractCache<String, String>, _ subject: LoadSubject
  ) async throws {
    _ = try await subject.ask(origin, "a")
    _ = try await subject.ask(origin, "b", for: 600)
    scene.advance(by: .seconds(60))
    for _ in 0..<2 {
      #expect(try cache.value(forKey: "a") == nil && cache.peekValue(forKey: "a") == nil)
      #expect(try cache.entry(forKey: "a") == nil && cache.info(forKey: "a") == nil)
      #expect(try !cache.contains("a"))
      #expect(try cache.count() == 1 && cache.keys() == ["b"])
      #expect(try cache.values(forKeys: ["a", "b"]) == [nil, "2"])
      var keys: [String] = []
      try cache.forEachEntry { entry in
        keys.append(entry.key)
        return .next
      }
      #expect(keys == ["b"])
      #expect(try !cache.setLifetime(.seconds(100), forKey: "a"))
      // The value exists nevertheless.
      let gate = Gate()
      let stale = try await cache.loaded(forKey: "a", policy: nil) { _ in
        await gate.wait()
        throw Origin.Failure()
      }
      #expect(stale?.value == "1" && stale?.isStale == true)
      gate.open()
      await eventually { !subject.isLoading() }
    }
    // A call whose policy allows no stale value has it loaded.
    let fresh = try await cache.value(forKey: "a", policy: .standard) { [origin] in
      try origin.answer()
    }
    #expect(fresh == "3")
    #expect(try cache.count() == 2)
  }

  enum Removal: CaseIterable {
    case one, many, taken, byKey, all, set
  }

  @Test(
    "A removed value is not returned stale, and a load that began before is not kept",
    arguments: LoadingKind.allCases, Removal.allCases)
  func removed(_ kind: LoadingKind, _ removal: Removal) async throws {
    let subject = try scene.cache(
      kind, LoadPolicy.with { $0.staleWhileRevalidating = .seconds(600) })
    _ = try await subject.ask(origin)
    scene.advance(by: .seconds(60))
    let gate = Gate()
    let stale = try await subject.cache.loaded(forKey: "a", policy: nil) { _ in
      await gate.wait()
      return .loaded("from before")
    }
    #expect(stale?.value == "1")
    await eventually { gate.arrivedCount == 1 }
    try await remove(removal, subject.cache)
    let isSet = removal == .set
    #expect(try await subject.ask(origin)?.value == (isSet ? "new" : "2"))
    gate.open()
    await eventually { subject.loads.cancelledCount + subject.loads.outdatedCount >= 1 }
    #expect(try await subject.ask(origin)?.value == (isSet ? "new" : "2"))
  }

  private func remove(_ removal: Removal, _ cache: some ContractCache<String, String>) async throws
  {
    switch removal {
    case .one: #expect(try await !cache.removeValue(forKey: "a"))
    case .many: #expect(try cache.removeValues(forKeys: ["a"]) == 0)
    case .taken: #expect(try cache.takeValue(forKey: "a") == nil)
    // The closure is not called for expired entries. The load is not notified, and its result is
    // kept, so they are removed first.
    case .byKey:
      try await cache.removeValue(forKey: "a")
      try cache.remove { key, _ in key == "a" }
    case .all: try await cache.removeAll()
    case .set: try cache.setValue("new", forKey: "a", options: .standard)
    }
  }

  @Test("After a removal by predicate, nothing stale is returned", arguments: LoadingKind.allCases)
  func removedByChoice(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.staleOnError = .seconds(600) })
    _ = try await subject.ask(origin)
    scene.advance(by: .seconds(60))
    try await removeByChoice(subject.cache)
    origin.isFailing = true
    await #expect(throws: Origin.Failure.self) { try await subject.ask(origin) }
  }

  private func removeByChoice(_ cache: some ContractCache<String, String>) async throws {
    try cache.remove { _, _ in true }
  }

  @Test("A write makes the cache forget failures", arguments: LoadingKind.allCases)
  func forgottenFailure(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.staleOnError = .seconds(600) })
    _ = try await subject.ask(origin)
    origin.isFailing = true
    scene.advance(by: .seconds(60))
    _ = try await subject.ask(origin)
    _ = try await subject.ask(origin)
    #expect(origin.callCount == 2)
    try await subject.set("x")
    scene.advance(by: .milliseconds(20))
    #expect(try await subject.ask(origin)?.value == "x")
    #expect(origin.callCount == 3)
  }
}
