import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Time limits of loads", .timeLimit(.minutes(30)))
struct LoadLimitTests {
  let scene = LoadScene()
  let origin = Origin()

  /// A cache with a stale value, and a task that waits for a load of it. The load ends with
  /// `result` when the gate opens.
  private func loadingStale(
    _ kind: LoadingKind, _ change: (inout LoadPolicy) -> Void,
    _ result: @escaping @Sendable () throws -> LoadResult<String>
  ) async throws -> (LoadSubject, Gate, Task<Loaded<String>?, any Error>) {
    let subject = try scene.cache(
      kind,
      LoadPolicy.with {
        $0.staleOnError = .seconds(600)
        change(&$0)
      })
    _ = try await subject.ask(origin)
    scene.advance(by: .seconds(60))
    let gate = Gate()
    let waiter = Task {
      try await subject.cache.loaded(forKey: "a", policy: nil) { _ in
        await gate.wait()
        return try result()
      }
    }
    await eventually { gate.arrivedCount == 1 }
    return (subject, gate, waiter)
  }

  @Test(
    "A load that takes too long is an error, and its result is not kept",
    arguments: LoadingKind.allCases)
  func hardLimit(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.timeLimit = .seconds(2) })
    let gate = Gate()
    let wasCancelled = Record<Bool>()
    let waiters = (0..<3).map { _ in
      Task {
        try await subject.cache.value(forKey: "a", policy: nil) {
          await gate.wait()
          wasCancelled.add(Task.isCancelled)
          return "late"
        }
      }
    }
    await eventually { gate.arrivedCount == 1 && subject.loads.joinedCount == 2 }
    scene.advance(by: .milliseconds(1999))
    #expect(subject.loads.timedOutCount == 0)
    scene.advance(by: .milliseconds(1))
    for waiter in waiters {
      await #expect(throws: StoreError.loadTimedOut(limit: .seconds(2))) { try await waiter.value }
    }
    #expect(subject.loads.timedOutCount == 1 && !subject.isLoading())
    gate.open()
    await eventually { wasCancelled.all == [true] }
    #expect(try await subject.ask(origin)?.value == "1")
    #expect(subject.loads.failedCount == 0)
  }

  @Test("A time limit runs no cancellation handler, which could block other limits")
  func cancelsElsewhere() async throws {
    let (background, timers) = (ManualBackgroundQueue(), ManualBackgroundQueue())
    var configuration = MemoryConfiguration()
    configuration.clock = scene.clock
    let cache = MemoryCache<String, String>(
      configuration: configuration,
      environment: MemoryCacheEnvironment(
        background: background, timers: timers,
        pressureMonitor: PressureMonitor(
          source: SilentPressureSource(), queue: ManualBackgroundQueue())))
    let gate = Gate()
    let cancelled = Record<Bool>()
    let waiter = Task {
      try await cache.value(forKey: "a", policy: .with { $0.timeLimit = .seconds(2) }) {
        await withTaskCancellationHandler {
          await gate.wait()
        } onCancel: {
          cancelled.add(true)
        }
        return "late"
      }
    }
    await eventually { gate.arrivedCount == 1 }
    scene.clock.advance(by: .seconds(2))
    timers.runAll(dueAfter: .seconds(2))
    await #expect(throws: StoreError.loadTimedOut(limit: .seconds(2))) { try await waiter.value }
    #expect(cancelled.all == [])
    background.runAll()
    #expect(cancelled.all == [true])
    gate.open()
  }

  @Test(
    "A load that waits for itself through a detached task ends at its limit",
    arguments: LoadingKind.allCases)
  func detachedCircle(_ kind: LoadingKind) async throws {
    let subject = try scene.cache(kind, LoadPolicy.with { $0.timeLimit = .seconds(2) })
    let outer = Task {
      try await subject.cache.value(forKey: "a", policy: nil) {
        let inner = Task.detached {
          try await subject.cache.value(forKey: "a", policy: nil) { "never" }
        }
        return try await inner.value
      }
    }
    await eventually { subject.loads.joinedCount == 1 }
    scene.advance(by: .seconds(2))
    await #expect(throws: StoreError.loadTimedOut(limit: .seconds(2))) { try await outer.value }
  }

  @Test(
    "A stale value is returned if the load takes too long, and after that until the next attempt",
    arguments: LoadingKind.allCases)
  func hardLimitOfStale(_ kind: LoadingKind) async throws {
    let (subject, gate, waiter) = try await loadingStale(kind, { $0.timeLimit = .seconds(2) }) {
      .loaded("late")
    }
    scene.advance(by: .seconds(2))
    #expect(try await waiter.value?.value == "1")
    #expect(try await subject.ask(origin)?.value == "1")
    #expect(origin.callCount == 1)
    gate.open()
    scene.advance(by: .seconds(1))
    #expect(try await subject.ask(origin)?.value == "2")
  }

  @Test(
    "After the soft limit a stale value is returned, and the load's result is kept",
    arguments: LoadingKind.allCases)
  func softLimit(_ kind: LoadingKind) async throws {
    let (subject, gate, waiter) = try await loadingStale(
      kind, { $0.softTimeLimit = .milliseconds(100) }
    ) {
      try Task.checkCancellation()
      return .loaded("late", options: .lifetime(.seconds(60)))
    }
    // The timer of the wait may be set slightly later.
    await eventually { scene.background.delays.contains(.milliseconds(100)) }
    scene.advance(by: .milliseconds(100))
    let stale = try await waiter.value
    #expect(stale?.value == "1" && stale?.isStale == true)
    #expect(subject.isLoading())
    gate.open()
    await eventually { !subject.isLoading() }
    #expect(try await subject.ask(origin)?.value == "late")
    #expect(origin.callCount == 1)
  }

  @Test(
    "An outdated load is cancelled when no caller is left, however the callers left",
    arguments: LoadingKind.allCases, [false, true])
  func outdated(_ kind: LoadingKind, isLastCancelled: Bool) async throws {
    let wasCancelled = Record<Bool>()
    let limit = Duration.milliseconds(100)
    let (subject, gate, waiter) = try await loadingStale(kind, { $0.softTimeLimit = limit }) {
      wasCancelled.add(Task.isCancelled)
      return .loaded("late")
    }
    await eventually { scene.background.delays.contains(limit) }
    var other: Task<Loaded<String>?, any Error>?
    if isLastCancelled {
      other = Task {
        let policy = LoadPolicy.with { $0.staleOnError = .seconds(600) }
        return try await subject.cache.loaded(forKey: "a", policy: policy) { _ in .loaded("other") }
      }
      await eventually { subject.loads.joinedCount == 1 }
    }
    try await subject.set("x")
    scene.advance(by: limit)
    #expect(try await waiter.value?.value == "x")
    if let other {
      other.cancel()
      await #expect(throws: CancellationError.self) { try await other.value }
    }
    gate.open()
    await eventually { wasCancelled.all == [true] }
  }
}
