import CairnStore

/// A clock whose time of day is set separately from the elapsed time, as people and time servers
/// do.
final class SeparateClock: WallClock {
  private struct State {
    var now = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
    var elapsed = Duration.seconds(1000)
  }

  private let state = Lock(State())

  func now() -> Timestamp { state.withLock { $0.now } }

  func elapsed() -> Duration? { state.withLock { $0.elapsed } }

  /// Sets the time of day forward, or back if `duration` is negative. No time elapses.
  func set(by duration: Duration) {
    state.withLock { $0.now = $0.now.advanced(by: duration) }
  }

  /// Lets time elapse, and the time of day advance with it.
  func advance(by duration: Duration) {
    state.withLock { state in
      state.now = state.now.advanced(by: duration)
      state.elapsed += duration
    }
  }
}
