import Cairn
import NearCacheTrial
import Testing

@testable import NearCache

@Suite(
  "Loads across machines", .serialized,
  .enabled(if: RedisServer.executable != nil, Comment(rawValue: RedisServer.missing)))
struct LoadTests {
  @Test("A hundred callers on three machines cause one request to the origin")
  func oneLoad() async throws {
    try await withCluster(machines: 3) { cluster in
      let origin = CountingOrigin()
      await origin.close()
      let machines = cluster.machines
      try await withThrowingTaskGroup(of: String.self) { group in
        for number in 0..<100 {
          group.addTask {
            try await machines[number % 3].value(forKey: "a", lifetime: .seconds(60)) {
              await origin.make("made")
            }
          }
        }
        try await eventually("all machines ask") {
          machines.allSatisfy { (try? $0.near.statistics().loadCount) ?? 0 > 0 }
        }
        await origin.open()
        for try await value in group { #expect(value == "made") }
      }
      #expect(await origin.count == 1)
    }
  }

  @Test("If an owner disappears, its lease ends and another caller loads")
  func lostOwner() async throws {
    try await withCluster(machines: 1) { cluster in
      let machine = cluster.machines[0]
      _ = try await machine.client.reply(
        to: Command("SET", "lock:trial:a", "of somebody else", "PX", "300"))
      let start = ContinuousClock.now
      let value = try await machine.value(forKey: "a", lifetime: nil) { "made" }
      #expect(value == "made")
      #expect(.now - start > .milliseconds(250))
      // A caller without an origin does not wait.
      #expect(try await machine.value(forKey: "b") == nil)
    }
  }

  @Test(
    "A value loaded after the end of its lease does not replace the next owner's value",
    .timeLimit(.minutes(1)))
  func lateOwner() async throws {
    try await withCluster { cluster in
      for _ in 0..<2 { try await cluster.addMachine { $0.lease = .milliseconds(300) } }
      let machines = cluster.machines
      let slow = CountingOrigin()
      await slow.close()
      async let late = machines[0].value(forKey: "a", lifetime: nil) { await slow.make("old") }
      try await eventually("the origin is asked") { await slow.count == 1 }
      #expect(try await machines[1].value(forKey: "a", lifetime: nil) { "new" } == "new")
      await slow.open()
      #expect(try await late == "new")
      #expect(try await machines[1].value(forKey: "a") == "new")
      #expect(await slow.count == 1)
    }
  }

  @Test(
    "While another machine loads, a stale copy is returned if the policy allows it",
    .timeLimit(.minutes(1)))
  func staleWhileLoading() async throws {
    try await withCluster { cluster in
      let reader = try await cluster.addMachine {
        $0.loadPolicy.staleWhileRevalidating = .seconds(60)
      }
      let loader = try await cluster.addMachine()
      try await loader.setValue("old", forKey: "a")
      try await haveNear("a", reader)
      // The reader misses the removal.
      cluster.networks[0].set(.refusing, for: [.feed])
      try await eventually("the loss is noticed") { reader.invalidationOutage != nil }
      try await loader.removeValue(forKey: "a")
      cluster.networks[0].set(.open)
      try await eventually("invalidations come") { reader.invalidationOutage == nil }
      let origin = CountingOrigin()
      await origin.close()
      async let loaded = loader.value(forKey: "a", lifetime: nil) { await origin.make("new") }
      try await eventually("the origin is asked") { await origin.count == 1 }
      let answer = try await reader.answer(forKey: "a") { await origin.make("newer") }
      #expect(answer?.value == "old")
      #expect(answer?.source == .stale)
      await origin.open()
      #expect(try await loaded == "new")
      try await eventually("the reader has it") {
        try await reader.answer(forKey: "a")?.value == "new"
      }
      #expect(await origin.count == 1)
    }
  }

  @Test("An origin that is slower than the lease is asked once", .timeLimit(.minutes(1)))
  func slowOrigin() async throws {
    try await withCluster { cluster in
      let machine = try await cluster.addMachine { $0.lease = .milliseconds(100) }
      let origin = CountingOrigin()
      for number in 1...2 {
        let value = try await machine.value(forKey: "a", lifetime: nil) {
          let value = await origin.make("made")
          if await origin.count > number { throw TrialFailure("asked again") }
          try await Task.sleep(for: .milliseconds(300))
          return value
        }
        #expect(value == "made")
        #expect(await origin.count == number)
      }
      // The value is not in the engine, and the lock is free.
      #expect(try await machine.value(forKey: "a") == nil)
      #expect(try await machine.value(forKey: "a", lifetime: nil) { "fast" } == "fast")
    }
  }

  @Test("An origin is asked twice at most, even if the key is removed each time")
  func repeatedRemovals() async throws {
    try await withCluster(machines: 2) { cluster in
      let (machine, other) = (cluster.machines[0], cluster.machines[1])
      let origin = CountingOrigin()
      let value = try await machine.value(forKey: "a", lifetime: nil) {
        let value = await origin.make("made")
        if await origin.count > 2 { throw TrialFailure("asked again") }
        try await other.removeValue(forKey: "a")
        return value
      }
      #expect(value == "made")
      #expect(await origin.count == 2)
    }
  }

  @Test("An origin's answer from before a write does not replace the written value")
  func overtakenOrigin() async throws {
    try await withCluster(machines: 2) { cluster in
      let origin = CountingOrigin()
      await origin.close()
      let machines = cluster.machines
      async let loaded = machines[0].value(forKey: "a", lifetime: nil) {
        await origin.make("old")
      }
      try await eventually("the origin is asked") { await origin.count == 1 }
      try await machines[1].setValue("new", forKey: "a")
      await origin.open()
      #expect(try await loaded == "new")
      #expect(try await machines[1].value(forKey: "a") == "new")
      #expect(await origin.count == 1)
    }
  }

  @Test("A removal also deletes the lock, so the owner loads again")
  func overtakenByRemoval() async throws {
    try await withCluster(machines: 2) { cluster in
      let origin = CountingOrigin()
      await origin.close()
      let machines = cluster.machines
      async let loaded = machines[0].value(forKey: "a", lifetime: nil) {
        await origin.make("made")
      }
      try await eventually("the origin is asked") { await origin.count == 1 }
      try await machines[1].removeValue(forKey: "a")
      await origin.open()
      #expect(try await loaded == "made")
      #expect(await origin.count == 2)
    }
  }

  @Test("The origin's error reaches the caller, and the lock is released")
  func failingOrigin() async throws {
    struct Failure: Error {}
    try await withCluster(machines: 2) { cluster in
      await #expect(throws: Failure.self) {
        try await cluster.machines[0].value(forKey: "a", lifetime: nil) { throw Failure() }
      }
      let start = ContinuousClock.now
      let value = try await cluster.machines[1].value(forKey: "a", lifetime: nil) { "made" }
      #expect(value == "made")
      // Less than the lease of ten seconds.
      #expect(.now - start < .seconds(5))
    }
  }

  @Test("With a policy that loads early, a near copy is reloaded before it expires")
  func loadingEarly() async throws {
    try await withCluster { cluster in
      let machine = try await cluster.addMachine {
        $0.nearLifetime = .seconds(2)
        $0.loadPolicy.refreshAhead = 0.1
      }
      try await machine.setValue("1", forKey: "a")
      try await haveNear("a", machine)
      let started = try machine.near.statistics().loadCount
      try await eventually("it is loaded while it is given") {
        let answer = try await machine.answer(forKey: "a")
        #expect(answer?.value == "1")
        return try machine.near.statistics().metrics.contains {
          $0.name == "loads.refreshed" && $0.value > 0
        }
      }
      #expect(try machine.near.statistics().loadCount > started)
      let stranger = EngineClient(EngineConfiguration(endpoint: cluster.server.endpoint))
      defer { stranger.close() }
      _ = try await stranger.reply(to: Command("SET", "trial:a", "2"))
      try await machine.catchUp()
      #expect(try await machine.value(forKey: "a") == "2")
    }
  }
}
