import CairnStore

/// A background queue that runs jobs only when a test tells it to.
package final class ManualBackgroundQueue: BackgroundQueue {
  private struct Job: Sendable {
    var delay: Duration
    var body: @Sendable () -> Void
  }

  // Not the standard library's `Mutex`, which Thread Sanitizer does not understand.
  private let waiting = Lock<[Job]>([])
  private let refusing = Lock(false)

  package init() {}

  /// Whether no thread can be started, and no kept job ever runs.
  package var refuses: Bool {
    get { refusing.withLock { $0 } }
    set { refusing.withLock { $0 = newValue } }
  }

  package func runIfPossible(_ job: @escaping @Sendable () -> Void) -> Bool {
    runIfPossible(after: .zero, job)
  }

  package func runIfPossible(
    after delay: Duration, _ job: @escaping @Sendable () -> Void
  ) -> Bool {
    if refuses { return false }
    run(after: delay, job)
    return true
  }

  package func run(_ job: @escaping @Sendable () -> Void) {
    run(after: .zero, job)
  }

  package func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    if refuses { return }
    waiting.withLock { $0.append(Job(delay: delay, body: job)) }
  }

  /// The delays of the waiting jobs.
  package var delays: [Duration] { waiting.withLock { $0.map(\.delay) } }

  /// Runs the waiting jobs on this thread, whatever their delays, and the jobs without a delay that
  /// they add.
  package func runAll() {
    let jobs = waiting.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in jobs { job.body() }
    runAll(dueAfter: .zero)
  }

  /// Lets time pass: runs the jobs whose delay is then over, and the jobs without a delay that they
  /// add. Other jobs that they add wait from now on.
  package func runAll(dueAfter time: Duration) {
    let due = waiting.withLock { jobs in
      let due = jobs.filter { $0.delay <= time }
      jobs.removeAll { $0.delay <= time }
      for index in jobs.indices { jobs[index].delay -= time }
      return due
    }
    for job in due { job.body() }
    while runFirst() {}
  }

  /// Runs the first job without a delay, and returns whether there was one.
  @discardableResult
  package func runFirst() -> Bool {
    let job = waiting.withLock { jobs in
      jobs.firstIndex { $0.delay <= .zero }.map { jobs.remove(at: $0) }
    }
    job?.body()
    return job != nil
  }

  /// Drops the waiting jobs, and with them the stores that they hold.
  package func discardAll() {
    let jobs = waiting.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    // Outside the lock, because releasing a store may request another job.
    withExtendedLifetime(jobs) {}
  }
}
