internal import CairnStore
internal import Synchronization

/// Where asynchronous methods do their work: on some threads of its own, so that none of those that tasks run
/// on is blocked.
package final class WorkQueue: Sendable {
  private struct State: Sendable {
    var jobs: [@Sendable () -> Void] = []
    var idle: [ThreadBackgroundQueue]
  }

  private let state: Lock<State>

  /// - Parameter width: how many jobs run at once. Less than 1 is as 1.
  package init(width: Int) {
    // Their threads live only while there is something to do.
    state = Lock(State(idle: (0..<max(1, width)).map { _ in ThreadBackgroundQueue() }))
  }

  /// Runs a job as soon as one of the threads is free.
  package func run(_ job: @escaping @Sendable () -> Void) {
    let queue = state.withLock { state in
      state.jobs.append(job)
      return state.idle.popLast()
    }
    guard let queue else { return }
    queue.run {
      while let job = self.next(freeing: queue) { job() }
    }
  }

  private func next(freeing queue: ThreadBackgroundQueue) -> (@Sendable () -> Void)? {
    state.withLock { state in
      if !state.jobs.isEmpty { return state.jobs.removeFirst() }
      state.idle.append(queue)
      return nil
    }
  }

  /// Runs `body` on one of the threads, and waits for it without blocking.
  ///
  /// - Throws: `cancelled` where the task is cancelled before it began. Once begun, it goes on to its end.
  package func perform<Result: Sendable>(
    _ body: @escaping @Sendable () throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    let isCancelled = CancellationMark()
    let result: Swift.Result<Result, CacheError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        run {
          if isCancelled.isSet { return continuation.resume(returning: .failure(.cancelled)) }
          continuation.resume(returning: Swift.Result(catching: body))
        }
      }
    } onCancel: {
      isCancelled.set()
    }
    return try result.get()
  }
}

/// Whether a task was cancelled, to be seen from another thread.
private final class CancellationMark: Sendable {
  private let flag = Atomic(false)
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
}
