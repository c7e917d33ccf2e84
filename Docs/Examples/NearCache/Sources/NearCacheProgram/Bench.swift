import Cairn
import Foundation
import NearCache
import NearCacheTrial

/// Compares a near cache with plain Redis, in turns, on one machine. Over a network, plain Redis is
/// slower by the round trip.
struct Bench {
  private let seconds: Int
  private let rounds: Int
  private let outage: Int
  private let part: String?
  private let taskCount: Int

  init(_ options: Options) throws {
    seconds = try options.number("seconds", default: 3)
    rounds = try options.number("rounds", default: 5)
    outage = try options.number("outage", default: 30)
    taskCount = try options.number("tasks", default: 16)
    part = options.text("part")
  }

  /// One of the compared clients.
  struct Contender: Sendable {
    var name: String
    var get: @Sendable (String) async throws -> Bool
    var set: @Sendable (String, [UInt8]) async throws -> Void
  }

  func run() async throws {
    let directory = NSTemporaryDirectory() + "/near-cache-bench-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let server = try RedisServer(directory: directory + "/server", isLogged: false)
    try await server.start()
    defer { server.kill() }
    print(
      "redis-server and both clients share \(ProcessInfo.processInfo.processorCount) processors;")
    print("\(taskCount) tasks, \(rounds) rounds of \(seconds) s each, in turns; medians\n")
    if part ?? "hot" == "hot" {
      try await compare(
        "hot keys: 1,000 of 100 bytes, gets only", server, directory + "/hot.cairn",
        keys: Zipf(count: 1000, exponent: 0), valueSize: 100, writeShare: 0, memory: 64 << 20)
    }
    if part ?? "read" == "read" {
      try await compare(
        "Zipf 0.99 over 100,000 keys of 1 KiB, gets only, memory for a third", server,
        directory + "/read.cairn", keys: Zipf(count: 100_000, exponent: 0.99), valueSize: 1024,
        writeShare: 0, memory: 32 << 20)
    }
    if part ?? "zipf" == "zipf" {
      try await compare(
        "Zipf 0.99 over 100,000 keys of 1 KiB, 5 % writes, memory for a third", server,
        directory + "/zipf.cairn", keys: Zipf(count: 100_000, exponent: 0.99), valueSize: 1024,
        writeShare: 0.05, memory: 32 << 20)
    }
    if part ?? "outage" == "outage" {
      try await OutageRun(server: server, directory: directory, outage: outage).run()
    }
  }

  private func compare(
    _ title: String, _ server: RedisServer, _ path: String, keys: Zipf, valueSize: Int,
    writeShare: Double, memory: Int
  ) async throws {
    let configuration = NearCacheConfiguration(
      prefix: "bench:", engine: EngineConfiguration(endpoint: server.endpoint),
      near: DiskCacheConfiguration(
        countLimit: nil, byteLimit: 1 << 30,
        memory: MemoryConfiguration(costLimit: memory)))
    let near = try await NearCache<String, [UInt8]>.open(at: path, configuration, coder: .bytes)
    let client = EngineClient(configuration.engine)
    let value = [UInt8](repeating: 7, count: valueSize)
    let texts = keys.count
    for start in stride(from: 0, to: texts, by: 1000) {
      try await near.setValues(
        (start..<min(texts, start + 1000)).map { (key: "key/\($0)", value: value) })
    }
    // Read all keys, so that each has a near copy. Most copies are on disk.
    try await near.catchUp()
    for start in stride(from: 0, to: texts, by: 1000) {
      _ = try await near.values(forKeys: (start..<min(texts, start + 1000)).map { "key/\($0)" })
    }
    let contenders = [
      Contender.near(near), Contender.plain(client, shared: true),
      try await Contender.connections(configuration.engine, count: taskCount),
    ]
    var results: [[Meter]] = contenders.map { _ in [] }
    // The first round does not count.
    for round in 0...rounds {
      for (index, contender) in contenders.enumerated() {
        let start = try await processorTime(client)
        var meter = try await measure(contender, keys, value, writeShare)
        let end = try await processorTime(client)
        (meter.ownTime, meter.serverTime) = (end.own - start.own, end.server - start.server)
        if round > 0 { results[index].append(meter) }
      }
    }
    print(title)
    let rates = results.map { median($0.map { Double($0.count) / Double(seconds) }) }
    for (index, contender) in contenders.enumerated() {
      let p50 = median(results[index].map { $0.quantile(0.5) })
      let p99 = median(results[index].map { $0.quantile(0.99) })
      let own = median(results[index].map { $0.ownTime * 1e6 / Double($0.count) })
      let ofServer = median(results[index].map { $0.serverTime * 1e6 / Double($0.count) })
      print(
        "  \(contender.name): \(rounded(rates[index])) gets a second, median \(rounded(p50)) us, "
          + "p99 \(rounded(p99)) us, \(rounded(rates[0] / rates[index])) x; a get took "
          + "\(rounded(own)) us of the processors, and \(rounded(ofServer)) us of the server's")
    }
    print("")
    client.close()
    try await near.close()
  }

