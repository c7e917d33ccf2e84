internal import CairnStore

/// Ends a stream when the observer that feeds it goes.
final class StreamEnd<Event: Sendable>: Sendable {
  let continuation: AsyncStream<Event>.Continuation

  init(_ continuation: AsyncStream<Event>.Continuation) { self.continuation = continuation }

  deinit { continuation.finish() }
}

/// The streams that end with a cache on disk: when it is closed, or gone.
final class StreamEnds<Event: Sendable>: Sendable {
  private struct State: Sendable {
    var continuations: [UInt64: AsyncStream<Event>.Continuation] = [:]
    var lastID: UInt64 = 0
    var isOver = false
  }

  private let state = Lock(State())

  /// Adds one, which ends at once where all have ended.
  ///
  /// - Returns: what it is removed by, once it has ended otherwise.
  func add(_ continuation: AsyncStream<Event>.Continuation) -> UInt64 {
    let (id, isOver) = state.withLock { state in
      state.lastID += 1
      if !state.isOver { state.continuations[state.lastID] = continuation }
      return (state.lastID, state.isOver)
    }
    if isOver { continuation.finish() }
    return id
  }

  func remove(_ id: UInt64) {
    // What it holds goes out of the lock.
    let continuation = state.withLock { $0.continuations.removeValue(forKey: id) }
    withExtendedLifetime(continuation) {}
  }

  /// Ends all of them, for good.
  func end() {
    let continuations = state.withLock { state in
      state.isOver = true
      return exchange(&state.continuations, with: [:])
    }
    for continuation in continuations.values { continuation.finish() }
  }
}
