import Cairn

/// The operations on one key in the engine. While a key is being loaded, a second key is its lock,
/// with a lease and its owner's token. Each write deletes the lock, so the engine refuses an
/// owner's value if the key was written meanwhile (the leases of Nishtala et al., "Scaling Memcache
/// at Facebook", NSDI 2013).
struct EngineKey: Sendable {
  /// The result of reading the key.
  enum Found: Sendable {
    /// - Parameter life: the rest of the value's lifetime; `nil` means forever.
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

  /// An error in a call for this key.
  func error(_ cause: EngineError.Cause, _ call: String) -> EngineError {
    EngineError(cause, client.configuration.endpoint, call: name(of: call))
  }

  /// The value, with the rest of its lifetime.
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
    // The key never expires.
    case (.bytes(let bytes), .integer(-1)): return .value(bytes, life: nil)
    // The key may have expired between the two commands. Then the value was right, but must not be
    // kept.
    case (.bytes(let bytes), .integer(let life)):
      return .value(bytes, life: .milliseconds(max(0, life)))
    default: throw error(.unexpected, "GET")
    }
  }

  /// The value. If there is none and no other caller has the lock, takes the lock.
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

  /// Sets the value that the owner of the lock has loaded, and releases the lock.
  ///
  /// - Returns: whether the caller still owned the lock. If not, the value was not set.
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

  /// Releases the lock after a failed load.
  func unlock(token: String) async {
    let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
    // If this fails, the lease will expire.
    _ = try? await client.reply(
      to: Command(
        [text("EVAL"), text(script), text("1"), lock, text(token)], name: name(of: "unlock")))
  }

  /// The command that writes a value and deletes the lock.
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

  /// The command that removes the value and deletes the lock.
  var removing: Command { Command([text("DEL"), key, lock]) }

  private func lifeText(_ life: Duration?) -> [UInt8] {
    text(life.map { "\(milliseconds($0))" } ?? "")
  }

  private func milliseconds(_ duration: Duration) -> Int64 {
    max(1, duration.nanoseconds / 1_000_000)
  }
}
