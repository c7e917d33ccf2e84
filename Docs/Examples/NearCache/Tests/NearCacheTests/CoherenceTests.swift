import Cairn
import Foundation
import NearCache
import NearCacheTrial
import Synchronization
import Testing

/// Reads and writes at full speed while everything that can fail does, and checks the reads with a
/// model.
@Suite(
  "Coherence", .serialized,
  .enabled(if: RedisServer.executable != nil, Comment(rawValue: RedisServer.missing)))
struct CoherenceTests {
  /// The seconds of each run, unless `NEAR_CACHE_SECONDS` is set.
  private static let seconds =
    ProcessInfo.processInfo.environment["NEAR_CACHE_SECONDS"].flatMap { Int($0) } ?? 10

  private func check(_ events: [Event], _ title: String) -> Model.Report {
    let report = Model.check(
      events, stalenessLimit: .milliseconds(500), staleLimit: .seconds(2))
    print("\(title): \(report)")
    #expect(report.violations.isEmpty, "\(report)")
    return report
  }

  @Test("Three near caches, a killed server, and networks that are cut, slow and silent")
  func instances() async throws {
    // In the third variant, all reads go through loads of the near cache, which start before a copy
    // expires.
    let variants: [(name: String, change: (inout NearCacheConfiguration) -> Void)] = [
      ("expire at once", { $0.lossPolicy = .expireAtOnce }),
      ("expire at the limit", { $0.lossPolicy = .expireAtLimit }),
      (
        "load early",
        {
          $0.nearLifetime = .milliseconds(300)
          $0.loadPolicy.refreshAhead = 0.5
          $0.loadPolicy.timeLimit = .seconds(1)
        }
      ),
    ]
    for variant in variants {
      try await withCluster { cluster in
        for _ in 0..<3 { try await cluster.addMachine(variant.change) }
        let isOver = Flag()
        let log = EventLog()
        let machines = cluster.machines
        let reads = try await withThrowingTaskGroup(of: Int.self) { group in
          for (number, machine) in machines.enumerated() {
            group.addTask {
              await Workload(machine: number, of: 3).run(machine, log) { isOver.isSet }
            }
          }
          try await disturb(cluster.server, cluster.networks)
          isOver.set()
          return try await group.reduce(0, +)
        }
        let report = check(log.all, "three near caches, \(variant.name), \(reads) reads")
        #expect(report.readCount > 1000)
        #expect(report.writeCount - report.unacknowledgedCount > 500)
      }
    }
  }

  @Test("Three processes that are killed and restarted, and a killed server")
  func processes() async throws {
    try await withCluster { cluster in
      var networks: [FaultyNetwork] = []
      var workers: [WorkerProcess] = []
      defer {
        for worker in workers { worker.kill() }
        for network in networks { network.close() }
      }
      for machine in 0..<3 {
        let network = try FaultyNetwork(to: cluster.server.port)
        networks.append(network)
        workers.append(
          try WorkerProcess(machine: machine, port: network.port, directory: cluster.directory))
      }
      let end = ContinuousClock.now + .seconds(Self.seconds)
      var kills = 0
      while .now < end {
        try await Task.sleep(for: .milliseconds(Int.random(in: 300...900)))
        switch Int.random(in: 0..<5) {
        case 0:
          cluster.server.kill()
          try await Task.sleep(for: .milliseconds(Int.random(in: 0...600)))
          try await cluster.server.start()
        case 1: networks.randomElement()?.cut()
        case 2: try await beSilent(networks)
        default:
          try workers.randomElement()?.restart()
          kills += 1
        }
      }
      for worker in workers { try worker.end() }
      let events = try workers.flatMap { try $0.events() }
      let report = check(events, "three processes, \(kills) kills")
      #expect(report.readCount > 500)
      #expect(report.writeCount - report.unacknowledgedCount > 300)
      // A worker killed right after its start has logged nothing, but most workers have.
      #expect(Set(events.map(\.process)).count > 3 + kills / 2)
    }
  }

  /// Makes everything fail that can, for the time of the run.
  private func disturb(_ server: RedisServer, _ networks: [FaultyNetwork]) async throws {
    let end = ContinuousClock.now + .seconds(Self.seconds)
    while .now < end {
      // A time without failures, so that sessions begin and near copies are kept.
      try await Task.sleep(for: .milliseconds(Int.random(in: 200...800)))
      switch Int.random(in: 0..<6) {
      case 0:
        server.kill()
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...600)))
        try await server.start()
      case 1: networks.randomElement()?.cut()
      case 2: networks.randomElement()?.cut([.feed])
      case 3:
        let network = networks.randomElement()
        network?.set(.slow(UInt32.random(in: 1...30)))
        try await Task.sleep(for: .milliseconds(300))
        network?.set(.open)
      case 4: try await beSilent(networks)
      default:
        server.suspend()
        try await Task.sleep(for: .milliseconds(Int.random(in: 50...400)))
        server.resume()
      }
    }
  }

  /// Makes one network hold back bytes on some or all connections. Then the bytes arrive, or the
  /// connections are cut.
  private func beSilent(_ networks: [FaultyNetwork]) async throws {
    guard let network = networks.randomElement() else { return }
    let kinds: [FaultyNetwork.Kind] = Bool.random() ? [.feed] : FaultyNetwork.Kind.allCases
    network.set(.silent, for: kinds)
    try await Task.sleep(for: .milliseconds(Int.random(in: 100...900)))
    if Bool.random() { network.cut(kinds) }
    network.set(.open)
  }
}

private final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}

/// A machine in a separate process, which runs `near-cache worker`.
private final class WorkerProcess {
  private let machine: Int
  private let port: Int
  private let directory: String
  private var incarnation = 0
  private var process = Process()
  private var input = Pipe()

  init(machine: Int, port: Int, directory: String) throws {
    (self.machine, self.port, self.directory) = (machine, port, directory)
    try start()
  }

  private func log(_ incarnation: Int) -> URL {
    URL(filePath: "\(directory)/worker-\(machine)-\(incarnation).log")
  }

  private func start() throws {
    process = Process()
    input = Pipe()
    process.executableURL = try FileManager.default
      .destinationOfSymbolicLink(atPath: "/proc/self/exe").asURL
      .deletingLastPathComponent().appending(path: "near-cache")
    process.arguments = [
      "worker", "--port", "\(port)", "--directory", "\(directory)/worker-\(machine).cairn",
      "--machine", "\(machine)", "--of", "3", "--incarnation", "\(incarnation)",
    ]
    try Data().write(to: log(incarnation))
    process.standardInput = input
    process.standardOutput = try FileHandle(forWritingTo: log(incarnation))
    try process.run()
  }

  func kill() {
    guard process.isRunning else { return }
    send(SIGKILL, to: process.processIdentifier)
    process.waitUntilExit()
  }

  func restart() throws {
    kill()
    incarnation += 1
    try start()
  }

  /// Lets the process end by itself, and checks that it does.
  func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit)
    #expect(process.terminationStatus == 0)
  }

  func events() throws -> [Event] {
    try (0...incarnation).flatMap { try Event.events(in: log($0)) }
  }
}

extension String {
  fileprivate var asURL: URL { URL(filePath: self) }
}
