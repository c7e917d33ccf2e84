import Synchronization

/// Receives invalidations on a separate thread, and records the moment up to which they are
/// complete.
///
/// The engine broadcasts the written keys of a prefix. One connection redirects them *to itself*
/// and subscribes to their channel. So there is no second connection whose loss could end the
/// invalidations unnoticed. The answer to a PING arrives after the invalidations of all writes that
/// were acknowledged before the PING was sent.
final class InvalidationFeed: Sendable {
  /// The keys that were written.
  enum Invalidation {
    case keys([[UInt8]])
    /// All keys: the engine was emptied, or does not know which keys were written.
    case all
  }

  typealias Waiter = CheckedContinuation<Result<Void, EngineError>, Never>

  private struct State {
    var isClosed = false
    var isToRestart = false
    var waiters: [Waiter] = []
    var outage: String? = "not connected yet"
  }

  private let state = Mutex(State())
  private let wakeup = Wakeup()
  private let configuration: EngineConfiguration
  private let prefix: String
  private let heartbeat: Duration
  private let freshness: Freshness
  private let obey: @Sendable (Invalidation) throws -> Void

  /// Starts the thread. `close` ends it.
  ///
  /// - Parameter obey: removes near copies. Called on the feed's thread.
  init(
    _ configuration: EngineConfiguration, prefix: String, heartbeat: Duration,
    freshness: Freshness, obey: @escaping @Sendable (Invalidation) throws -> Void
  ) {
    self.configuration = configuration
    self.prefix = prefix
    self.heartbeat = heartbeat
    self.freshness = freshness
    self.obey = obey
    startThread(name: "engine-feed") { self.run() }
  }

  func close() {
    state.withLock { $0.isClosed = true }
    wakeup.signal()
  }

  /// Ends the session and begins another. The near copies of the old session are no longer
  /// returned.
  func restart() {
    freshness.end(isUnsafe: true)
    state.withLock { $0.isToRestart = true }
    wakeup.signal()
  }

  /// Waits until the invalidations of all writes acknowledged before the call have been applied.
  func catchUp() async throws(EngineError) {
    let result = await withCheckedContinuation { waiter in
      let mayWait = state.withLock { state in
        if state.isClosed || freshness.current == Freshness.noSession { return false }
        state.waiters.append(waiter)
        return true
      }
      if mayWait { wakeup.signal() } else { waiter.resume(returning: .failure(notFollowing)) }
    }
    try result.get()
  }

  /// Why no invalidations arrive, or `nil` if they do.
  var outage: String? { state.withLock { $0.outage } }

  private var notFollowing: EngineError {
    EngineError(.notFollowing, configuration.endpoint, call: "PING")
  }

  // MARK: The thread

  private func run() {
    var backoff = Backoff(configuration)
    var generator = SystemRandomNumberGenerator()
    while !state.withLock({ $0.isClosed }) {
      do throws(EngineError) {
        let line = try Line(configuration, wakeup, tick: checkOpen)
        try subscribe(line)
        backoff.noteSuccess()
        try follow(line)
      } catch {
        freshness.end()
        state.withLock { $0.outage = "\(error.of("SUBSCRIBE"))" }
        failWaiters()
        let end = bootTime().adding(backoff.noteFailure(using: &generator))
        while bootTime() < end, !state.withLock({ $0.isClosed }) { wakeup.wait(until: end) }
      }
    }
    freshness.end()
    failWaiters()
  }

  private func checkOpen() throws(EngineError) {
    if state.withLock({ $0.isClosed }) {
      throw EngineError(.closed, configuration.endpoint, call: "SUBSCRIBE")
    }
  }

  private func failWaiters() {
    for waiter in takeWaiters() { waiter.resume(returning: .failure(notFollowing)) }
  }

  private func takeWaiters() -> [Waiter] {
    state.withLock { state in
      defer { state.waiters = [] }
      return state.waiters
    }
  }

