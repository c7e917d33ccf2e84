import Cairn
import Foundation
import NearCacheTrial
import Testing

@testable import NearCache

@Suite(
  "With a server", .serialized,
  .enabled(if: RedisServer.executable != nil, Comment(rawValue: RedisServer.missing)))
struct NearCacheTests {
  @Test("If one machine sets a value, the others read it and then have near copies")
  func sharing() async throws {
    try await withCluster(machines: 3) { cluster in
      let machines = cluster.machines
      #expect(try await machines[0].value(forKey: "a") == nil)
      try await machines[0].setValue("1", forKey: "a")
      for machine in machines {
        try await machine.catchUp()
        #expect(try await machine.value(forKey: "a") == "1")
        try await haveNear("a", machine)
        #expect(try await machine.value(forKey: "a") == "1")
      }
      try await machines[1].setValue("2", forKey: "a")
      #expect(try await machines[1].value(forKey: "a") == "2")
      try await machines[2].catchUp()
      #expect(try await machines[2].value(forKey: "a") == "2")
      try await machines[2].removeValue(forKey: "a")
      #expect(try await machines[2].value(forKey: "a") == nil)
      try await machines[0].catchUp()
      #expect(try await machines[0].value(forKey: "a") == nil)
    }
  }

  @Test("A near copy is read from disk if memory has no room")
  func tiers() async throws {
    try await withCluster { cluster in
      let machine = try await cluster.addMachine {
        $0.near.memory = MemoryConfiguration(countLimit: 1)
      }
      try await machine.setValues([("a", "1"), ("b", "2")])
      for key in ["a", "b"] { try await haveNear(key, machine) }
      for key in ["a", "b"] {
        #expect(try await machine.answer(forKey: key)?.source == .near)
      }
      #expect(machine.near.memory?.statistics().count == 1)
    }
  }

  @Test("Many keys are read together and set together")
  func batches() async throws {
    try await withCluster(machines: 2) { cluster in
      let pairs = (0..<500).map { (key: "\($0)", value: "value \($0)") }
      try await cluster.machines[0].setValues(pairs)
      _ = try await cluster.machines[1].value(forKey: "7")
      let found = try await cluster.machines[1].values(forKeys: (0..<510).map { "\($0)" })
      #expect(found.count == 500)
      #expect(pairs.allSatisfy { found[$0.key] == $0.value })
      let again = try await cluster.machines[1].values(forKeys: ["1", "2", "none"])
      #expect(again == ["1": "value 1", "2": "value 2"])
    }
  }

  @Test("Reading many keys takes one round trip, and so does setting many")
  func pipelining() async throws {
    try await withCluster { cluster in
      let machine = try await cluster.addMachine {
        $0.engine.callTimeout = .seconds(20)
        $0.stalenessLimit = .seconds(30)
      }
      // A round trip takes 0.1 s, so 600 separate calls would take a minute.
      cluster.networks[0].set(.slow(50), for: [.calls])
      let start = ContinuousClock.now
      try await machine.setValues((0..<300).map { (key: "\($0)", value: "value \($0)") })
      #expect(try await machine.values(forKeys: (0..<300).map { "\($0)" }).count == 300)
      #expect(.now - start < .seconds(10))
    }
  }

  @Test("A near copy lives no longer than the value in the engine")
  func lifetimes() async throws {
    try await withCluster(machines: 2) { cluster in
      try await cluster.machines[0].setValue("1", forKey: "a", lifetime: .milliseconds(400))
      try await cluster.machines[1].catchUp()
      #expect(try await cluster.machines[1].value(forKey: "a") == "1")
      let info = try #require(try cluster.machines[1].near.info(forKey: "a"))
      let end = try #require(info.expires)
      #expect(end < Timestamp.now.advanced(by: .milliseconds(410)))
      try await eventually("it has expired") {
        try await cluster.machines[1].value(forKey: "a") == nil
      }
    }
  }

  @Test("Writes by other clients, and an emptied server, are noticed too")
  func strangers() async throws {
    try await withCluster(machines: 2) { cluster in
      let stranger = EngineClient(EngineConfiguration(endpoint: cluster.server.endpoint))
      defer { stranger.close() }
      for machine in cluster.machines {
        try await machine.setValue("1", forKey: "a")
      }
      for machine in cluster.machines { try await haveNear("a", machine) }
      _ = try await stranger.reply(to: Command("SET", "trial:a", "2"))
      for machine in cluster.machines {
        try await machine.catchUp()
        #expect(try await machine.value(forKey: "a") == "2")
      }
      _ = try await stranger.reply(to: Command("FLUSHALL"))
      for machine in cluster.machines {
        try await machine.catchUp()
        #expect(try await machine.value(forKey: "a") == nil)
      }
    }
  }

  @Test("An answer that is older than an invalidation is not kept")
  func overtakenLoad() async throws {
    try await withCluster(machines: 2) { cluster in
      try await cluster.machines[0].setValue("1", forKey: "a")
      // The engine's answer is slow, so the invalidation overtakes it.
      cluster.networks[1].set(.slow(60), for: [.calls])
      let machine = cluster.machines[1]
      async let old = machine.value(forKey: "a")
      // The request takes 60 ms to reach the server, so this is 30 ms after its arrival.
      try await Task.sleep(for: .milliseconds(90))
      try await cluster.machines[0].setValue("2", forKey: "a")
      try await cluster.machines[1].catchUp()
      _ = try await old
      cluster.networks[1].set(.open)
      #expect(try await cluster.machines[1].value(forKey: "a") == "2")
    }
  }

  @Test("A machine reads its own write at once, even if the invalidation is late")
  func ownWrites() async throws {
    try await withCluster(machines: 1) { cluster in
      let machine = cluster.machines[0]
      cluster.networks[0].set(.slow(20), for: [.feed])
      for number in 1...1000 {
        // Concurrent reads may get answers that are older than the write.
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<4 { group.addTask { _ = try await machine.value(forKey: "a") } }
          group.addTask {
            try await machine.setValue("\(number)", forKey: "a")
            for _ in 0..<4 { #expect(try await machine.value(forKey: "a") == "\(number)") }
          }
          try await group.waitForAll()
        }
      }
    }
  }

  @Test("A value of three megabytes can be set and read")
  func largeValue() async throws {
    try await withCluster(machines: 1) { cluster in
      let large = String(repeating: "0123456789", count: 300_000)
      try await cluster.machines[0].setValue(large, forKey: "large")
      #expect(try await cluster.machines[0].value(forKey: "large") == large)
      try await haveNear("large", cluster.machines[0])
    }
  }

  @Test("Errors in a server's answers are not an outage, and the thrown error quotes them")
  func refusal() async throws {
    try await withCluster(machines: 1) { cluster in
      let client = cluster.machines[0].client
      _ = try await client.reply(to: Command("RPUSH", "trial:list", "1"))
      let error = try await engineError { _ = try await cluster.machines[0].value(forKey: "list") }
      guard case .refused(let text) = error.cause else { throw error }
      #expect(text.hasPrefix("WRONGTYPE"))
      #expect(
        "\(error)".hasPrefix("GET trial:list at 127.0.0.1:\(cluster.networks[0].port): "))
    }
  }
}
