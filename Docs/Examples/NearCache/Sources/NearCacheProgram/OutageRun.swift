import Cairn
import Foundation
import NearCache
import NearCacheTrial

/// Compares a near cache and plain Redis, side by side, during an outage of the server.
///
/// Each gets 2,000 requests a second, so neither takes the processors from the other.
struct OutageRun {
  let server: RedisServer
  let directory: String
  let outage: Int
  private static let margin = 5
  private static let taskCount = 4

  private enum Phase: Int, CaseIterable { case before, during, after }

  func run() async throws {
    var configuration = NearCacheConfiguration(
      prefix: "outage:", engine: EngineConfiguration(endpoint: server.endpoint),
      near: DiskCacheConfiguration(
        countLimit: nil, byteLimit: 1 << 30,
        memory: MemoryConfiguration(costLimit: 4 << 20)))
    configuration.loadPolicy.staleOnError = .seconds(600)
    let near = try await NearCache<String, [UInt8]>.open(
      at: directory + "/outage.cairn", configuration, coder: .bytes)
    let client = EngineClient(configuration.engine)
    let keyCount = 10_000
    try await fill(near, keyCount)
    while near.invalidationOutage != nil { try await Task.sleep(for: .milliseconds(5)) }
    for key in 0..<keyCount { _ = try await near.value(forKey: "key/\(key)") }

    let gets: [(String, @Sendable (String) async throws -> Bool)] = [
      ("near cache", { try await near.value(forKey: $0) != nil }),
      ("plain Redis", { try await client.reply(to: Command("GET", "outage:" + $0)) != .null }),
    ]
    let start = bootTime()
    let second: Int64 = 1_000_000_000
    let down = start + Int64(Self.margin) * second
    let up = down + Int64(outage) * second
    let end = up + Int64(Self.margin) * second
    let zipf = Zipf(count: keyCount, exponent: 0.99)
    async let failing: Void = fail(from: down, to: up, near, keyCount)
    var phases = [[Meter]](repeating: Phase.allCases.map { _ in Meter() }, count: gets.count)
    await withTaskGroup(of: (Int, [Meter]).self) { group in
      for (index, (_, get)) in gets.enumerated() {
        for task in 0..<Self.taskCount {
          group.addTask {
            var meters = Phase.allCases.map { _ in Meter() }
            var random = FastRandom(state: UInt64(task + 1))
            var next = start
            while next < end {
              // 500 a second for each task.
              next += second / 500
              let rest = next - bootTime()
              if rest > 0 { try? await Task.sleep(for: .nanoseconds(rest)) }
              let asked = bootTime()
              let phase: Phase = asked < down ? .before : asked < up ? .during : .after
              do {
                if try await get("key/\(zipf.draw(&random))") {
                  meters[phase.rawValue].note(bootTime() - asked)
                } else {
                  meters[phase.rawValue].noteError()
                }
              } catch {
                meters[phase.rawValue].noteError()
              }
            }
            return (index, meters)
          }
        }
      }
      for await (index, meters) in group {
        for phase in Phase.allCases {
          phases[index][phase.rawValue].add(meters[phase.rawValue])
        }
      }
    }
    try await failing
    print("an outage of \(outage) s, 2,000 gets a second, Zipf 0.99 over \(keyCount) keys of 1 KiB")
    for (index, (name, _)) in gets.enumerated() {
      for phase in Phase.allCases {
        let meter = phases[index][phase.rawValue]
        let share = 100 * Double(meter.count) / Double(max(1, meter.count + meter.errorCount))
        let times =
          meter.count == 0
          ? ""
          : ", median \(rounded(meter.quantile(0.5))) us, p99 \(rounded(meter.quantile(0.99))) us"
        print(
          "  \(name), \(phase): answered \(rounded(share)) % of "
            + "\(meter.count + meter.errorCount)\(times)")
      }
    }
    client.close()
    try await near.close()
  }

  private func fill(_ near: NearCache<String, [UInt8]>, _ count: Int) async throws {
    let value = [UInt8](repeating: 7, count: 1024)
    for start in stride(from: 0, to: count, by: 1000) {
      try await near.setValues((start..<start + 1000).map { (key: "key/\($0)", value: value) })
    }
  }

  /// Kills the server, and restarts it after the outage. The server is then empty, and is filled at
  /// once.
  private func fail(
    from down: Int64, to up: Int64, _ near: NearCache<String, [UInt8]>, _ keyCount: Int
  ) async throws {
    try await Task.sleep(for: .nanoseconds(down - bootTime()))
    server.kill()
    try await Task.sleep(for: .nanoseconds(up - bootTime()))
    try await server.start()
    let client = EngineClient(EngineConfiguration(endpoint: server.endpoint))
    defer { client.close() }
    let value = String(repeating: "7", count: 1024)
    for start in stride(from: 0, to: keyCount, by: 1000) {
      _ = try await client.replies(
        to: (start..<start + 1000).map { Command("SET", "outage:key/\($0)", value) })
    }
  }
}
