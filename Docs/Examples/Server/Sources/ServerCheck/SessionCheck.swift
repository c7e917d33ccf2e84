import Synchronization

/// Begins, visits and ends sessions, and checks that each is valid until its end and not after it.
final class SessionCheck: Sendable {
  let client: Client
  let findings: Findings
  let lifetime: Duration
  /// How far the clocks of client and server may differ.
  private let tolerance: Duration = .seconds(2)
  private let visits = Atomic(0)
  private let refusals = Atomic(0)

  private struct Session {
    var cookie: String
    var user: String
    /// The session began between `asked` and `answered`.
    var asked: ContinuousClock.Instant
    var answered: ContinuousClock.Instant
    var visitCount = 0
    /// Visits without an answer since the last answered one.
    var openCount = 0
  }

  init(client: Client, findings: Findings, lifetime: Duration) {
    (self.client, self.findings, self.lifetime) = (client, findings, lifetime)
  }

  var visitCount: Int { visits.load(ordering: .relaxed) }
  /// The number of visits that were rightly refused, after the end of the session.
  var refusalCount: Int { refusals.load(ordering: .relaxed) }

  func run(_ number: Int) async throws {
    var sessions: [Session] = []
    var ended: [Session] = []
    var beginCount = 0
    while !Task.isCancelled {
      switch Int.random(in: 0..<100) {
      case 0..<5 where sessions.count < 100, _ where sessions.isEmpty:
        beginCount += 1
        if let session = await begin("user-\(number)-\(beginCount)") { sessions.append(session) }
      case 5..<8:
        let session = sessions.remove(at: .random(in: sessions.indices))
        if let answer = await client.ask(.delete, "/session", cookie: session.cookie) {
          findings.expect(
            answer.status == 204, "ending a session returned \(answer.status)")
          ended.append(session)
        }
      case 8..<12 where !ended.isEmpty:
        await visitEnded(ended[.random(in: ended.indices)])
        if ended.count > 100 { ended.removeFirst() }
      default:
        let index = Int.random(in: sessions.indices)
        if await visit(&sessions[index]) {
          // An expired session must stay expired.
          ended.append(sessions.remove(at: index))
        }
      }
      try? await Task.sleep(for: .milliseconds(2))
    }
  }

  private func begin(_ user: String) async -> Session? {
    let asked = ContinuousClock.now
    guard let answer = await client.ask(.post, "/session?user=\(user)") else { return nil }
    guard answer.status == 201, let cookie = answer.cookie else {
      findings.add("a login returned \(answer.status)")
      return nil
    }
    return Session(cookie: cookie, user: user, asked: asked, answered: .now)
  }

  /// - Returns: whether the session has expired.
  private func visit(_ session: inout Session) async -> Bool {
    let asked = ContinuousClock.now
    guard let answer = await client.ask(.get, "/session", cookie: session.cookie) else {
      session.openCount += 1
      return false
    }
    if answer.status == 401 {
      findings.expect(
        .now > session.asked + lifetime - tolerance,
        "the session of \(session.user) was refused \(ContinuousClock.now - session.answered) after its start"
      )
      refusals.add(1, ordering: .relaxed)
      return true
    }
    findings.expect(
      asked < session.answered + lifetime + tolerance,
      "the session of \(session.user) was valid \(asked - session.answered) after its start")
    let words = answer.body.split(separator: " ")
    let count = words.count == 2 && words[0] == session.user ? Int(words[1]) ?? -1 : -1
    let most = session.visitCount + session.openCount + 1
    findings.expect(
      answer.status == 200 && count > session.visitCount && count <= most,
      "visit \(session.visitCount + 1) of \(session.user), \(session.openCount) unanswered, returned "
        + "\(answer.status) \(answer.body)")
    (session.visitCount, session.openCount) = (count, 0)
    visits.add(1, ordering: .relaxed)
    return false
  }

  private func visitEnded(_ session: Session) async {
    guard let answer = await client.ask(.get, "/session", cookie: session.cookie) else { return }
    findings.expect(
      answer.status == 401, "the ended session of \(session.user) is back: \(answer.status)")
    refusals.add(1, ordering: .relaxed)
  }
}
