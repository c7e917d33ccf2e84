import Synchronization

/// Increments counters, and checks that no acknowledged increment is lost or counted twice.
final class CounterCheck: Sendable {
  let client: Client
  let findings: Findings
  /// The counters that all tasks increment.
  private let shared = (0..<4).map { SharedCounter(name: "shared-\($0)") }
  private let additions = Atomic(0)

  init(client: Client, findings: Findings) {
    (self.client, self.findings) = (client, findings)
  }

  /// The number of acknowledged increments.
  var additionCount: Int { additions.load(ordering: .relaxed) }

  /// Increments a counter of its own and a shared one in turn.
  func run(_ number: Int) async throws {
    let name = "own-\(number)"
    // The last count returned, and the number of increments since then without an answer.
    var (count, openCount) = (0, 0)
    while !Task.isCancelled {
      if let answer = await client.ask(.post, "/counters/\(name)") {
        let new = Int(answer.body) ?? -1
        findings.expect(
          answer.status == 200 && new > count && new <= count + openCount + 1,
          "\(name) was \(count), \(openCount) unanswered, then \(answer.status) \(answer.body)"
        )
        (count, openCount) = (new, 0)
        additions.add(1, ordering: .relaxed)
      } else {
        openCount += 1
      }
      await add(to: shared[Int.random(in: shared.indices)])
      try? await Task.sleep(for: .milliseconds(2))
    }
    // This task is cancelled, so another one reads the final count.
    let (last, open) = (count, openCount)
    let end = try await Task { [client] in try await client.get("/counters/\(name)") }.value
    findings.expect(
      (last...last + open).contains(Int(end.body) ?? -1),
      "\(name) was \(last), \(open) unanswered, and ended as \(end.body)")
  }

  private func add(to counter: SharedCounter) async {
    let before = counter.begin()
    guard let answer = await client.ask(.post, "/counters/\(counter.name)") else {
      counter.leaveOpen()
      return
    }
    let new = answer.status == 200 ? Int(answer.body) ?? -1 : -1
    findings.expect(
      new > before && counter.note(new),
      "\(counter.name) was \(before), then \(answer.status) \(answer.body)")
    additions.add(1, ordering: .relaxed)
  }

  /// Checks the shared counters. Call once all increments have ended.
  func finish() async throws {
    for counter in shared {
      let end = Int(try await client.get("/counters/\(counter.name)").body) ?? -1
      let (answered, open) = counter.counts
      findings.expect(
        (answered...answered + open).contains(end),
        "\(counter.name): \(answered) acknowledged, \(open) unanswered, ended as \(end)")
    }
  }
}

/// The answers so far for a counter that several tasks increment.
private final class SharedCounter: Sendable {
  private struct State {
    /// Whether each count has been returned.
    var isTold: [Bool] = [true]
    var answeredCount = 0
    var openCount = 0
  }

  let name: String
  private let state = Mutex(State())

  init(name: String) { self.name = name }

  /// The largest count returned so far. An increment that starts now must return a larger one.
  func begin() -> Int { state.withLock { $0.isTold.count - 1 } }

  /// - Returns: whether the count was returned for the first time.
  func note(_ count: Int) -> Bool {
    state.withLock { state in
      guard count > 0 else { return false }
      while state.isTold.count <= count { state.isTold.append(false) }
      if state.isTold[count] { return false }
      state.isTold[count] = true
      state.answeredCount += 1
      return true
    }
  }

  func leaveOpen() { state.withLock { $0.openCount += 1 } }

  var counts: (answered: Int, open: Int) {
    state.withLock { ($0.answeredCount, $0.openCount) }
  }
}
