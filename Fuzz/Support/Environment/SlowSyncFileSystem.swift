package import CairnStore
import Foundation
import Synchronization

/// The real file system, with syncs that take as long as a test wants.
package final class SlowSyncFileSystem: FileSystemDecorator {
  package let base: any FileSystem = SystemFileSystem()
  private let condition = NSCondition()
  private struct State {
    var isHeld = false
    var waitingCount = 0
    var names: [Int32: String] = [:]
    var only: String?
  }
  private let state = Mutex(State())

  package init() {}

  /// From now on, lets no sync return. With a name, this applies only to syncs of that file.
  package func holdSyncs(of name: String? = nil) {
    state.withLock { ($0.isHeld, $0.only) = (true, name) }
  }

  package func releaseSyncs() {
    condition.withLock {
      state.withLock { $0.isHeld = false }
      condition.broadcast()
    }
  }

  /// Waits until a sync is held up. `false` if none was within a minute.
  package func awaitHeldSync() -> Bool {
    let deadline = Date(timeIntervalSinceNow: 60)
    return condition.withLock {
      while state.withLock({ $0.waitingCount }) == 0 {
        if !condition.wait(until: deadline) { return false }
      }
      return true
    }
  }

  private func hold(_ descriptor: Int32) {
    func isHeld() -> Bool {
      state.withLock { $0.isHeld && ($0.only == nil || $0.only == $0.names[descriptor]) }
    }
    condition.withLock {
      if !isHeld() { return }
      state.withLock { $0.waitingCount += 1 }
      condition.broadcast()
      while isHeld() { condition.wait() }
      state.withLock { $0.waitingCount -= 1 }
    }
  }

  package func open(
    _ name: String, in directory: Int32, mode: OpenMode
  ) throws(SystemError) -> Int32 {
    let descriptor = try base.open(name, in: directory, mode: mode)
    state.withLock { $0.names[descriptor] = name }
    return descriptor
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) {
    hold(descriptor)
    try base.synchronize(descriptor)
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    hold(descriptor)
    try base.synchronizeData(descriptor)
  }
}
