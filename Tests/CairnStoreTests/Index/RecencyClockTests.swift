import FuzzSupport
import Testing

@testable import CairnStore

@Suite("The recency clock")
struct RecencyClockTests {
  @Test("The time of a tick is accurate to a second or a hundredth of its age")
  func times() {
    var generator = Seed.generator()
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now())
    var known: [(tick: UInt64, time: Timestamp)] = []
    // More times than the table has samples, so that it is thinned out, more than once.
    for _ in 0..<30_000 {
      clock.advance(by: .milliseconds(Int64.random(in: 100...5000, using: &generator)))
      recency.note(clock.now())
      known.append((recency.advance(), clock.now()))
    }
    for (tick, time) in known {
      let age = clock.now().millisecondsSinceEpoch - time.millisecondsSinceEpoch
      let late = recency.time(of: tick).millisecondsSinceEpoch - time.millisecondsSinceEpoch
      #expect(late >= 0 && late <= max(1000, age / 100), "age \(age); \(Seed.comment)")
    }
  }

  @Test(
    "The time of a tick never gets earlier, whatever is thinned out", arguments: [0, 10, -10])
  func times(swing: Int) {
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now())
    var known: [(tick: UInt64, time: Timestamp)] = []
    for step in 0..<30_000 {
      clock.advance(by: .milliseconds(4))
      if step % 5 == 0 { clock.advance(by: .seconds(step % 10 == 0 ? swing : -swing)) }
      recency.note(clock.now())
      let tick = recency.advance()
      if step % 100 == 0 { known.append((tick, recency.time(of: tick))) }
      if step % 1000 != 0 { continue }
      for index in known.indices {
        let time = recency.time(of: known[index].tick)
        #expect(time >= known[index].time, "tick \(known[index].tick) at step \(step)")
        known[index].time = time
      }
    }
  }

  @Test(
    "Threads that report the time late, or a clock that is set back and forth, cost no more memory",
    arguments: [0, 10])
  func outOfOrder(swing: Int) {
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now())
    var known: [(tick: UInt64, time: Timestamp)] = []
    var highestCount = 0
    for step in 0..<20_000 {
      clock.advance(by: .milliseconds(4))
      recency.note(clock.now())
      known.append((recency.advance(), clock.now()))
      // Another thread read the clock before.
      recency.note(clock.now().advanced(by: .milliseconds(-4)))
      if step % 5 == 0 { clock.advance(by: .seconds(step % 10 == 0 ? swing : -swing)) }
      highestCount = max(highestCount, recency.sampleTicks.count)
    }
    #expect(highestCount <= 8192)
    var largestError: Int64 = 0
    for (tick, time) in known {
      let age = abs(clock.now().millisecondsSinceEpoch - time.millisecondsSinceEpoch)
      let error = time.millisecondsSinceEpoch - recency.time(of: tick).millisecondsSinceEpoch
      largestError = max(largestError, abs(error) - max(1000, age / 100))
    }
    #expect(largestError <= swing * 1000)
  }

  @Test("Accesses before the clock was made count as accesses at that moment")
  func start() {
    let recency = RecencyClock(now: ManualClock.start)
    #expect(recency.time(of: 0) == ManualClock.start)
    #expect(recency.time(of: recency.advance()) == ManualClock.start)
  }

  @Test(
    "A few reads after a step of the clock are counted individually; the rest share one tick"
  )
  func reads() {
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now(), exactCount: 8)
    clock.advance(by: .milliseconds(4))
    recency.note(clock.now())
    let first = recency.now
    var last = first
    for _ in 0..<7 {
      let tick = recency.tickOfRead(after: 0)
      #expect(tick == last + 1)
      last = tick ?? last
    }
    #expect(recency.tickOfRead(after: last) == nil, "nothing was accessed since")
    #expect(recency.tickOfRead(after: 0) == last + 1)
    // From here on, entries accessed since the step keep their ticks, and others get the newest.
    #expect(recency.tickOfRead(after: first + 1) == nil)
    #expect(recency.tickOfRead(after: first - 1) == last + 1)
    #expect(recency.tickOfRead(after: first - 1) == last + 1)
    let write = recency.advance()
    #expect(write == last + 2, "a write is later than all reads")
    clock.advance(by: .milliseconds(4))
    recency.note(clock.now())
    #expect(recency.tickOfRead(after: write) == write + 2)
  }

  @Test(
    "An entry keeps its tick for a tenth of a second, or a sixteenth of the oldest entry's age",
    arguments: [(16_000, 100), (800, 50), (8, 0)])
  func freshness(ageOfOldest: Int, period: Int) {
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now(), exactCount: 1)
    let step = 4
    func access() -> UInt64 {
      clock.advance(by: .milliseconds(step))
      recency.note(clock.now())
      return recency.advance()
    }
    var ticks = (0..<5000).map { _ in access() }
    recency.setOldestTick(ticks[ticks.count - ageOfOldest / step])
    ticks.append(access())
    for (index, tick) in ticks.reversed().enumerated() {
      let isKept = recency.tickOfRead(after: tick) == nil
      #expect(isKept == (index * step <= period), "\(index * step) ms old")
    }
  }

  @Test("An entry with an idle limit gets a new tick at each step of the clock")
  func idle() {
    let clock = ManualClock()
    let recency = RecencyClock(now: clock.now(), exactCount: 1)
    clock.advance(by: .milliseconds(10_000))
    recency.note(clock.now())
    let tick = recency.advance()
    #expect(recency.tickOfIdleRead(after: tick - 1) == nil)
    clock.advance(by: .milliseconds(4))
    recency.note(clock.now())
    _ = recency.advance()
    #expect(recency.tickOfRead(after: tick) == nil)
    #expect(recency.tickOfIdleRead(after: tick) != nil)
  }
}
