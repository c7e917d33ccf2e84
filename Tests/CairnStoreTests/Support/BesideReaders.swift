import Foundation
import Synchronization

/// Calls `write` while separate threads call `read` repeatedly. Each thread has called it once
/// before `write` begins.
func besideReaders(
  _ count: Int, read: @escaping @Sendable () -> Void, write: () throws -> Void
) rethrows {
  final class State: Sendable {
    let startedCount = Atomic(0), endedCount = Atomic(0), isOver = Atomic(false)
  }
  let state = State()
  for _ in 0..<count {
    Thread.detachNewThread {
      read()
      state.startedCount.add(1, ordering: .releasing)
      while !state.isOver.load(ordering: .acquiring) { read() }
      state.endedCount.add(1, ordering: .releasing)
    }
  }
  while state.startedCount.load(ordering: .acquiring) < count { sched_yield() }
  defer {
    state.isOver.store(true, ordering: .releasing)
    while state.endedCount.load(ordering: .acquiring) < count { sched_yield() }
  }
  try write()
}
