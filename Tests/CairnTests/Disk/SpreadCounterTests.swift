import Foundation
import FuzzSupport
import Testing

@testable import Cairn

@Suite("Counters of reads")
struct SpreadCounterTests {
  final class Holder: Sendable { let counter = SpreadCounter() }

  @Test("Nothing is lost, and threads that count at once use different words")
  func threads() {
    let holder = Holder()
    let threadCount = 16
    // No thread ends before all have counted, so that they are different threads.
    let all = DispatchGroup()
    for _ in 0..<threadCount { all.enter() }
    let ended = DispatchGroup()
    for _ in 0..<threadCount {
      ended.enter()
      Thread.detachNewThread {
        for _ in 0..<10_000 { holder.counter.add() }
        all.leave()
        all.wait()
        ended.leave()
      }
    }
    ended.wait()
    #expect(holder.counter.value == UInt64(threadCount) * 10_000)
    // By chance alone, sixteen would use three or fewer words once in a thousand million times.
    #expect(holder.counter.counts.count { $0 > 0 } > 3)
    // A thread keeps its word.
    #expect(holder.counter.counts.allSatisfy { $0.isMultiple(of: 10_000) })
  }
}
