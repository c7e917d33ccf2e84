/// The executor preference of the tasks that a load waits for: its own task and all child tasks.
///
/// Child tasks inherit the preference. Tasks made with `Task` or `Task.detached`, which the load
/// may not await, do not. The standard library offers no other way to tell them apart: `Task`
/// inherits task-local values too. Jobs run where they would without a preference.
final class LoadExecutor: TaskExecutor {
  static let shared = LoadExecutor()

  private init() {}

  func enqueue(_ job: consuming ExecutorJob) {
    globalConcurrentExecutor.enqueue(UnownedJob(job))
  }

  /// Whether the current task has this executor preference.
  static var isPreferred: Bool {
    // SAFETY: the task is used only within the closure, in which it runs; the shared executor is
    // never freed.
    unsafe withUnsafeCurrentTask { task in
      guard let executor = unsafe task?.unownedTaskExecutor else { return false }
      return unsafe executor == shared.asUnownedTaskExecutor()
    }
  }
}
