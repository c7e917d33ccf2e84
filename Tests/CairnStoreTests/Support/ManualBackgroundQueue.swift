import CairnStore
import Synchronization

/// A background queue that runs nothing until it is told to.
final class ManualBackgroundQueue: BackgroundQueue {
  struct Job: Sendable {
    var delay: Duration
    var body: @Sendable () -> Void
  }

  private let waiting = Mutex<[Job]>([])

  func run(_ job: @escaping @Sendable () -> Void) {
    waiting.withLock { $0.append(Job(delay: .zero, body: job)) }
  }

  func run(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
    waiting.withLock { $0.append(Job(delay: delay, body: job)) }
  }

  /// The delays of the jobs that wait.
  var delays: [Duration] { waiting.withLock { $0.map(\.delay) } }

  /// Runs the jobs that wait and those that they add, on this thread.
  func runAll() {
    while let job = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { job.body() }
  }

  /// Runs the jobs whose delay is over after a time.
  func runAll(dueAfter time: Duration) {
    while let job = waiting.withLock({ jobs in
      jobs.firstIndex { $0.delay <= time }.map { jobs.remove(at: $0) }
    }) {
      job.body()
    }
  }

  /// Forgets the jobs that wait, and with them the stores that they hold.
  func discardAll() { waiting.withLock { $0 = [] } }
}
