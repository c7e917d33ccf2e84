internal import CairnStore

/// Ends a stream when the observer that feeds it goes.
final class StreamEnd<Event: Sendable>: Sendable {
  let continuation: AsyncStream<Event>.Continuation

  init(_ continuation: AsyncStream<Event>.Continuation) { self.continuation = continuation }

  deinit { continuation.finish() }
}

/// The streams that end with a front, though who observes for them may live longer.
final class StreamEnds<Event: Sendable>: Sendable {
  private struct State: Sendable {
    var continuations: [UInt64: AsyncStream<Event>.Continuation] = [:]
    var lastID: UInt64 = 0
  }

  private let state = Lock(State())

  /// - Returns: what it is removed by, once it has ended otherwise.
  func add(_ continuation: AsyncStream<Event>.Continuation) -> UInt64 {
    state.withLock { state in
      state.lastID += 1
      state.continuations[state.lastID] = continuation
      return state.lastID
    }
  }

  func remove(_ id: UInt64) {
    // What it holds goes out of the lock.
    let continuation = state.withLock { $0.continuations.removeValue(forKey: id) }
    withExtendedLifetime(continuation) {}
  }

  /// Ends all of them.
  func end() {
    let continuations = state.withLock { exchange(&$0.continuations, with: [:]) }
    for continuation in continuations.values { continuation.finish() }
  }
}
