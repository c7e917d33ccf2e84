/// Where asynchronous methods do their work: on some threads of its own, so that none of those that tasks run
/// on is blocked.
package final class WorkQueue: Sendable {
  /// Where caches are opened, which is before they have threads of their own. Many may wait for one that is opened
  /// elsewhere.
  package static let opening = WorkQueue(width: 8)

  private struct State: Sendable {
    var jobs = WaitingJobs()
    var idle: [ThreadBackgroundQueue] = []
    /// How many more may be made.
    var unmadeCount: Int
    let threads: ThreadStarter

    /// One that has nothing to do; where there is none, a new one, unless there are as many as there may be.
    mutating func takeIdle() -> ThreadBackgroundQueue? {
      if let queue = idle.popLast() { return queue }
      if unmadeCount == 0 { return nil }
      unmadeCount -= 1
      return ThreadBackgroundQueue(threads: threads)
    }
  }

  private let state: Lock<State>

  /// - Parameters:
  ///   - width: how many jobs run at once. Less than 1 is as 1.
  ///   - threads: starts them. Where none can be started, whoever asks for a job runs it.
  package init(width: Int, threads: ThreadStarter = .system) {
    // Made when they are needed, and their threads live only while there is something to do.
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
    // Only asynchronous methods ask, which hold no lock.
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
  /// - Parameter cancelled: what is thrown where the task is cancelled before the work began: at once, however long
  ///   others take. Once begun, it goes on to its end.
  /// - Throws: what `body` throws, or that.
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

  /// Runs `body` on one of the threads, and waits for it without blocking, also where the task is cancelled.
  package nonisolated(nonsending) func performUncancelled<Result: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let work = AwaitedWork(body)
    await work.wait { run($0) }
    return try work.result().get()
  }

  /// Runs `body` at once on a thread of its own, and waits for it without blocking, also where the task is cancelled.
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

/// Jobs in the order in which they came.
private struct WaitingJobs: Sendable {
  /// Those before `first` were taken.
  private var jobs: [(@Sendable () -> Void)?] = []
  private var first = 0

  mutating func append(_ job: @escaping @Sendable () -> Void) { jobs.append(job) }

  mutating func takeFirst() -> (@Sendable () -> Void)? {
    guard first < jobs.count else { return nil }
    let job = jobs[first].take()
    first += 1
    // Moved only when at least as many have been taken, so each is moved once on average.
    if first * 2 >= jobs.count {
      jobs.removeFirst(first)
      first = 0
    }
    return job
  }
}

/// Work that somebody waits for who may be cancelled.
private final class AwaitedWork<Result: Sendable, Failure: Error>: Sendable {
  typealias Body = @Sendable () throws(Failure) -> Result
  typealias Waiter = CheckedContinuation<Void, Never>

  private enum State: Sendable {
    case new(Body)
    case awaited(Body, Waiter)
    /// What it would have used is let go.
    case begun
    /// What came of it waits here, under the lock, rather than with the waiter: a task whose continuation was
    /// resumed before it came to wait is told nothing that Thread Sanitizer sees.
    case over(Swift.Result<Result, Failure>)
  }

  private let state: Lock<State>

  init(_ body: @escaping Body) { state = Lock(.new(body)) }

  /// Has it done by a job that `run` is given, and waits for its end.
  nonisolated(nonsending) func wait(by run: (@escaping @Sendable () -> Void) -> Void) async {
    await withCheckedContinuation { continuation in
      if isAwaited(by: continuation) { run { self.perform() } }
    }
  }

  /// - Returns: whether it is to be done. Where not, it was cancelled, and the waiter is resumed.
  private func isAwaited(by waiter: Waiter) -> Bool {
    let isAwaited = state.withLock { state in
      guard case .new(let body) = state else { return false }
      state = .awaited(body, waiter)
      return true
    }
    if !isAwaited { waiter.resume() }
    return isAwaited
  }

  /// Does it, unless it was cancelled.
  private func perform() {
    guard case .awaited(let body, let waiter) = replaceState(by: .begun) else { return }
    let result = Swift.Result(catching: body)
    state.withLock { $0 = .over(result) }
    waiter.resume()
  }

  /// Leaves it undone, unless it has begun.
  func end(with failure: Failure) {
    if case .awaited(_, let waiter) = replaceState(by: .over(.failure(failure))) {
      waiter.resume()
    }
  }

  /// What came of it, for the waiter that was resumed.
  func result() -> Swift.Result<Result, Failure> {
    state.withLock { state in
      guard case .over(let result) = state else { preconditionFailure("resumed before the end") }
      return result
    }
  }

  /// Only what was not begun yet can be.
  private func replaceState(by next: State) -> State? {
    state.withLock { state in
      switch state {
      case .new, .awaited: exchange(&state, with: next)
      case .begun, .over: nil
      }
    }
  }
}
