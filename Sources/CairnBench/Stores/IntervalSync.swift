import Dispatch
import Foundation
import Synchronization

/// Syncs a store at regular intervals, on a separate thread.
final class IntervalSync: Sendable {
  private let stop = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let failure = Mutex<(any Error)?>(nil)

  init(every interval: Duration, _ sync: @escaping @Sendable () throws -> Void) {
    let seconds = interval / .seconds(1)
    Thread.detachNewThread { [self] in
      do {
        while stop.wait(timeout: .now() + seconds) == .timedOut { try sync() }
      } catch {
        failure.withLock { $0 = error }
      }
      ended.signal()
    }
  }

  /// Ends the thread, and throws any error that a sync has thrown.
  func end() throws {
    stop.signal()
    ended.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}
