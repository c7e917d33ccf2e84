import CairnLibC
import Synchronization

/// Threads that begin together. `Dispatch` would run no more of them than there are processors, but
/// sixteen writers that wait for one sync must be sixteen threads.
enum ThreadTeam {
  /// Runs `body` with 0 ..< `count`, each on a separate thread, and returns the results in that
  /// order. If any of them throw, throws one of their errors after all have ended.
  static func run<Result: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Result
  ) throws -> [Result] {
    let outcome = Outcome<Result>()
    var threads: [pthread_t] = []
    var creationError: Int32 = 0
    for index in 0..<count {
      let task = Task {
        outcome.waitForStart()
        let result = Swift.Result { try body(index) }
        outcome.results.withLock { $0[index] = result }
      }
      var thread = pthread_t()
      // SAFETY: the thread takes ownership of the reference retained here.
      let argument = unsafe Unmanaged.passRetained(task).toOpaque()
      creationError = unsafe pthread_create(&thread, nil, threadBody, argument)
      guard creationError == 0 else {
        unsafe Unmanaged<Task>.fromOpaque(argument).release()
        break
      }
      threads.append(thread)
    }
    // Start even after a failure, or the created threads would never end.
    outcome.hasStarted.store(true, ordering: .releasing)
    for thread in threads { pthread_join(thread, nil) }
    guard creationError == 0 else {
      throw BenchFailure.system(call: "pthread_create", path: "", errorNumber: creationError)
    }
    return try outcome.results.withLock { results in
      try (0..<count).compactMap { try results[$0]?.get() }
    }
  }

  private final class Task: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  private final class Outcome<Result: Sendable>: Sendable {
    let hasStarted = Atomic(false)
    let results = Mutex<[Int: Swift.Result<Result, any Error>]>([:])

    func waitForStart() {
      while !hasStarted.load(ordering: .acquiring) { sched_yield() }
    }
  }

  private static let threadBody:
    @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { argument in
      // SAFETY: `run` gave the thread this reference, and no one else releases it.
      if let argument = unsafe argument {
        unsafe Unmanaged<Task>.fromOpaque(argument).takeRetainedValue().body()
      }
      return nil
    }
}