  private func subscribe(_ line: Line) throws(EngineError) {
    let limit = configuration.connectTimeout
    let id = try line.answers(to: [Command("CLIENT", "ID")], within: limit, tick: checkOpen)
    guard case .integer(let id) = id[0] else {
      throw EngineError(.unexpected, configuration.endpoint, call: "CLIENT ID")
    }
    let moment = bootTime()
    _ = try line.answers(
      to: [
        Command(
          "CLIENT", "TRACKING", "ON", "REDIRECT", "\(id)", "BCAST", "PREFIX", prefix),
        Command("SUBSCRIBE", "__redis__:invalidate"),
      ], within: limit, tick: checkOpen)
    state.withLock {
      $0.isToRestart = false
      $0.outage = nil
    }
    freshness.begin(.random(in: 1...UInt64.max), at: moment)
  }

  /// Applies invalidations, and checks regularly that all have arrived, until the connection is
  /// lost.
  private func follow(_ line: Line) throws(EngineError) {
    let connection = line.connection
    var next = bootTime()
    /// The unanswered PING, if there is one: its number, the time before it was sent, and its
    /// waiters.
    var asked: (number: UInt64, moment: Int64, waiters: [Waiter])?
    var number: UInt64 = 0
    defer {
      for waiter in asked?.waiters ?? [] { waiter.resume(returning: .failure(notFollowing)) }
    }
    while true {
      let (isToRestart, isAwaited) = state.withLock { ($0.isToRestart, !$0.waiters.isEmpty) }
      try checkOpen()
      if isToRestart { throw notFollowing }
      if asked == nil, isAwaited || bootTime() >= next {
        let waiters = takeWaiters()
        number += 1
        // Take the time before sending: the PING covers only writes acknowledged before it.
        let moment = bootTime()
        asked = (number, moment, waiters)
        next = moment.adding(heartbeat.nanoseconds)
        try connection.append(Command("PING", "\(number)").encoded)
      }
      let isWritten = try connection.write()
      let deadline = asked.map { $0.moment.adding(configuration.callTimeout.nanoseconds) }
      let ready = connection.wait(forWriting: !isWritten, wakeup, until: deadline ?? next)
      if ready.canRead { try connection.read() }
      while let reply = try connection.nextReply() {
        if let answered = try take(reply) {
          guard let ping = asked, answered == ping.number else { throw unexpected("PING") }
          asked = nil
          freshness.confirm(ping.moment, isAwaited: !ping.waiters.isEmpty)
          for waiter in ping.waiters { waiter.resume(returning: .success(())) }
        }
      }
      if let deadline, asked != nil, bootTime() >= deadline {
        throw EngineError(
          .timedOut(configuration.callTimeout), configuration.endpoint, call: "PING")
      }
    }
  }

  /// Handles a message.
  ///
  /// - Returns: the number of the answered PING, or `nil` for other messages.
  private func take(_ reply: Reply) throws(EngineError) -> UInt64? {
    guard case .array(let parts) = reply, case .bytes(let kind)? = parts.first else {
      throw unexpected("SUBSCRIBE")
    }
    switch (String(decoding: kind, as: UTF8.self), parts.last) {
    case ("pong", .bytes(let payload)?):
      return UInt64(String(decoding: payload, as: UTF8.self))
    case ("message", .array(let keys)?):
      try obeying(
        .keys(
          keys.compactMap { key in
            if case .bytes(let bytes) = key { bytes } else { nil }
          }))
    case ("message", .null?): try obeying(.all)
    default: throw unexpected("SUBSCRIBE")
    }
    return nil
  }

  /// Applies an invalidation. If that fails, ends the session, because a near copy that cannot be
  /// removed must not be returned.
  private func obeying(_ invalidation: Invalidation) throws(EngineError) {
    do { try obey(invalidation) } catch {
      freshness.end(isUnsafe: true)
      throw EngineError(.lost("\(error)"), configuration.endpoint, call: "invalidation")
    }
  }

  private func unexpected(_ call: String) -> EngineError {
    EngineError(.unexpected, configuration.endpoint, call: call)
  }
}
