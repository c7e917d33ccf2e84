internal import CairnStore

/// Ends a stream when the observer that feeds it is deallocated.
final class StreamEnd<Event: Sendable>: Sendable {
  let continuation: AsyncStream<Event>.Continuation

  init(_ continuation: AsyncStream<Event>.Continuation) { self.continuation = continuation }

  deinit { continuation.finish() }
}

/// The streams that end when a cache on disk is closed or deallocated.
final class StreamEnds<Event: Sendable>: Sendable {
  private struct State: Sendable {
    var continuations: [UInt64: AsyncStream<Event>.Continuation] = [:]
    var lastID: UInt64 = 0
    var isOver = false
  }

  private let state = Lock(State())

  /// Adds a stream, or ends it at once if `end` was called.
  ///
  /// - Returns: the ID to pass to `remove` if the stream ends in another way.
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
    // Release the continuation, and everything it refers to, outside the lock.
    let continuation = state.withLock { $0.continuations.removeValue(forKey: id) }
    withExtendedLifetime(continuation) {}
  }

  /// Ends all streams, permanently.
  func end() {
    let continuations = state.withLock { state in
      state.isOver = true
      return exchange(&state.continuations, with: [:])
    }
    for continuation in continuations.values { continuation.finish() }
  }
}
