/// Pauses after each piece for as long as the piece took, unless writers are being slowed.
final class CompactionPace {
  private var began = ContinuousClock.now
  private let log: LogWriter
  private let pause: @Sendable (Duration) -> Void
  /// The total length of the pauses.
  private(set) var rested = Duration.zero

  init(_ log: LogWriter) {
    self.log = log
    pause = log.session.environment.pause
  }

  func rest() {
    if log.withLock({ $0.allowance.isScarce }) {
      began = .now
      return
    }
    let rest = min(began.duration(to: .now), .milliseconds(100))
    pause(rest)
    rested += rest
    began = .now
  }
}
