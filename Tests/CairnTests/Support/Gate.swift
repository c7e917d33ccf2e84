import CairnStore
import Testing

/// A gate at which tasks wait until a test opens it.
final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var arrivedCount = 0
  }

  private let state = Lock(State())

  /// How many tasks have arrived so far.
  var arrivedCount: Int { state.withLock { $0.arrivedCount } }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      return exchange(&state.waiting, with: [])
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until the gate is open, even if the task is cancelled.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        state.arrivedCount += 1
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// Waits until other tasks make `condition` true.
///
/// If many tests run at once, a task gets its turn after all tasks that are queued before it, and
/// the tasks that it starts are queued behind those again. So turns are counted, not only time.
func eventually(
  _ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async {
  let end = ContinuousClock.now.advanced(by: .seconds(60))
  var turnCount = 0
  while !condition() {
    if ContinuousClock.now > end, turnCount > 1000 {
      Issue.record("it did not come true", sourceLocation: sourceLocation)
      return
    }
    turnCount += 1
    try? await Task.sleep(for: .milliseconds(1))
  }
}
