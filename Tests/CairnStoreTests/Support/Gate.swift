import Foundation
import Synchronization

/// Holds up the first thread that arrives, until the gate is opened. Lets all later threads pass.
final class Gate: Sendable {
  private let arrived = DispatchSemaphore(value: 0)
  private let opened = DispatchSemaphore(value: 0)
  private let isUsed = Atomic(false)

  /// Called by the thread to hold up. Returns whether it was the first to arrive.
  @discardableResult
  func passOnce() -> Bool {
    if isUsed.exchange(true, ordering: .sequentiallyConsistent) { return false }
    arrived.signal()
    _ = opened.wait(timeout: .now() + .seconds(100))
    return true
  }

  /// Waits until a thread is held up, but not forever.
  func waitForArrival() throws {
    guard arrived.wait(timeout: .now() + .seconds(100)) == .success else {
      throw SupportError(call: "nobody came to the gate", number: 0)
    }
  }

  func open() { opened.signal() }
}
