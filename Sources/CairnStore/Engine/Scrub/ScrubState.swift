/// What is known of the scrubs of a store. Its lock is held for moments only, never while the log is read.
struct ScrubState: Sendable {
  /// The cycle of maintenance that is under way, as the last step has left it.
  var pass: ScrubPass?
  /// Whether a thread takes a step of it.
  var isAtWork = false
  /// When the next step may be taken, by the clock that paces them.
  var due: Duration
  /// When the last cycle began.
  var began: Timestamp?
  var completed: Timestamp?
  var completedDamageCount = 0
  /// Bytes that were read since the open.
  var readByteCount = 0

  init(due: Duration) { self.due = due }

  /// Goes on from where an earlier session has stopped.
  init(due: Duration, _ mark: ScrubMark?, now: Timestamp, highestID: UInt64) {
    self.due = due
    // Times of the future are of a clock that was wrong.
    guard let mark, mark.began <= now, mark.completed <= now else { return }
    pass = ScrubPass(mark, highestID: highestID)
    began = mark.began.millisecondsSinceEpoch == .min ? nil : mark.began
    completed = mark.completed.millisecondsSinceEpoch == .min ? nil : mark.completed
    completedDamageCount = mark.completedDamageCount
  }

  var mark: ScrubMark {
    var mark = ScrubMark()
    if let began { mark.began = began }
    if let completed { mark.completed = completed }
    mark.completedDamageCount = completedDamageCount
    pass?.save(to: &mark)
    return mark
  }

  /// Notes that a cycle came to its end.
  mutating func complete(_ pass: ScrubPass, at now: Timestamp) {
    began = max(began ?? pass.began, pass.began)
    completed = now
    completedDamageCount = pass.damageCount
  }

  /// For how long no cycle begins.
  func rest(at now: Timestamp) -> Duration {
    guard let began, began <= now else { return .zero }
    let next = began.advanced(by: Self.cycleInterval)
    return .milliseconds(max(0, next.millisecondsSinceEpoch &- now.millisecondsSinceEpoch))
  }

  /// A cycle begins no sooner after the one before began, however small the store is.
  static let cycleInterval = Duration.seconds(86_400)
}

/// At which pace bytes are read.
struct ScrubPace {
  let bytesPerSecond: Int

  func cost(of byteCount: Int) -> Duration {
    .seconds(Double(byteCount) / Double(bytesPerSecond))
  }

  /// When the next step is due, after one that was due at `due`. What was missed is made up for, up to a second of it.
  func next(after due: Duration, byteCount: Int, now: Duration) -> Duration {
    max(due, now - .seconds(1)) + cost(of: byteCount)
  }
}
