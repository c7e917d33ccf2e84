import Foundation

/// A connection, used only on its own thread.
struct Line {
  let connection: HiredisConnection
  let endpoint: EngineEndpoint
  let wakeup: Wakeup

  /// Connects.
  ///
  /// - Parameter tick: called every few milliseconds meanwhile. Throws to stop connecting.
  init(
    _ configuration: EngineConfiguration, _ wakeup: Wakeup, tick: () throws(EngineError) -> Void
  ) throws(EngineError) {
    endpoint = configuration.endpoint
    self.wakeup = wakeup
    connection = try HiredisConnection(to: endpoint)
    let deadline = bootTime().adding(configuration.connectTimeout.nanoseconds)
    while !connection.waitForConnection(wakeup, until: min(deadline, bootTime() + Self.tickTime)) {
      try tick()
      if bootTime() >= deadline {
        throw EngineError(.timedOut(configuration.connectTimeout), endpoint, call: "connect")
      }
    }
    try connection.checkConnected()
    // A server may accept connections without answering.
    _ = try answers(to: [Command("PING")], within: configuration.connectTimeout, tick: tick)
  }

  private static let tickTime: Int64 = 5_000_000

  /// Sends commands and waits for their answers.
  func answers(
    to commands: [Command], within limit: Duration, tick: () throws(EngineError) -> Void
  ) throws(EngineError) -> [Reply] {
    let call = commands.first?.name ?? ""
    let deadline = bootTime().adding(limit.nanoseconds)
    for command in commands { try connection.append(command.encoded) }
    var replies: [Reply] = []
    var isWritten = false
    while true {
      if !isWritten { isWritten = try connection.write() }
      while replies.count < commands.count, let reply = try connection.nextReply() {
        if case .error(let text) = reply {
          throw EngineError(.refused(text), endpoint, call: commands[replies.count].name)
        }
        replies.append(reply)
      }
      if replies.count == commands.count { return replies }
      if bootTime() >= deadline { throw EngineError(.timedOut(limit), endpoint, call: call) }
      let ready = connection.wait(
        forWriting: !isWritten, wakeup, until: min(deadline, bootTime() + Self.tickTime))
      if ready.canRead { try connection.read() }
      try tick()
    }
  }
}

/// Starts a thread for blocking calls, which must not run on threads that tasks run on.
func startThread(name: String, _ body: @escaping @Sendable () -> Void) {
  let thread = Thread {
    blockBrokenPipeSignal()
    body()
  }
  thread.name = name
  thread.start()
}
