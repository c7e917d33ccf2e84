import Foundation
import Synchronization

/// Holds up the first thread that comes until it is opened; lets all later ones through.
final class Gate: Sendable {
  private let arrived = DispatchSemaphore(value: 0)
  private let opened = DispatchSemaphore(value: 0)
  private let isUsed = Atomic(false)

  /// Called by the thread that is to be held up. Returns whether it was the first to come.
  @discardableResult
  func passOnce() -> Bool {
    if isUsed.exchange(true, ordering: .sequentiallyConsistent) { return false }
    arrived.signal()
    _ = opened.wait(timeout: .now() + .seconds(100))
    return true
  }

  /// Waits until a thread is held up, but not for ever.
  func waitForArrival() throws {
    guard arrived.wait(timeout: .now() + .seconds(100)) == .success else {
      throw SupportError(call: "nobody came to the gate", number: 0)
    }
  }

  func open() { opened.signal() }
}
