import Cairn
import Synchronization

/// The store of one shard, with a count of its writers.
final class Shard: Sendable {
  private struct State {
    var store: Store
    var writerCount = 0
    var isMoving = false
    var isPaused = false
    /// Writers that wait for the end of the pause.
    var waiting: [CheckedContinuation<Void, Never>] = []
    /// The mover, which waits for the last writer.
    var drained: CheckedContinuation<Void, Never>?
  }

  private let state: Mutex<State>

  init(_ store: Store) { state = Mutex(State(store: store)) }

  var store: Store { state.withLock { $0.store } }

  /// The store to write to. Call `endWrite` afterwards.
  func beginWrite() async -> Store {
    while true {
      let store = state.withLock { state -> Store? in
        if state.isPaused { return nil }
        state.writerCount += 1
        return state.store
      }
      if let store { return store }
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.isPaused { state.waiting.append(continuation) }
          return !state.isPaused
        }
        if isOver { continuation.resume() }
      }
    }
  }

  func endWrite() {
    let drained = state.withLock { state in
      state.writerCount -= 1
      return state.writerCount == 0 ? state.drained.take() : nil
    }
    drained?.resume()
  }

  func beginMove() throws(ShardError) {
    let begins = state.withLock { state in
      defer { state.isMoving = true }
      return !state.isMoving
    }
    if !begins { throw .isMoving }
  }

  func endMove() { state.withLock { $0.isMoving = false } }

  /// Lets no write begin, and waits for those that have.
  func pauseWrites() async {
    await withCheckedContinuation { continuation in
      let isDrained = state.withLock { state in
        state.isPaused = true
        if state.writerCount > 0 { state.drained = continuation }
        return state.writerCount == 0
      }
      if isDrained { continuation.resume() }
    }
  }

  /// Reads and writes go to this store from now on.
  func resumeWrites(in store: Store) {
    let waiting = state.withLock { state in
      state.store = store
      state.isPaused = false
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
