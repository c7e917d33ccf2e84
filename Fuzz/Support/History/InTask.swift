import Dispatch
import Synchronization

/// Runs a thread's work in a task and waits for it, so that histories have calls from threads and
/// from tasks.
package func inTask<Result: Sendable>(
  _ body: @escaping @Sendable () async throws -> Result
) throws -> Result {
  let outcome = Outcome<Result>()
  let done = DispatchSemaphore(value: 0)
  Task.detached {
    do {
      outcome.result.withLock { [value = try await body()] in $0 = .success(value) }
    } catch {
      outcome.result.withLock { $0 = .failure(error) }
    }
    done.signal()
  }
  done.wait()
  guard let result = outcome.result.withLock({ $0 }) else { throw FuzzFailure("no outcome") }
  return try result.get()
}

private final class Outcome<Value: Sendable>: Sendable {
  let result = Mutex<Result<Value, any Error>?>(nil)
}
