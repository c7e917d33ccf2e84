import CairnStore
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Loads that wait for themselves", .timeLimit(.minutes(30)))
struct LoadCircleTests {
  let scene = MemoryScene()

  @Test("A load that requests its own key throws, and does not wait forever")
  func ownKey() async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let value = try await cache.value(forKey: "a") {
      do { return try await cache.value(forKey: "a") { 1 } } catch StoreError.circularLoad {
        return 2
      }
    }
    #expect(value == 2)
    await #expect(throws: StoreError.circularLoad) {
      try await cache.value(forKey: "b") {
        try await cache.value(forKey: "c") { try await cache.value(forKey: "b") { 1 } }
      }
    }
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
  }

  @Test("Two loads in two caches that wait for each other do not wait forever")
  func circle() async throws {
    let (left, right): (MemoryCache<Int, Int>, MemoryCache<Int, Int>) = (
      scene.cache(), scene.cache()
    )
    let gate = Gate()
    let one = Task {
      try await left.value(forKey: 1) {
        await gate.wait()
        return try await right.value(forKey: 2) { 0 } + 1
      }
    }
    let two = Task {
      try await right.value(forKey: 2) {
        await gate.wait()
        return try await left.value(forKey: 1) { 0 } + 1
      }
    }
    await eventually { gate.arrivedCount == 2 }
    gate.open()
    // The load that would have closed the circle fails, and so does the other.
    await #expect(throws: StoreError.circularLoad) { try await one.value }
    await #expect(throws: StoreError.circularLoad) { try await two.value }
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
  }

  @Test(
    "A task that a loader starts but does not await may request what waits for the load",
    arguments: [false, true])
  func unawaitedTask(isOwnKey: Bool) async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    let tasks = Record<Task<Int, any Error>>()
    let value = try await cache.value(forKey: "a") {
      tasks.add(
        Task {
          if isOwnKey { return try await cache.value(forKey: "a") { 0 } }
          return try await cache.value(forKey: "b") { try await cache.value(forKey: "a") { 0 } }
        })
      // The load ends after the task's call.
      await eventually { cache.flights.counts.joinedCount == 1 }
      return 7
    }
    #expect(value == 7)
    for task in tasks.all { #expect(try await task.value == 7) }
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
  }

  enum Child: CaseIterable { case asyncLet, group, discardingGroup, childOfChild }

  @Test(
    "A loader's child task that closes a circle throws",
    arguments: Child.allCases)
  func circleInChild(child: Child) async throws {
    let cache: MemoryCache<String, Int> = scene.cache()
    @Sendable func ask() async throws -> Int {
      try await cache.value(forKey: "b") { try await cache.value(forKey: "a") { 0 } }
    }
    await #expect(throws: StoreError.circularLoad) {
      try await cache.value(forKey: "a") {
        switch child {
        case .asyncLet:
          async let number = ask()
          return try await number
        case .group:
          return try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { try await ask() }
            return try await group.next() ?? 0
          }
        case .discardingGroup:
          try await withThrowingDiscardingTaskGroup { group in
            group.addTask { _ = try await ask() }
          }
          return 0
        case .childOfChild:
          return try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask {
              async let number = ask()
              return try await number
            }
            return try await group.next() ?? 0
          }
        }
      }
    }
    await eventually { LoadGraph.edges.withLock { $0.isEmpty } }
  }
}
