/// Runs the work of asynchronous methods on its own threads, so that the work does not block the
/// threads that run tasks.
package final class WorkQueue: Sendable {
  /// Opens stores and caches, which have no threads of their own yet. Many opens may wait for a
  /// cache that is being opened elsewhere.
  package static var opening: WorkQueue { ofProcess.object }
  private static let ofProcess = PerProcess { WorkQueue(width: 8) }

  private struct State: Sendable {
    var jobs = WaitingJobs()
    var idle: [ThreadBackgroundQueue] = []
    /// How many more queues may be made.
    var unmadeCount: Int
    let threads: ThreadStarter

    /// An idle queue; if there is none, a new one, unless the maximum is reached.
    mutating func takeIdle() -> ThreadBackgroundQueue? {
      if let queue = idle.popLast() { return queue }
      if unmadeCount == 0 { return nil }
      unmadeCount -= 1
      return ThreadBackgroundQueue(threads: threads)
    }
  }

  private let state: Lock<State>

  /// - Parameters:
  ///   - width: how many jobs run at once. Less than 1 means 1.
  ///   - threads: starts the threads. If no thread can be started, the caller runs its own job.
  package init(width: Int, threads: ThreadStarter = .system) {
    // Queues are made on demand. Their threads live only while there is something to do.
    state = Lock(State(unmadeCount: max(1, width), threads: threads))
  }

  /// Runs a job as soon as one of the threads is free.
  package func run(_ job: @escaping @Sendable () -> Void) {
    let queue = state.withLock { state in
      state.jobs.append(job)
      return state.takeIdle()
    }
    guard let queue else { return }
    let isStarted = queue.runIfPossible { self.runJobs(on: queue) }
    // Only asynchronous methods call this, and they hold no lock.
    if !isStarted { runJobs(on: queue) }
  }

  private func runJobs(on queue: ThreadBackgroundQueue) {
    while let job = next(freeing: queue) { job() }
  }

  private func next(freeing queue: ThreadBackgroundQueue) -> (@Sendable () -> Void)? {
    state.withLock { state in
      if let job = state.jobs.takeFirst() { return job }
      state.idle.append(queue)
      return nil
    }
  }

  /// Runs `body` on one of the threads, and waits for it without blocking.
  ///
  /// - Parameter cancelled: thrown if the task is cancelled before the work has begun: at once,
  ///   however long other jobs take. Once begun, the work finishes.
  /// - Throws: what `body` throws, or `cancelled`.
  package nonisolated(nonsending) func perform<Result: Sendable, Failure: Error>(
    orThrow cancelled: Failure, _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let work = AwaitedWork(body)
    await withTaskCancellationHandler {
      await work.wait { run($0) }
    } onCancel: {
      work.end(with: cancelled)
    }
    return try work.result().get()
  }

  /// Runs `body` on one of the threads, and waits for it without blocking, even if the task is
  /// cancelled.
  package nonisolated(nonsending) func performUncancelled<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let work = AwaitedWork(body)
    await work.wait { run($0) }
    return try work.result().get()
  }

  /// Runs `body` at once on a separate thread, and waits for it without blocking, even if the task
  /// is cancelled.
  package nonisolated(nonsending) static func performAlone<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let work = AwaitedWork(body)
    await work.wait { job in
      if !ThreadStarter.system.start(job) { job() }
    }
    return try work.result().get()
  }
}

/// Jobs in order of arrival.
private struct WaitingJobs: Sendable {
  /// The jobs before `first` have been taken.
  private var jobs: [(@Sendable () -> Void)?] = []
  private var first = 0

  mutating func append(_ job: @escaping @Sendable () -> Void) { jobs.append(job) }

  mutating func takeFirst() -> (@Sendable () -> Void)? {
    guard first < jobs.count else { return nil }
    let job = jobs[first].take()
    first += 1
    // The jobs move only when at least as many have been taken, so each moves once on average.
    if first * 2 >= jobs.count {
      jobs.removeFirst(first)
      first = 0
    }
    return job
  }
}

/// Work whose waiter may be cancelled.
private final class AwaitedWork<Result: Sendable, Failure: Error>: Sendable {
  typealias Body = @Sendable () throws(Failure) -> Result
  typealias Waiter = CheckedContinuation<Void, Never>

  private enum State: Sendable {
    case new(Body)
    case awaited(Body, Waiter)
    /// The values that the body captured are released.
    case begun
    /// The result is kept here, under the lock, rather than with the waiter: if a continuation is
    /// resumed before its task waits, Thread Sanitizer sees no ordering.
    case over(Swift.Result<Result, Failure>)
  }

  private let state: Lock<State>

  init(_ body: @escaping Body) { state = Lock(.new(body)) }

  /// Does the work in a job that `run` receives, and waits for its end.
  nonisolated(nonsending) func wait(by run: (@escaping @Sendable () -> Void) -> Void) async {
    await withCheckedContinuation { continuation in
      if isAwaited(by: continuation) { run { self.perform() } }
    }
  }

  /// - Returns: whether to do the work. If not, the work was cancelled, and the waiter is resumed.
  private func isAwaited(by waiter: Waiter) -> Bool {
    let isAwaited = state.withLock { state in
      guard case .new(let body) = state else { return false }
      state = .awaited(body, waiter)
      return true
    }
    if !isAwaited { waiter.resume() }
    return isAwaited
  }

  /// Does the work, unless it was cancelled.
  private func perform() { work()?.resume() }

  /// - Returns: the waiter. From here on, this thread holds nothing that the body captured or
  ///   returned. So the waiter's last reference to a store is the last of all, and closes it.
  @inline(never)
  private func work() -> Waiter? {
    guard case .awaited(let body, let waiter) = replaceState(by: .begun) else { return nil }
    let result = Swift.Result(catching: body)
    state.withLock { $0 = .over(result) }
    return waiter
  }

  /// Cancels the work, unless it has begun.
  func end(with failure: Failure) {
    if case .awaited(_, let waiter) = replaceState(by: .over(.failure(failure))) {
      waiter.resume()
    }
  }

  /// Takes the result, for the resumed waiter.
  func result() -> Swift.Result<Result, Failure> {
    guard case .over(let result) = state.withLock({ exchange(&$0, with: .begun) }) else {
      preconditionFailure("resumed before the end")
    }
    return result
  }

  /// Replaces the state only if the work has not begun.
  private func replaceState(by next: State) -> State? {
    state.withLock { state in
      switch state {
      case .new, .awaited: exchange(&state, with: next)
      case .begun, .over: nil
      }
    }
  }
}
