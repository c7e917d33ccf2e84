/// Runs a store's background work: one job at a time, in order, never on the requesting thread. So
/// code that holds a lock may request a job that takes the same lock.
///
/// Injected, so that a simulation decides when each job runs.
package protocol BackgroundQueue: Sendable {
  /// Runs the job soon. If no thread can be started, the job waits until one can.
  func run(_ job: @escaping @Sendable () -> Void)
  /// Runs the job after at least this long; otherwise like `run(_:)`.
  func run(after delay: Duration, _ job: @escaping @Sendable () -> Void)

  /// Runs the job soon.
  ///
  /// - Returns: `false` if no thread can be started. The job is then not run. The caller, which
  ///   knows what locks it holds, decides what to do.
  func runIfPossible(_ job: @escaping @Sendable () -> Void) -> Bool
  /// Runs the job after at least this long; otherwise like `runIfPossible(_:)`.
  func runIfPossible(after delay: Duration, _ job: @escaping @Sendable () -> Void) -> Bool
}

extension BackgroundQueue {
  package func runIfPossible(_ job: @escaping @Sendable () -> Void) -> Bool {
    run(job)
    return true
  }

  package func runIfPossible(
    after delay: Duration, _ job: @escaping @Sendable () -> Void
  ) -> Bool {
    run(after: delay, job)
    return true
  }
}

/// A thread that exists only while there are jobs. `SharedTimer` keeps the delayed jobs.
///
/// Not a Dispatch queue: its timers need descriptors, and Dispatch aborts a process that has none
/// left.
package final class ThreadBackgroundQueue: BackgroundQueue {
  private typealias Job = @Sendable () -> Void

  /// What to do with a job if no thread can be started.
  private enum Refused {
    case kept, givenBack
    /// The caller is the timer's thread, which holds no lock.
    case runHere
  }

  /// The state. The thread retains it, because the queue itself may be freed in the meantime.
  private final class Core: Sendable {
    struct State: ~Copyable {
      var jobs: [Job] = []
      private var thread: ProcessMark?
      /// A forked child has none of its parent's threads.
      var hasThread: Bool {
        get { thread?.isForeign == false }
        set { thread = newValue ? ProcessMark() : nil }
      }
      /// Whether the timer will retry starting a thread.
      var isTriedAgain = false
    }

    private let state = Lock(State())
    private let threads: ThreadStarter
    private let timer: SharedTimer

    init(threads: ThreadStarter, timer: SharedTimer) {
      self.threads = threads
      self.timer = timer
    }

    /// Runs a job, and any kept jobs before it.
    ///
    /// - Parameter job: the job, or `nil` to run only the kept jobs.
    /// - Returns: whether the job will run. If no thread can be started, `refused` says what
    ///   happens to the job.
    func add(_ job: Job?, refused: Refused) -> Bool {
      let first = state.withLock { state -> [Job]? in
        if state.hasThread {
          if let job { state.jobs.append(job) }
          return nil
        }
        let first = exchange(&state.jobs, with: []) + (job.map { [$0] } ?? [])
        state.hasThread = !first.isEmpty
        return first
      }
      guard let first, !first.isEmpty else { return true }
      if threads.start({ self.run(first) }) { return true }
      if refused == .runHere {
        run(first)
        return true
      }
      let isTriedAgain = state.withLock { state in
        state.hasThread = false
        state.jobs = (refused == .kept ? first : first.dropLast()) + state.jobs
        let isTriedAgain = !state.isTriedAgain && !state.jobs.isEmpty
        if isTriedAgain { state.isTriedAgain = true }
        return isTriedAgain
      }
      if isTriedAgain { tryAgain() }
      return false
    }

    private func tryAgain() {
      timer.add(after: .milliseconds(100), owner: ObjectIdentifier(self), isKept: true) {
        self.state.withLock { $0.isTriedAgain = false }
        _ = self.add(nil, refused: .runHere)
      }
    }

    /// The body of the thread: runs jobs until none are left.
    private func run(_ first: [Job]) {
      for job in first { job() }
      while let job = nextJob() { job() }
    }

    private func nextJob() -> Job? {
      state.withLock { state in
        state.hasThread = !state.jobs.isEmpty
        return state.jobs.isEmpty ? nil : state.jobs.removeFirst()
      }
    }

    func add(_ job: @escaping Job, after delay: Duration, isKept: Bool) -> Bool {
      timer.add(after: delay, owner: ObjectIdentifier(self), isKept: isKept) {
        _ = self.add(job, refused: .runHere)
      }
    }

    func forgetDelayed() { timer.removeAll(of: ObjectIdentifier(self)) }
  }

  private let core: Core

  package init(threads: ThreadStarter = .system, timer: SharedTimer = .shared) {
    core = Core(threads: threads, timer: timer)
  }

  deinit { core.forgetDelayed() }

  package func run(_ job: @escaping @Sendable () -> Void) { _ = core.add(job, refused: .kept) }

  package func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    _ = core.add(job, after: delay, isKept: true)
  }

  package func runIfPossible(_ job: @escaping @Sendable () -> Void) -> Bool {
    core.add(job, refused: .givenBack)
  }

  package func runIfPossible(
    after delay: Duration, _ job: @escaping @Sendable () -> Void
  ) -> Bool {
    core.add(job, after: delay, isKept: false)
  }
}
