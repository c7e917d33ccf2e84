import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite(
  "Loads that see the old value, random lifetimes, and absence", .timeLimit(.minutes(30)))
struct ConditionalLoadTests {
  let origin = Origin()

  private func policy(_ change: (inout LoadPolicy) -> Void) -> LoadPolicy {
    var policy = LoadPolicy()
    change(&policy)
    return policy
  }

  private func info(
    _ cache: some ContractCache<String, String>, _ key: String = "a"
  ) throws -> EntryInfo? {
    try cache.info(forKey: key)
  }

  // MARK: Changes beside loads

  @Test("A removal by predicate makes a load outdated", arguments: LoadingKind.allCases)
  func removedByChoice(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind, policy { $0.refreshAhead = 0 })
    try await removeByChoice(subject, subject.cache)
  }

  private func removeByChoice(
    _ subject: LoadSubject, _ cache: some ContractCache<String, String>
  ) async throws {
    try cache.setValue("1", forKey: "a", options: .lifetime(.seconds(60)))
    let gate = Gate()
    let given = try await cache.loaded(forKey: "a", policy: nil) { _ in
      await gate.wait()
      return .loaded("from before")
    }
    #expect(given?.value == "1")
    await eventually { gate.arrivedCount == 1 }
    try cache.remove { key, _ in key == "a" }
    #expect(subject.loads.cancelledCount == 1)
    gate.open()
    await eventually { subject.loads.outdatedCount == 1 }
    #expect(try cache.value(forKey: "a") == nil)
  }

  /// Makes a change that cancels a load in the background. Its cancellation handler starts another
  /// load, and waits for its loader to be called.
  ///
  /// - Parameter result: the result of the other load, after the change.
  /// - Returns: the value that the other load sees.
  private func change<Cache: ContractCache<String, String>>(
    _ cache: Cache, _ result: LoadResult<String>, _ body: @escaping @Sendable (Cache) -> Void
  ) async throws -> String? {
    try cache.setValue("old", forKey: "a", options: .lifetime(.seconds(60)))
    let gates = (Gate(), Gate())
    let priors = Record<String?>()
    _ = try await cache.loaded(forKey: "a", policy: nil) { _ in
      await withTaskCancellationHandler {
        await gates.0.wait()
      } onCancel: {
        Task {
          try await cache.loaded(forKey: "a", policy: nil) { prior in
            priors.add(prior?.value)
            await gates.1.wait()
            return result
          }
        }
        _ = comesTrue { !priors.all.isEmpty }
      }
      return .loaded("late")
    }
    await eventually { gates.0.arrivedCount == 1 }
    let ends = Record<Bool>()
    Thread.detachNewThread {
      body(cache)
      ends.add(true)
    }
    await eventually { !ends.all.isEmpty }
    gates.0.open()
    gates.1.open()
    return try #require(priors.all.first)
  }

  @Test("A load that begins beside a change in memory begins before or after it")
  func beginsBesideChange() async throws {
    let cache = LoadScene().memory(policy { $0.refreshAhead = 0 })
    #expect(try await change(cache, .loaded("")) { $0.removeValue(forKey: "a") } == nil)
    let written = try await change(cache, .loaded("")) { cache in
      cache.setValue("new", forKey: "a", lifetime: .seconds(60))
    }
    #expect(written == "new")
    let compared = try await change(cache, .loaded("")) { cache in
      guard let version = cache.info(forKey: "a")?.version else { return }
      #expect(cache.compareAndRemove(forKey: "a", expecting: version))
    }
    #expect(compared == nil)
  }

  enum DiskWrite: CaseIterable { case set, compared, batch }

  @Test(
    "An absence that a load finds beside a write is not recorded", arguments: DiskWrite.allCases)
  func absentBesideWrite(_ write: DiskWrite) async throws {
    let scene = LoadScene()
    let cache = try scene.disk(policy { $0.refreshAhead = 0 })
    _ = try await change(cache, .absent(for: .seconds(3600))) { cache in
      do {
        switch write {
        case .set: try cache.setValue("new", forKey: "a")
        case .compared: _ = try cache.update(forKey: "a") { _ in "new" }
        case .batch: try cache.setValues([(key: "a", value: "new")])
        }
      } catch { Issue.record(error) }
    }
    await eventually { cache.flights.counts.durations.count == 2 }
    #expect(cache.flights.history.isEmpty)
    try await cache.close()
    withExtendedLifetime(scene) {}
  }

  // MARK: Not modified

  @Test(
    "A renewal without an end, or with the configured lifetime if there is none, has no end",
    arguments: LoadingKind.allCases, [Lifetime.unlimited, .standard])
  func endless(_ kind: LoadingKind, lifetime: Lifetime) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind, policy { $0.staleOnError = .seconds(600) })
    let cache = subject.cache
    _ = try await cache.loaded(forKey: "a", policy: nil) { _ in
      .loaded("page", lifetime: .seconds(60))
    }
    #expect(try info(cache)?.expires != nil)
    scene.advance(by: .seconds(70))
    _ = try await cache.loaded(forKey: "a", policy: nil) { prior in
      try #require(prior).notModified(lifetime: lifetime)
    }
    let renewed = try #require(try info(cache))
    #expect(renewed.expires == nil)
  }

  @Test(
    "An unmodified value is renewed, with a new version on disk",
    arguments: LoadingKind.allCases)
  func notModified(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind, policy { $0.staleOnError = .seconds(600) })
    let cache = subject.cache
    let first = try await cache.loaded(forKey: "a", policy: nil) { prior in
      #expect(prior == nil)
      return .loaded("page", options: EntryOptions(lifetime: .seconds(60), metadata: [7, 8]))
    }
    #expect(first?.value == "page")
    var version = try info(cache)?.version
    for round in 1...5 {
      scene.advance(by: .seconds(70))
      #expect(try info(cache) == nil)
      let renewed = try await cache.loaded(forKey: "a", policy: nil) { [version] prior in
        let prior = try #require(prior)
        #expect(prior.value == "page" && prior.isStale && prior.version == version)
        #expect(prior.age == .seconds(70))
        #expect(prior.metadata == (kind == .memory ? [] : [7, 8]))
        return prior.notModified(lifetime: .seconds(60))
      }
      #expect(renewed?.value == "page" && renewed?.isStale == false && renewed?.age == .zero)
      #expect(subject.loads.notModifiedCount == UInt64(round))
      let info = try info(cache)
      if kind != .memory { #expect(info?.version ?? 0 > version ?? .max) }
      version = info?.version
      #expect(info?.expires == scene.clock.now().advanced(by: .seconds(60)))
      scene.advance(by: .milliseconds(30))
      let found = try await cache.loaded(forKey: "a", policy: nil) { _ in .loaded("") }
      #expect(found?.age == .milliseconds(30) && found?.isStale == false)
      scene.clock.advance(by: .milliseconds(-30))
    }
    #expect(subject.loads.refreshedCount == 5 && subject.loads.outdatedCount == 0)
  }

  @Test(
    "A refresh ahead counts from when the value was found unmodified",
    arguments: LoadingKind.allCases)
  func refreshAfterRenewal(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind, policy { $0.refreshAhead = 0.5 })
    @Sendable func ask() async throws -> Loaded<String>? {
      try await subject.cache.loaded(forKey: "a", policy: nil) { [origin] prior in
        _ = try origin.answer()
        return prior?.notModified(lifetime: .seconds(60))
          ?? .loaded("page", options: .lifetime(.seconds(60)))
      }
    }
    _ = try await ask()
    // Every half minute, as long as it is requested: never more often.
    for second in 1...300 {
      scene.advance(by: .seconds(1))
      #expect(try await ask()?.isStale == false)
      await eventually { !subject.isLoading() }
      #expect(origin.callCount == 1 + second / 30)
    }
  }

  @Test(
    "A value that is removed while it is found unmodified is not restored",
    arguments: LoadingKind.allCases)
  func removedMeanwhile(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind, policy { $0.refreshAhead = 0 })
    _ = try await subject.cache.loaded(forKey: "a", policy: nil) { _ in .loaded("page") }
    let gate = Gate()
    try await set("page", subject.cache, lifetime: .seconds(60))
    _ = try await subject.cache.loaded(forKey: "a", policy: nil) { prior in
      await gate.wait()
      guard let prior else { throw Origin.Failure() }
      return prior.notModified(lifetime: .seconds(600))
    }
    await eventually { gate.arrivedCount == 1 }
    try await remove(subject.cache)
    gate.open()
    await eventually { subject.loads.outdatedCount == 1 }
    #expect(try info(subject.cache) == nil)
  }

  private func set(
    _ value: String, _ cache: some ContractCache<String, String>, lifetime: Lifetime
  ) async throws {
    try cache.setValue(value, forKey: "a", options: .lifetime(lifetime))
  }

  private func remove(_ cache: some ContractCache<String, String>) async throws {
    try await cache.removeValue(forKey: "a")
  }

  // MARK: After a restart

  @Test(
    "A stale value survives maintenance and a restart for as long as the policy may return it",
    arguments: [false, true])
  func restart(hasMemory: Bool) async throws {
    let scene = LoadScene()
    let policy = policy { $0.staleOnError = .seconds(600) }
    var cache = try scene.disk(policy, memory: hasMemory)
    try await cache.setValue(
      "page", forKey: "a", options: EntryOptions(lifetime: .seconds(60), metadata: [1]))
    scene.advance(by: .seconds(100))
    for _ in 0..<2 {
      try await cache.maintain()
      try await cache.compact()
      try await cache.close()
      cache = try scene.disk(policy, memory: hasMemory)
      let stale = try await cache.loaded(forKey: "a") { prior in
        #expect(prior?.metadata == [1] && prior?.age == .seconds(100))
        throw Origin.Failure()
      }
      #expect(stale?.value == "page" && stale?.isStale == true && stale?.age == .seconds(100))
      #expect(try cache.count() == 0 && cache.value(forKey: "a") == nil)
    }
    scene.advance(by: .seconds(560))
    try await cache.maintain()
    #expect(try cache.statistics().count == 0)
    await #expect(throws: Origin.Failure.self) {
      try await cache.loaded(forKey: "a") { _ in throw Origin.Failure() }
    }
    try await cache.close()
    // Without the policy, nothing is left of expired values.
    cache = try scene.disk(policy)
    try await cache.setValue("page", forKey: "b", lifetime: .seconds(60))
    try await cache.close()
    cache = try scene.disk(.standard)
    scene.advance(by: .seconds(60))
    try await cache.maintain()
    #expect(try cache.statistics().count == 0)
  }

  @Test("A renewal outlives a restart", arguments: [false, true])
  func renewedAcrossRestart(hasMemory: Bool) async throws {
    let scene = LoadScene()
    let policy = policy { $0.staleOnError = .seconds(600) }
    var cache = try scene.disk(policy, memory: hasMemory)
    try await cache.setValue("page", forKey: "a", lifetime: .seconds(60))
    scene.advance(by: .seconds(100))
    _ = try await cache.loaded(forKey: "a") { prior in
      try #require(prior).notModified(lifetime: .seconds(60))
    }
    scene.advance(by: .seconds(59))
    try await cache.close()
    cache = try scene.disk(policy, memory: hasMemory)
    #expect(try cache.value(forKey: "a") == "page")
    scene.advance(by: .seconds(1))
    #expect(try cache.value(forKey: "a") == nil)
    try await cache.close()
    #expect(try await Store.verify(path: cache.path).errors.isEmpty)
  }

  // MARK: Close

  @Test(
    "A background refresh ends with the close, and its result is not kept",
    arguments: [false, true])
  func close(hasMemory: Bool) async throws {
    let scene = LoadScene()
    let cache = try scene.disk(policy { $0.refreshAhead = 0 }, memory: hasMemory)
    try await cache.setValue("old", forKey: "a", lifetime: .seconds(60))
    let gate = Gate()
    let wasCancelled = Record<Bool>()
    let given = try await cache.loaded(forKey: "a") { _ in
      await gate.wait()
      wasCancelled.add(Task.isCancelled)
      return .loaded("new")
    }
    #expect(given?.value == "old")
    await eventually { gate.arrivedCount == 1 }
    try await cache.close()
    #expect(!cache.flights.isActive && cache.flights.counts.cancelledCount == 1)
    gate.open()
    await eventually { wasCancelled.all == [true] }
    let again = try scene.disk(.standard)
    #expect(try again.value(forKey: "a") == "old")
    // No load begins after the close.
    await #expect(throws: StoreError.self) {
      try await cache.loaded(forKey: "a") { _ in .loaded("") }
    }
    #expect(!cache.flights.isActive)
    try await again.close()
  }

  // MARK: At random

  @Test(
    "Values loaded together do not expire together, and live no longer than requested",
    arguments: LoadingKind.allCases)
  func jitter(_ kind: LoadingKind) async throws {
    let numbers = Lock(FuzzRandom(seed: TestSeed.current))
    let scene = LoadScene { numbers.withLock { Double($0.below(1000)) / 1000 } }
    let subject = try scene.cache(kind, policy { $0.lifetimeJitter = 0.25 })
    var ends: Set<Timestamp> = []
    for key in 0..<100 {
      _ = try await subject.cache.value(forKey: "\(key)", lifetime: .seconds(100), policy: nil) {
        ""
      }
      let end = try #require(try info(subject.cache, "\(key)")?.expires)
      ends.insert(end)
      #expect(end <= scene.clock.now().advanced(by: .seconds(100)), TestSeed.comment)
      #expect(end > scene.clock.now().advanced(by: .seconds(75)), TestSeed.comment)
    }
    #expect(ends.count > 50, TestSeed.comment)
    // An end that is a point in time stays.
    let end = scene.clock.now().advanced(by: .seconds(7))
    _ = try await subject.cache.value(forKey: "until", lifetime: .until(end), policy: nil) { "" }
    #expect(try info(subject.cache, "until")?.expires == end)
  }

  // MARK: Absent

  @Test(
    "After absence, no load begins before the absence ends or the key is written or removed",
    arguments: LoadingKind.allCases)
  func absent(_ kind: LoadingKind) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(kind)
    @Sendable func ask() async throws -> Loaded<String>? {
      try await subject.cache.loaded(forKey: "a", policy: nil) { [origin] _ in
        _ = try origin.answer()
        return .absent(for: .seconds(5))
      }
    }
    for _ in 0..<3 { #expect(try await ask() == nil) }
    #expect(origin.callCount == 1 && subject.loads.absentCount == 1)
    #expect(try info(subject.cache) == nil)
    scene.advance(by: .milliseconds(4999))
    #expect(try await ask() == nil)
    #expect(origin.callCount == 1)
    scene.advance(by: .milliseconds(1))
    #expect(try await ask() == nil)
    #expect(origin.callCount == 2)
    // A caller that cannot receive absence has the value loaded.
    let value = try await subject.cache.value(forKey: "a", policy: .standard) { "made" }
    #expect(value == "made")
    #expect(try await ask()?.value == "made")
    try await remove(subject.cache)
    #expect(try await ask() == nil)
    #expect(origin.callCount == 3)
    try await remove(subject.cache)
    #expect(try await ask() == nil)
    #expect(origin.callCount == 4)
    try await set("set", subject.cache, lifetime: .seconds(1))
    #expect(try await ask()?.value == "set")
    scene.advance(by: .seconds(1))
    #expect(try await ask() == nil)
    #expect(origin.callCount == 5)
  }

  @Test(
    "If the origin no longer has a value, the old one goes, even a stale one",
    arguments: LoadingKind.allCases, [false, true])
  func becomesAbsent(_ kind: LoadingKind, isStale: Bool) async throws {
    let scene = LoadScene()
    let subject = try scene.cache(
      kind,
      policy {
        $0.staleWhileRevalidating = .seconds(600)
        $0.refreshAhead = 0
      })
    try await set("old", subject.cache, lifetime: .seconds(60))
    if isStale { scene.advance(by: .seconds(60)) }
    let given = try await subject.cache.loaded(forKey: "a", policy: nil) { prior in
      #expect(prior?.isStale == isStale)
      return .absent(for: .seconds(5))
    }
    #expect(given?.value == "old")
    await eventually { !subject.isLoading() }
    let none = try await subject.cache.loaded(forKey: "a", policy: nil) { _ in
      throw Origin.Failure()
    }
    #expect(none == nil)
    #expect(try info(subject.cache) == nil)
  }
}
