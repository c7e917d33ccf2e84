import CairnStore
import Testing

@Suite("Locks")
struct LockTests {
  final class Counter: Sendable {
    let lock = Lock(0, waits: true)
  }

  @Test("Only one thread at a time is inside")
  func exclusion() throws {
    let counter = Counter()
    try onThreads(4) { _ in
      for _ in 0..<10_000 { counter.lock.withLock { $0 += 1 } }
    }
    #expect(counter.lock.withLock { $0 } == 40_000)
  }

  @Test("A waiting thread continues once the state is right")
  func waiting() throws {
    let counter = Counter()
    let waiter = Background { _ = counter.lock.waitUntil { $0 == 3 ? true : nil } }
    for _ in 0..<3 {
      counter.lock.withLock { $0 += 1 }
      counter.lock.wakeAll()
    }
    #expect(waiter.finishes())
  }
}
