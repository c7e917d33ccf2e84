import Cairn
import CairnRepair
import Foundation

/// One run. The server is killed repeatedly for three quarters of the time. In the last quarter it
/// runs undisturbed, to show whether anything grows.
final class CheckRun {
  private let seconds: Int
  private let script: String
  private let directory: URL
  private let sessionSeconds: Int
  private let client: Client
  private let server: ServerProcess
  private let pages: PageCheck
  private let sessions: SessionCheck
  private let counters: CounterCheck
  let findings = Findings()

  private var tools: [LoadTool] = []
  private var report = Report()

  init(seconds: Int, server: String, script: String, directory: URL) throws {
    (self.seconds, self.script, self.directory) = (seconds, script, directory)
    let port = 8000 + Int(getpid()) % 1000
    // Short enough for many sessions to expire during the run.
    sessionSeconds = min(120, max(15, seconds / 10))
    let pageSeconds = min(30, max(5, seconds / 20))
    client = Client(port: port)
    self.server = try ServerProcess(
      executable: server,
      arguments: [
        "--directory", directory.path, "--port", "\(port)",
        "--session-seconds", "\(sessionSeconds)", "--page-seconds", "\(pageSeconds)",
      ], log: directory.appending(path: "server.log"))
    pages = PageCheck(client: client, findings: findings, lifetime: .seconds(pageSeconds))
    sessions = SessionCheck(client: client, findings: findings, lifetime: .seconds(sessionSeconds))
    counters = CounterCheck(client: client, findings: findings)
  }

  func run() async throws {
    _ = try await server.start(client: client)
    for kind in ["pages", "sessions", "counters"] {
      tools.append(
        try LoadTool(
          kind: kind, script: script, url: client.url, seconds: seconds,
          sessionSeconds: sessionSeconds, directory: directory))
    }
    let end = ContinuousClock.now + .seconds(seconds)
    try await withThrowingTaskGroup(of: Void.self) { [counters, sessions, pages] group in
      for number in 0..<8 {
        group.addTask { try await counters.run(number) }
        group.addTask { try await sessions.run(number) }
      }
      for _ in 0..<4 { group.addTask { try await pages.run() } }
      group.addTask { try await pages.runRushes() }
      defer { group.cancelAll() }
      try await restart(until: end - .seconds(seconds / 4))
      try await watch(until: end) { self.report.calm.append($0) }
      try await addStatistics()
      group.cancelAll()
      try await group.waitForAll()
    }
    for tool in tools { report.loads.append((tool.kind, try await tool.result())) }
    try await counters.finish()
    try await checkLoads()
    try await stopAndVerify()
    checkGrowth()
    report.checks = [
      (
        "answered requests of the checker",
        client.counts.answered.load(ordering: .relaxed)
      ),
      ("requests cut off by a kill", client.counts.unanswered.load(ordering: .relaxed)),
      ("increments, each count checked", counters.additionCount),
      ("visits of sessions, each count checked", sessions.visitCount),
      ("visits refused after a session expired", sessions.refusalCount),
      ("pages compared byte for byte", pages.readCount),
      ("bursts of \(PageCheck.rushSize) requests for a new page, computed once", pages.rushCount),
      ("**lost, wrong, or computed twice**", findings.count),
    ]
    report.print(seconds: seconds)
  }

  /// Kills and restarts the server repeatedly. Every fifth time, sends SIGTERM instead of SIGKILL.
  private func restart(until end: ContinuousClock.Instant) async throws {
    let pause = seconds < 600 ? 3.0...12.0 : 5.0...30.0
    var number = 0
    while true {
      let next = ContinuousClock.now + .seconds(Double.random(in: pause))
      try await watch(until: min(next, end)) { self.report.restless.append($0) }
      if next >= end { return }
      try await addStatistics()
      number += 1
      if number % 5 == 0 {
        let status = try await server.end(by: SIGTERM)
        findings.expect(status == 0, "after SIGTERM, the server exited with \(status ?? -1)")
        report.restarts.append(try await server.start(client: client))
      } else {
        _ = try await server.end(by: SIGKILL)
        report.recoveries.append(try await server.start(client: client))
      }
    }
  }

  /// Samples the server's resources every second.
  private func watch(
    until end: ContinuousClock.Instant, _ note: (Resources) -> Void
  ) async throws {
    while ContinuousClock.now < end {
      try await Task.sleep(until: min(end, .now + .seconds(1)))
      if let resources = Resources(process: server.identifier, directory: directory) {
        note(resources)
      }
    }
  }

  /// Adds the statistics of the current server process.
  private func addStatistics() async throws {
    let answer = try await client.get("/statistics")
    report.add(try JSONDecoder().decode(Report.Statistics.self, from: Data(answer.body.utf8)))
  }

  /// Checks that wrk's counters include all acknowledged increments, and no more than wrk
  /// requested.
  private func checkLoads() async throws {
    var sum = 0
    for number in 0..<10 { sum += Int(try await client.get("/counters/wrk-\(number)").body) ?? 0 }
    for (kind, result) in report.loads {
      findings.expect(
        result.unexpected == 0,
        "wrk, \(kind): \(result.unexpected) unexpected answers, last \(result.unexpectedStatus)")
      if kind != "counters" { continue }
      // At each restart and at the end, each connection may have had one unanswered request.
      let openCount =
        (report.recoveries.count + report.restarts.count + 1) * LoadTool.connectionCount
      findings.expect(
        (result.acknowledged...result.acknowledged + openCount).contains(sum),
        "wrk's counters add up to \(sum), but \(result.acknowledged) increments were acknowledged")
    }
  }

  private func stopAndVerify() async throws {
    try await client.close()
    let status = try await server.end(by: SIGTERM)
    findings.expect(status == 0, "after SIGTERM, the server exited with \(status ?? -1)")
    for name in ["persist", "pages"] {
      let verification = try await Store.verify(path: directory.appending(path: name).path)
      findings.expect(verification.damage.isEmpty, "\(name): \(verification.damage)")
    }
  }

  private func checkGrowth() {
    func expectNoGrowth(_ what: String, _ measure: KeyPath<Resources, Int>, slack: Int) {
      let (early, late) = (
        report.calm.median(measure, from: 0.25, to: 0.5),
        report.calm.median(measure, from: 0.75, to: 1)
      )
      findings.expect(late <= early + early / 5 + slack, "\(what) grew from \(early) to \(late)")
    }
    expectNoGrowth("memory", \.ownBytes, slack: 16 << 20)
    expectNoGrowth("descriptors", \.descriptorCount, slack: 8)
    for (name, measure) in [("persist", \Resources.persistDiskBytes), ("pages", \.pagesDiskBytes)] {
      let taken = report.calm.median(measure, from: 0.75, to: 1)
      findings.expect(taken <= 256 << 20, "\(name) took \(taken) bytes on disk without kills")
    }
  }

  func abandon() {
    server.abandon()
    for tool in tools { tool.abandon() }
  }
}
