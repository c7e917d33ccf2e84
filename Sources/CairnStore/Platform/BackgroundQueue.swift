#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Where a store's background work runs: one job at a time, in order.
///
/// Injected, so that a simulation decides when each job runs.
package protocol BackgroundQueue: Sendable {
  /// Runs the job soon, on another thread.
  func run(_ job: @escaping @Sendable () -> Void)
  /// Runs the job after at least this long.
  func run(after delay: Duration, _ job: @escaping @Sendable () -> Void)
}

/// A thread that lives while there are jobs.
///
/// Not a queue of Dispatch: its timers need descriptors, and where a process has none left it ends
/// the process.
package final class ThreadBackgroundQueue: BackgroundQueue {
  /// What the thread holds; the queue itself can go while it waits.
  private final class Core: Sendable {
    struct Delayed {
      var due: ContinuousClock.Instant
      var job: @Sendable () -> Void
    }

    struct State: ~Copyable {
      var jobs: [@Sendable () -> Void] = []
      var delayed: [Delayed] = []
      var hasThread = false
      var isEnding = false
    }

    let state = Lock(State(), waits: true)

    /// The thread's life: runs jobs until there are none, or the queue has gone.
    func runJobs() {
      while let job = nextJob() { job() }
    }

    private func nextJob() -> (@Sendable () -> Void)? {
      state.waitUntil(step: { state -> Lock<State>.Step<(@Sendable () -> Void)?> in
        if !state.jobs.isEmpty { return .done(state.jobs.removeFirst()) }
        if state.isEnding || state.delayed.isEmpty {
          state.hasThread = false
          return .done(nil)
        }
        let first = state.delayed.indices.min { state.delayed[$0].due < state.delayed[$1].due } ?? 0
        let now = ContinuousClock.now
        if state.delayed[first].due <= now { return .done(state.delayed.remove(at: first).job) }
        // A millisecond more, since the wait is cut to whole ones.
        return .wait(now.duration(to: state.delayed[first].due) + .milliseconds(1))
      })
    }
  }

  private let core = Core()
  private let runsWithoutThread: Bool

  /// - Parameter runsWithoutThread: whether jobs are run at once by who asks for them, also those
  ///   that were to wait, where no thread can be made. Otherwise they stay until one can, when the
  ///   next job comes: right where nobody waits for them, and needed where a job asks for itself
  ///   again.
  package init(runsWithoutThread: Bool = true) { self.runsWithoutThread = runsWithoutThread }

  deinit {
    core.state.withLock { $0.isEnding = true }
    core.state.wakeAll()
  }

  package func run(_ job: @escaping @Sendable () -> Void) {
    add { $0.jobs.append(job) }
  }

  package func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    // The longest durations cannot be added to a time.
    let due = ContinuousClock.now.advanced(by: min(delay, .seconds(1 << 32)))
    add { $0.delayed.append(Core.Delayed(due: due, job: job)) }
  }

  private func add(_ change: (inout Core.State) -> Void) {
    let needsThread = core.state.withLock { state in
      change(&state)
      defer { state.hasThread = true }
      return !state.hasThread
    }
    if needsThread { startThread() } else { core.state.wakeAll() }
  }

  private func startThread() {
    var thread = pthread_t()
    // SAFETY: the thread takes over the reference that is passed.
    let context = unsafe Unmanaged.passRetained(core)
    let result = unsafe pthread_create(
      &thread, nil,
      { context in
        guard let context = unsafe context else { return nil }
        unsafe Unmanaged<Core>.fromOpaque(context).takeRetainedValue().runJobs()
        return nil
      }, context.toOpaque())
    if result == 0 {
      pthread_detach(thread)
    } else {
      unsafe context.release()
      let jobs = core.state.withLock { state -> [@Sendable () -> Void] in
        state.hasThread = false
        if !runsWithoutThread { return [] }
        defer {
          state.jobs = []
          state.delayed = []
        }
        return state.jobs + state.delayed.map(\.job)
      }
      for job in jobs { job() }
    }
  }
}
