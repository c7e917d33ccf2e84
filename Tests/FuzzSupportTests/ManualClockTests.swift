import CairnStore
import Dispatch
import FuzzSupport
import Testing

@Suite("A clock whose time is set")
struct ManualClockTests {
  /// One thread undid another's advance, so the clock went back for a third.
  @Test("Many threads that let time pass at once lose none of it")
  func advancing() {
    let clock = ManualClock()
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<100_000 { clock.advance(by: .milliseconds(1)) }
    }
    #expect(clock.now() == ManualClock.start.advanced(by: .seconds(400)))
  }

  @Test("The clock advances no further than time does")
  func limits() {
    let clock = ManualClock(.distantFuture)
    clock.advance(by: .seconds(1))
    #expect(clock.now() == .distantFuture)
  }
}
