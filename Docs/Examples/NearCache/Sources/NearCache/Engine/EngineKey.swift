import Cairn

/// What is done with one key of the engine. A key that is being loaded has a lock beside it, with the token of its owner and
/// a lease. Each write takes the lock away, so what an owner brings is refused where somebody wrote meanwhile (the leases of
/// Nishtala et al., "Scaling Memcache at Facebook", NSDI 2013).
struct EngineKey: Sendable {
  /// What the engine has.
  enum Found: Sendable {
    /// - Parameter life: how long it is to live on; `nil`: for ever.
    case value([UInt8], life: Duration?)
    case none
  }

  let client: EngineClient
  let key: [UInt8]
  private var lock: [UInt8] { Array("lock:".utf8) + key }

  init(_ client: EngineClient, _ key: [UInt8]) {
    self.client = client
    self.key = key
  }

  private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func name(of call: String) -> String { Command([text(call), key]).name }

  /// An error of this key.
  func error(_ cause: EngineError.Cause, _ call: String) -> EngineError {
    EngineError(cause, client.configuration.endpoint, call: name(of: call))
  }

  /// The value, with the life that it has left.
  func value() async throws(EngineError) -> Found {
    try found(in: try await client.replies(to: reading)[...])
  }

  private var reading: [Command] { [Command([text("GET"), key]), Command([text("PTTL"), key])] }

  private func found(in replies: ArraySlice<Reply>) throws(EngineError) -> Found {
    for reply in replies {
      if case .error(let text) = reply { throw error(.refused(text), "GET") }
    }
    switch (replies.first, replies.last) {
    case (.null, _): return .none
    // Without an end.
    case (.bytes(let bytes), .integer(-1)): return .value(bytes, life: nil)
    // It may have gone between the two: what was read was right, and is not to be kept.
    case (.bytes(let bytes), .integer(let life)):
      return .value(bytes, life: .milliseconds(max(0, life)))
    default: throw error(.unexpected, "GET")
    }
  }

  /// The value, or the lock where there is none and nobody else has it.
  func valueOrLock(
    token: String, lease: Duration
  ) async throws(EngineError) -> (found: Found, isOwner: Bool) {
    let locking = Command([
      text("SET"), lock, text(token), text("NX"), text("PX"), text("\(milliseconds(lease))"),
    ])
    let replies = try await client.replies(to: [locking] + reading)
    if case .error(let reason) = replies[0] {
      throw EngineError(.refused(reason), client.configuration.endpoint, call: locking.name)
    }
    let isOwner = replies[0] == .status("OK")
    return (try found(in: replies.dropFirst()), isOwner)
  }

  /// Puts what the owner of the lock has loaded, and gives the lock back.
  ///
  /// - Returns: whether it was the owner still; if not, nothing was put.
  func put(_ value: [UInt8], life: Duration?, token: String) async throws(EngineError) -> Bool {
    let script = """
      if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
      redis.call('DEL', KEYS[2])
      if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
      else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
      return 1
      """
    let reply = try await client.reply(
      to: Command(
        [text("EVAL"), text(script), text("2"), key, lock, text(token), value, lifeText(life)],
        name: name(of: "SET")))
    return reply == .integer(1)
  }

  /// Gives the lock back after a load that has failed.
  func unlock(token: String) async {
    let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
    // Where it fails, the lease ends by itself.
    _ = try? await client.reply(
      to: Command(
        [text("EVAL"), text(script), text("1"), lock, text(token)], name: name(of: "unlock")))
  }

  /// Writes a value, and takes the lock from who loads it.
  func writing(_ value: [UInt8], life: Duration?) -> Command {
    let script = """
      redis.call('DEL', KEYS[2])
      if ARGV[2] == '' then redis.call('SET', KEYS[1], ARGV[1])
      else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
      return 1
      """
    return Command(
      [text("EVAL"), text(script), text("2"), key, lock, value, lifeText(life)],
      name: name(of: "SET"))
  }

  /// Removes the value, and takes the lock from who loads it.
  var removing: Command { Command([text("DEL"), key, lock]) }

  private func lifeText(_ life: Duration?) -> [UInt8] {
    text(life.map { "\(milliseconds($0))" } ?? "")
  }

  private func milliseconds(_ duration: Duration) -> Int64 {
    max(1, duration.nanoseconds / 1_000_000)
  }
}
