import CairnStore
import FuzzSupport
import Synchronization
import Testing

@testable import Cairn

@Suite("Long work in a memory cache")
struct FairnessTests {
  private final class Holder: Sendable {
    let lock = CacheLock(0, sharing: .afterReading)
  }

  @Test("gives way to threads that wait for the lock", .timeLimit(.minutes(30)))
  func givesWay() {
    let holder = Holder()
    let turnCount = Atomic(0)
    onThreads(2) { thread in
      if thread == 0 {
        for _ in 0..<41 {
          holder.lock.withLock { _ in _ = turnCount.add(1, ordering: .relaxed) }
          pause(for: .microseconds(100))
        }
        return
      }
      // How often this thread took the lock while the other one was waiting for the same turn.
      var counts = [Int](repeating: 0, count: 42)
      while case let turn = turnCount.load(ordering: .relaxed), turn < 41 {
        let isAwaited = holder.lock.readers.waitingCount > 0
        holder.lock.withLock { _ in
          let end = ContinuousClock.now + .microseconds(20)
          while ContinuousClock.now < end {}
        }
        if isAwaited { counts[turn] += 1 }
        holder.lock.giveWay()
      }
      // Usually 0. Without `giveWay`, more than 400.
      #expect(counts.sorted()[21] < 50)
    }
  }
}
