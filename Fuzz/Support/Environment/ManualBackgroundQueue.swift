import CairnStore
import Synchronization

/// A background queue that runs nothing until it is told to.
package final class ManualBackgroundQueue: BackgroundQueue {
  private struct Job: Sendable {
    var delay: Duration
    var body: @Sendable () -> Void
  }

  private let waiting = Mutex<[Job]>([])

  package init() {}

  package func run(_ job: @escaping @Sendable () -> Void) {
    waiting.withLock { $0.append(Job(delay: .zero, body: job)) }
  }

  package func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    waiting.withLock { $0.append(Job(delay: delay, body: job)) }
  }

  /// The delays of the jobs that wait.
  package var delays: [Duration] { waiting.withLock { $0.map(\.delay) } }

  /// Runs the jobs that wait, whatever their delays, and those that they add to be run at once, on
  /// this thread.
  package func runAll() {
    let jobs = waiting.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in jobs { job.body() }
    runAll(dueAfter: .zero)
  }

  /// Lets time pass: runs the jobs whose delay is over by then.
  package func runAll(dueAfter time: Duration) {
    while let job = waiting.withLock({ jobs in
      jobs.firstIndex { $0.delay <= time }.map { jobs.remove(at: $0) }
    }) {
      job.body()
    }
    waiting.withLock { jobs in
      for index in jobs.indices { jobs[index].delay -= time }
    }
  }

  /// Forgets the jobs that wait, and with them the stores that they hold.
  package func discardAll() {
    let jobs = waiting.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    // Out of the lock, since a store that goes with them may ask for another.
    withExtendedLifetime(jobs) {}
  }
}
