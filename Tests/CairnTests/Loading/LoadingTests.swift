import CairnStore
import Foundation
import FuzzSupport
import Testing

@testable import Cairn

struct LoadFailure: Error, Equatable {
  var number = 0
}

enum Ambient {
  @TaskLocal static var word = ""
}

@Suite("Loading missing values", .timeLimit(.minutes(30)))
struct LoadingTests {
  let scene = MemoryScene()

  @Test("Ten thousand callers of one key cause one load")
  func thundering() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let gate = Gate()
    let calls = Record<Int>()
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
    #expect(sum == 70_000)
    #expect(calls.all.count == 1)
    #expect(cache.flights.counts.startedCount == 1)
    #expect(cache.value(forKey: "a") == 7)
    #expect(!cache.flights.isActive)
  }

  @Test("A caller that arrives as a load ends finds its value and loads nothing")
  func late() async throws {
    let calls = Record<Int>()
    for round in 0..<300 {
      let cache: MemoryCache<Int, Int> = scene.cache()
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<8 {
          group.addTask {
            try await cache.value(forKey: round) {
              calls.add(1)
              return round
            }
          }
        }
        for try await value in group { #expect(value == round) }
      }
    }
    #expect(calls.all.count == 300)
  }

  @Test("Between a caller's lookup and its load, another load may have ended")
  func looksAgain() async throws {
    let cache: MemoryCache<Int, Int> = scene.cache()
    cache[1] = 5
    // This call is like a caller that looked before the value was there.
    let value = try await cache.loadValue(forKey: 1) {
      Issue.record("loaded what is there")
      return Loaded(6)
    }
    #expect(value == 5)
    #expect(cache.flights.counts.startedCount == 0)
    #expect(cache.statistics().hitCount == 0)
  }

  @Test("An error is thrown to all waiters, and the next caller loads again")
  func failure() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let gate = Gate()
    let errors = try await withThrowingTaskGroup(of: LoadFailure?.self) { group in
      for _ in 0..<50 {
        group.addTask {
          do {
            _ = try await cache.value(forKey: "a") {
              await gate.wait()
              throw LoadFailure(number: 3)
            }
            return nil
          } catch let error as LoadFailure { return error }
        }
      }
      await eventually { cache.flights.counts.joinedCount == 49 }
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(errors == Array(repeating: LoadFailure(number: 3), count: 50))
    #expect(cache.flights.counts.failedCount == 1)
    #expect(!cache.contains("a"))
    #expect(try await cache.value(forKey: "a") { 9 } == 9)
    #expect(cache.flights.counts.startedCount == 2)
  }

  @Test("A cancelled caller leaves at once, and the load continues for the others")
  func cancelledWaiter() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let gate = Gate()
    @Sendable func ask() async throws -> Int {
      try await cache.value(forKey: "a") {
        await gate.wait()
        try Task.checkCancellation()
        return 4
      }
    }
    let first = Task { try await ask() }
    await eventually { gate.arrivedCount == 1 }
    let others = (0..<3).map { _ in Task { try await ask() } }
    await eventually { cache.flights.counts.joinedCount == 3 }
    // Even the caller that began the load may leave it.
    first.cancel()
    others[1].cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    await #expect(throws: CancellationError.self) { try await others[1].value }
    gate.open()
    #expect(try await others[0].value == 4)
    #expect(try await others[2].value == 4)
    #expect(cache.value(forKey: "a") == 4)
    #expect(cache.flights.counts.cancelledCount == 0)
  }

  @Test("When the last waiter leaves, the load is cancelled and its result is not kept")
  func abandoned() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let wasCancelled = Record<Bool>()
    let gate = Gate()
    let waiters = (0..<2).map { _ in
      Task {
        try await cache.value(forKey: "a") {
          await gate.wait()
          wasCancelled.add(Task.isCancelled)
          return 1
        }
      }
    }
    await eventually { gate.arrivedCount == 1 && cache.flights.counts.joinedCount == 1 }
    for waiter in waiters { waiter.cancel() }
    for waiter in waiters {
      await #expect(throws: CancellationError.self) { try await waiter.value }
    }
    #expect(cache.flights.counts.cancelledCount == 1)
    // A caller that arrives now does not get the abandoned result.
    #expect(try await cache.value(forKey: "a") { 2 } == 2)
    gate.open()
    await eventually { wasCancelled.all == [true] }
    await eventually { cache.flights.counts.outdatedCount == 1 }
    #expect(cache.value(forKey: "a") == 2)
    await eventually { !cache.flights.isActive }
  }

  @Test("A caller that is cancelled before its call loads nothing")
  func cancelledBefore() async {
    let cache: MemoryCache<String, Int> = scene.cache()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await cache.value(forKey: "a") { 1 }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(cache.flights.counts.startedCount == 0)
  }

  enum Change: CaseIterable { case set, removed, taken, removedAll, setAndRemoved }

  @Test("A load does not undo a write or removal during it", arguments: Change.allCases)
  func writtenMeanwhile(change: Change) async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
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
      cache["a"] = 2
      expected = 2
    case .removed: cache.removeValue(forKey: "a")
    case .taken: _ = cache.takeValue(forKey: "a")
    case .removedAll: cache.removeAll()
    case .setAndRemoved:
      cache["a"] = 2
      cache["a"] = nil
    }
    // A caller after the change gets nothing from before it.
    let later = try await cache.value(forKey: "a") { 3 }
    #expect(later == expected ?? 3)
    if change != .set { cache["a"] = nil }
    gate.open()
    #expect(try await waiter.value == 1)
    #expect(cache.value(forKey: "a") == expected)
    #expect(cache.flights.counts.outdatedCount == 1)
  }

  @Test("A load that finds a value there does not replace it")
  func appeared() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let value = try await cache.value(forKey: "a") {
      let times = cache.clock.times(.standard, idleLimit: nil)
      cache.keep(2, forKey: "a", version: 1, times, cost: 0)
      return 1
    }
    #expect(value == 1)
    #expect(cache.value(forKey: "a") == 2)
  }

  @Test("A loader may use the cache, and load other keys with it")
  func nested() async throws {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 100)
    @Sendable func factorial(_ number: Int) async throws -> Int {
      try await cache.value(forKey: number) {
        cache[-number] = number
        _ = cache.contains(number)
        cache.trim(.toCount(90))
        return number == 0 ? 1 : try await factorial(number - 1) * number
      }
    }
    #expect(try await factorial(20) == 2_432_902_008_176_640_000)
    #expect(cache.flights.counts.startedCount == 21)
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
  }

  @Test("A load has the task-local values and the priority of its first caller")
  func inheritance() async throws {
    let cache: MemoryCache<Int, String> = scene.cache()
    let word = try await Ambient.$word.withValue("here") {
      try await cache.value(forKey: 1) { Ambient.word }
    }
    #expect(word == "here")
    let priorities: MemoryCache<Int, TaskPriority> = scene.cache()
    let priority = try await Task(priority: .low) {
      try await priorities.value(forKey: 1) { Task.currentPriority }
    }.value
    #expect(priority == .low)
  }

  @Test("A load gets the highest priority of its waiters")
  func escalation() async throws {
    let cache: MemoryCache<Int, TaskPriority> = scene.cache()
    let gate = Gate()
    let first = Task(priority: .background) {
      try await cache.value(forKey: 1) {
        await gate.wait()
        return Task.currentPriority
      }
    }
    while gate.arrivedCount < 1 { await Task.yield() }
    let second = Task(priority: .high) { try await cache.value(forKey: 1) { .low } }
    while cache.flights.counts.joinedCount < 1 { await Task.yield() }
    // The second caller raises the priority before it waits.
    try await Task.sleep(for: .milliseconds(50))
    gate.open()
    #expect(try await second.value >= .high)
    _ = await first.result
  }

  @Test("A load gets the highest priority even if the first caller has not started it yet")
  func earlyEscalation() async throws {
    let flight = Flight<TaskPriority>()
    let waiters = (Flight<TaskPriority>.Waiter(), Flight<TaskPriority>.Waiter())
    #expect(flight.enter(waiters.0) && flight.enter(waiters.1))
    flight.escalate(to: .high)
    flight.escalate(to: .low)
    let gate = Gate()
    let found = Record<TaskPriority>()
    let task = Task(priority: .background) {
      await gate.wait()
      found.add(Task.currentPriority)
    }
    flight.start(task, priority: .background)
    gate.open()
    await eventually { !found.all.isEmpty }
    #expect(found.all == [.high])
  }

  @Test(
    "A waiter continues before the loader's cancellation handler ends", arguments: [true, false])
  func slowHandler(leaves: Bool) async throws {
    let flight = Flight<Int>()
    let waiter = Flight<Int>.Waiter()
    #expect(flight.enter(waiter))
    let ends = Record<Bool>()
    let sawEnd = Record<Bool>()
    let gate = Gate()
    let load = Task {
      await withTaskCancellationHandler {
        await gate.wait()
      } onCancel: {
        sawEnd.add(comesTrue { !ends.all.isEmpty })
      }
    }
    flight.start(load, priority: .medium)
    await eventually { gate.arrivedCount == 1 }
    Thread.detachNewThread {
      if leaves {
        _ = flight.leave(waiter)
      } else {
        flight.finish(.failure(CancellationError())) { $0.cancel() }
      }
    }
    await #expect(throws: CancellationError.self) {
      try await withCheckedThrowingContinuation { flight.wait(waiter, $0) }
    }
    ends.add(true)
    await eventually { sawEnd.all == [true] }
    gate.open()
  }

  @Test("The call and the load determine how the value is kept")
  func attributes() async throws {
    let cache: MemoryCache<String, String> = scene.cache(cost: 100)
    _ = try await cache.value(
      forKey: "a", options: EntryOptions(cost: 7, lifetime: .seconds(5), idleLimit: .seconds(2))
    ) { "x" }
    let info = try #require(cache.info(forKey: "a"))
    #expect(info.cost == 7 && info.idleLimit == .seconds(2))
    #expect(info.expires == scene.clock.now().advanced(by: .seconds(5)))
    _ = try await cache.value(forKey: "b") { "four" }
    #expect(cache.info(forKey: "b")?.cost == 4)
    _ = try await cache.value(forKey: "c") {
      scene.clock.advance(by: .seconds(1))
      return Loaded("x", options: EntryOptions(cost: 9, lifetime: .seconds(1)))
    }
    #expect(cache.info(forKey: "c")?.cost == 9)
    #expect(cache.info(forKey: "c")?.expires == scene.clock.now().advanced(by: .seconds(1)))
    scene.advance(by: .seconds(1))
    #expect(try await cache.value(forKey: "c") { "again" } == "again")
    // A value that is not kept is loaded each time.
    let dear = try await cache.value(forKey: "d", options: .cost(101)) { "dear" }
    #expect(dear == "dear" && !cache.contains("d"))
  }

  @Test(
    "Many tasks read, write, remove and are cancelled: values fit their keys, and no wait is left"
  )
  func crowd() async throws {
    let cache: MemoryCache<Int, Int> = scene.cache(count: 20)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<400 {
        let seed = TestSeed.current &+ UInt64(number)
        group.addTask {
          var random = FuzzRandom(seed: seed)
          for _ in 0..<20 {
            let key = random.below(30)
            switch random.below(8) {
            case 0: cache[key] = key
            case 1: cache[key] = nil
            case 2: cache.removeAll()
            case 3:
              let task = Task {
                try await cache.value(forKey: key) {
                  try await Task.sleep(for: .microseconds(50))
                  return key
                }
              }
              if random.below(2) == 0 { await Task.yield() }
              task.cancel()
              if let value = try? await task.value { #expect(value == key) }
            default:
              let fails = random.below(5) == 0
              let value = try? await cache.value(forKey: key) {
                await Task.yield()
                if fails { throw LoadFailure() }
                // A higher key never waits for a lower one, so that there are no circles.
                if key < 29 { _ = try await cache.value(forKey: key + 1) { key + 1 } }
                return key
              }
              if let value { #expect(value == key) }
            }
          }
        }
      }
    }
    await eventually { !cache.flights.isActive }
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
    #expect(cache.audit() == [], TestSeed.comment)
  }
}
