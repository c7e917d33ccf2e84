import Synchronization

/// Sends commands over one connection, on a separate thread.
///
/// Commands of all tasks share the connection. Commands sent while others wait go out at once in
/// one write, and the answers arrive in the same order. If the connection is lost, all waiting
/// calls fail, and the client reconnects.
public final class EngineClient: Sendable {
  typealias Outcome = Result<[Reply], EngineError>

  private struct Call {
    var bytes: [UInt8]
    var name: String
    var replyCount: Int
    var replies: [Reply] = []
    var deadline: Int64
    var continuation: CheckedContinuation<Outcome, Never>
  }

  private struct State {
    var queue: [Call] = []
    var isClosed = false
    /// Whether the thread waits or will wait, and must be woken for calls that are queued now.
    var isAsleep = false
    /// Why calls fail at once, or `nil` if they do not.
    var outage: String?
  }

  private let state = Mutex(State())
  private let wakeup = Wakeup()
  let configuration: EngineConfiguration

  /// Starts the thread, which connects. `close` ends it.
  public init(_ configuration: EngineConfiguration) {
    self.configuration = configuration
    startThread(name: "engine-calls") { self.run() }
  }

  private var endpoint: EngineEndpoint { configuration.endpoint }

  /// Closes the connection. Waiting calls throw `closed`.
  public func close() {
    state.withLock { $0.isClosed = true }
    wakeup.signal()
  }

  /// Why calls fail at once, or `nil` if they do not.
  public var outage: String? { state.withLock { $0.outage } }

  /// Sends commands together, without waiting for one answer before the next command.
  ///
  /// - Returns: one reply for each command. The reply to a refused command is an `error`.
  public func replies(to commands: [Command]) async throws(EngineError) -> [Reply] {
    let name = commands.first?.name ?? "nothing"
    if commands.isEmpty { return [] }
    var bytes = commands[0].encoded
    for command in commands.dropFirst() { bytes += command.encoded }
    let deadline = bootTime().adding(configuration.callTimeout.nanoseconds)
    let outcome = await withCheckedContinuation { continuation in
      let call = Call(
        bytes: bytes, name: name, replyCount: commands.count, deadline: deadline,
        continuation: continuation)
      let (failure, wakes) = state.withLock { state -> (EngineError?, Bool) in
        if state.isClosed { return (error(.closed, name), false) }
        if let outage = state.outage { return (error(.circuitOpen(outage), name), false) }
        state.queue.append(call)
        defer { state.isAsleep = false }
        return (nil, state.isAsleep)
      }
      if let failure { continuation.resume(returning: .failure(failure)) }
      if wakes { wakeup.signal() }
    }
    return try outcome.get()
  }

  /// Sends one command.
  ///
  /// - Throws: `refused` if the engine answers with an error.
  public func reply(to command: Command) async throws(EngineError) -> Reply {
    let reply = try await replies(to: [command])[0]
    if case .error(let text) = reply { throw error(.refused(text), command.name) }
    return reply
  }

  private func error(_ cause: EngineError.Cause, _ call: String) -> EngineError {
    EngineError(cause, endpoint, call: call)
  }

  // MARK: The thread

  private func run() {
    var backoff = Backoff(configuration)
    var generator = SystemRandomNumberGenerator()
    while !state.withLock({ $0.isClosed }) {
      do throws(EngineError) {
        let line = try Line(configuration, wakeup) { () throws(EngineError) in
          try expireQueue()
        }
        state.withLock { $0.outage = nil }
        try serve(line) { backoff.noteSuccess() }
      } catch {
        let delay = backoff.noteFailure(using: &generator)
        if backoff.failureCount >= configuration.failuresUntilCircuitOpens {
          open("\(error.of("connect"))")
        }
        rest(for: delay)
      }
    }
    finish(takeAll { _ in }, .closed)
  }

  /// Answers calls until the connection is lost or the client is closed.
  private func serve(_ line: Line, noteSuccess: () -> Void) throws(EngineError) {
    let connection = line.connection
    var waiting: [Call] = []
    var first = 0
    do throws(EngineError) {
      while true {
        let (new, isClosed) = state.withLock { state in
          state.isAsleep = true
          defer { state.queue = [] }
          return (state.queue, state.isClosed)
        }
        waiting += new
        if isClosed { throw error(.closed, "close") }
        for call in new { try connection.append(call.bytes) }
        let isWritten = try connection.write()
        let deadline = first < waiting.count ? waiting[first].deadline : nil
        let ready = connection.wait(forWriting: !isWritten, wakeup, until: deadline)
        if ready.canRead { try connection.read() }
        let now = bootTime()
        while first < waiting.count, now < waiting[first].deadline,
          let reply = try connection.nextReply()
        {
          waiting[first].replies.append(reply)
          if waiting[first].replies.count < waiting[first].replyCount { continue }
          noteSuccess()
          waiting[first].continuation.resume(returning: .success(waiting[first].replies))
          first += 1
        }
        if first == waiting.count {
          waiting.removeAll(keepingCapacity: true)
          first = 0
        } else if first > 1000 {
          waiting.removeFirst(first)
          first = 0
        }
        // Reject late answers: the caller may have promised a maximum age.
        if first < waiting.count, now >= waiting[first].deadline {
          throw error(.timedOut(configuration.callTimeout), waiting[first].name)
        }
      }
    } catch {
      let error = error.of(first < waiting.count ? waiting[first].name : "idle connection")
      for (index, call) in waiting[first...].enumerated() {
        let isLate = index == 0 || call.deadline <= bootTime()
        var cause = error.cause
        if case .timedOut = cause, !isLate {
          cause = .lost("a call before it had no answer in time")
        }
        call.continuation.resume(returning: .failure(self.error(cause, call.name)))
      }
      throw error
    }
  }

  /// Makes calls fail at once from now on.
  private func open(_ reason: String) {
    finish(takeAll { $0.outage = reason }, .circuitOpen(reason))
  }

  private func takeAll(_ change: (inout State) -> Void) -> [Call] {
    state.withLock { state in
      change(&state)
      defer { state.queue = [] }
      return state.queue
    }
  }

  private func finish(_ calls: [Call], _ cause: EngineError.Cause) {
    for call in calls { call.continuation.resume(returning: .failure(error(cause, call.name))) }
  }

  /// Waits between two connections. Meanwhile, calls wait until their deadlines.
  private func rest(for delay: Int64) {
    let end = bootTime().adding(delay)
    while bootTime() < end {
      do throws(EngineError) { try expireQueue() } catch { return }
      wakeup.wait(until: min(end, bootTime() + 5_000_000))
    }
  }

  /// Ends the queued calls whose deadlines have passed.
  private func expireQueue() throws(EngineError) {
    let now = bootTime()
    let (late, isClosed) = state.withLock { state -> ([Call], Bool) in
      let count = state.queue.firstIndex { $0.deadline > now } ?? state.queue.count
      defer { state.queue.removeFirst(count) }
      return (Array(state.queue.prefix(count)), state.isClosed)
    }
    finish(late, .timedOut(configuration.callTimeout))
    if isClosed { throw error(.closed, "connect") }
  }
}