  /// The processor time of this process and of the server, in seconds. Unlike rates, it hardly
  /// depends on other load on the machine.
  private func processorTime(_ client: EngineClient) async throws -> (own: Double, server: Double) {
    guard case .bytes(let bytes) = try await client.reply(to: Command("INFO", "cpu")) else {
      throw TrialFailure("the server does not report its processor time")
    }
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
    let times = ["used_cpu_sys:", "used_cpu_user:"].compactMap { name in
      lines.first { $0.hasPrefix(name) }.flatMap { Double($0.dropFirst(name.count)) }
    }
    return (Double(clock()) / Double(CLOCKS_PER_SEC), times.reduce(0, +))
  }

  /// Sends requests as fast as they are answered.
  private func measure(
    _ contender: Contender, _ keys: Zipf, _ value: [UInt8], _ writeShare: Double
  ) async throws -> Meter {
    let texts = (0..<keys.count).map { "key/\($0)" }
    // Draw the keys before the measurement, because drawing takes longer than a get from memory.
    var random = FastRandom(state: UInt64(bitPattern: bootTime()))
    let drawn = (0..<1 << 18).map { _ in texts[keys.draw(&random)] }
    let bound = UInt64(writeShare * Double(UInt32.max))
    let end = bootTime() + Int64(seconds) * 1_000_000_000
    return try await withThrowingTaskGroup(of: Meter.self) { group in
      for task in 0..<taskCount {
        group.addTask {
          var meter = Meter()
          var turns = 0
          var random = FastRandom(state: UInt64(task) &+ UInt64(bitPattern: end))
          while true {
            let key = drawn[(turns &+ task << 14) & (1 << 18 - 1)]
            let isWrite = random.next() >> 32 < bound
            // Measure one in eight, because reading the clock takes as long as a get from memory.
            let start = turns % 8 == 0 ? bootTime() : nil
            turns += 1
            if isWrite {
              try await contender.set(key, value)
            } else if try await contender.get(key) {
              meter.note(start.map { bootTime() - $0 })
            } else {
              throw TrialFailure("\(contender.name): no value for \(key)")
            }
            if turns % 64 == 0 {
              if bootTime() > end { return meter }
              // Without this, a task that never waits would keep the processor to itself.
              await Task.yield()
            }
          }
        }
      }
      var all = Meter()
      for try await meter in group { all.add(meter) }
      return all
    }
  }
}

extension Bench.Contender {
  static func near(_ cache: NearCache<String, [UInt8]>) -> Bench.Contender {
    Bench.Contender(
      name: "near cache", get: { try await cache.value(forKey: $0) != nil },
      set: { try await cache.setValue($1, forKey: $0) })
  }

  /// Plain Redis with one connection for all tasks, so that their calls go out together.
  static func plain(_ client: EngineClient, shared: Bool) -> Bench.Contender {
    Bench.Contender(
      name: shared ? "plain Redis, one connection for all tasks" : "plain Redis",
      get: { try await client.reply(to: Command("GET", "bench:" + $0)) != .null },
      set: { key, value in
        _ = try await client.reply(
          to: Command([Array("SET".utf8), Array("bench:\(key)".utf8), value]))
      })
  }

  /// Plain Redis with a connection and a thread for each task.
  static func connections(
    _ configuration: EngineConfiguration, count: Int
  ) async throws -> Bench.Contender {
    let plain = (0..<count).map { _ in Self.plain(EngineClient(configuration), shared: false) }
    let next = Turn()
    return Bench.Contender(
      name: "plain Redis, \(count) connections",
      get: { try await plain[next.take(count)].get($0) },
      set: { try await plain[next.take(count)].set($0, $1) })
  }
}

func median(_ values: [Double]) -> Double {
  values.isEmpty ? 0 : values.sorted()[values.count / 2]
}

/// Formats a number with about three significant digits.
func rounded(_ value: Double) -> String {
  if value >= 100 { return "\(Int(value))" }
  return "\((value * 10).rounded() / 10)"
}
