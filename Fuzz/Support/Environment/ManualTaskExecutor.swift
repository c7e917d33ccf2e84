import CairnStore

/// Runs the jobs of tasks only when a run tells it to. Between two such calls, each of its tasks
/// has ended or waits for another thread.
package final class ManualTaskExecutor: TaskExecutor {
  // Not the standard library's `Mutex`, which Thread Sanitizer does not understand.
  private let jobs = Lock<[UnownedJob]>([])

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
  }

  /// Runs the jobs of all tasks that can continue.
  package func runAll() {
    while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
