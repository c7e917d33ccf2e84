/// The state of a store's scrubs. Its lock is held only briefly, never while the log is read.
struct ScrubState: Sendable {
  /// The current maintenance cycle, as the last step left it.
  var pass: ScrubPass?
  /// Whether a thread is taking a step of the cycle.
  var isAtWork = false
  /// When the next step may be taken, by the clock that paces scrubs.
  var due: Duration
  /// When the last cycle began.
  var began: Timestamp?
  var completed: Timestamp?
  var completedDamageCount = 0
  /// Bytes read since the open.
  var readByteCount = 0

  init(due: Duration) { self.due = due }

  /// Sets the results of a finished cycle.
  mutating func complete(_ pass: ScrubPass, at now: Timestamp) {
    began = max(began ?? pass.began, pass.began)
    completed = now
    completedDamageCount = pass.damageCount
  }

  /// How long until a cycle may begin.
  func rest(at now: Timestamp) -> Duration {
    guard let began, began <= now else { return .zero }
    let next = began.advanced(by: Self.cycleInterval)
    return .milliseconds(max(0, next.milliseconds(since: now)))
  }

  /// The minimum time between the beginnings of two cycles, however small the store is.
  static let cycleInterval = Duration.seconds(86_400)
}

/// The pace of reading.
struct ScrubPace {
  let bytesPerSecond: Int

  func cost(of byteCount: Int) -> Duration {
    .seconds(Double(byteCount) / Double(bytesPerSecond))
  }

  /// When the next step is due, after the one that was due at `due`. Makes up for delays of up to a
  /// second.
  func next(after due: Duration, byteCount: Int, now: Duration) -> Duration {
    max(due, now - .seconds(1)) + cost(of: byteCount)
  }
}
