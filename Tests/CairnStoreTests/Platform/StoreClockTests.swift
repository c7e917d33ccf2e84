import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// A time of day that can be set, and an elapsed time that continues whatever is set.
final class SettableClock: WallClock {
  private let state = Mutex((offset: Duration.zero, elapsed: Duration.zero))

  func now() -> Timestamp {
    let (offset, elapsed) = state.withLock { $0 }
    return ManualClock.start.advanced(by: offset + elapsed)
  }

  func elapsed() -> Duration? { state.withLock { $0.elapsed } }

  /// Lets time pass.
  func pass(_ duration: Duration) { state.withLock { $0.elapsed += duration } }

  /// Sets the time of day.
  func set(by duration: Duration) { state.withLock { $0.offset += duration } }
}

@Suite("The store's time continues, whatever the clock is set to")
struct StoreClockTests {
  private let directory: TemporaryDirectory
  private let clock = SettableClock()
  private let queue = ManualBackgroundQueue()
  private let messages = Messages()

  init() throws { directory = try TemporaryDirectory() }

  private func open() throws -> Store {
    try Store(
      directory.store,
      .small(clock: clock) { $0.log = DiagnosticLog { [messages] in messages.add($0.text) } },
      background: queue)
  }

  @Test("A clock set back while the store is open prolongs no lifetime")
  func setBackWhileOpen() throws {
    let store = try open()
    try store.setValue("v", forKey: "key", lifetime: .seconds(60))
    clock.set(by: .seconds(-30 * 86_400))
    clock.pass(.seconds(59))
    #expect(try store.text("key") == "v")
    clock.pass(.seconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test("Entries written after the clock was set back live as long as requested")
  func writtenAfter() throws {
    let store = try open()
    clock.set(by: .seconds(-3600))
    try store.setValue("v", forKey: "key", lifetime: .seconds(60))
    clock.pass(.seconds(59))
    #expect(try store.text("key") == "v")
    clock.pass(.seconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test(
    "If the clock was ahead in the last session, a new entry lives as long as requested",
    arguments: [1, 23] as [Int64])
  func aheadInLastSession(hours: Int64) throws {
    clock.set(by: .seconds(hours * 3600))
    let first = try open()
    try first.setValue("v", forKey: "old")
    try first.close()
    clock.set(by: .seconds(-hours * 3600))
    let store = try open()
    try store.setValue("v", forKey: "key", lifetime: .seconds(300))
    clock.pass(.seconds(299))
    #expect(try store.text("key") == "v")
    clock.pass(.seconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test("A clock set ahead shortens lifetimes, but no longer once it is set right")
  func setAheadWhileOpen() throws {
    let store = try open()
    try store.setValue("v", forKey: "key", lifetime: .seconds(60))
    clock.set(by: .seconds(3600))
    #expect(try store.text("key") == nil)
    try store.setValue("w", forKey: "other", lifetime: .seconds(60))
    clock.set(by: .seconds(-3600))
    clock.pass(.seconds(60))
    #expect(try store.text("other") == "w")
  }

  @Test("A clock that catches up with the store's time counts from there")
  func catchesUp() throws {
    let first = try open()
    try first.setValue("v", forKey: "old")
    try first.close()
    // A machine without a hardware clock starts in the past, and gets the time a little later.
    clock.set(by: .seconds(-3600))
    let store = try open()
    clock.pass(.seconds(10))
    clock.set(by: .seconds(3600))
    try store.setValue("v", forKey: "key", lifetime: .seconds(60))
    #expect(try store.info(forKey: "key")?.expires == clock.now().advanced(by: .seconds(60)))
  }

  // MARK: Reports

  @Test("The statistics and the log report how far the clock was behind at the open")
  func reportedAtOpen() throws {
    clock.set(by: .seconds(23 * 3600))
    let first = try open()
    try first.setValue("v", forKey: "old")
    try first.close()
    #expect(messages.all.isEmpty)
    clock.set(by: .seconds(-23 * 3600))
    let store = try open()
    let statistics = try store.statistics()
    #expect(statistics.recovery.clockLag == .seconds(23 * 3600))
    #expect(statistics.recovery.clockWentBack == false)
    #expect(statistics.clockOffset == .seconds(-23 * 3600))
    #expect(messages.all.contains { $0.contains("82800 s behind the store's last use") })
  }

  @Test(
    "The statistics report how far the clock was set while the store is open; the log does so once",
    arguments: [-3600, 3600] as [Int64])
  func reportedWhileOpen(seconds: Int64) throws {
    let store = try open()
    try store.setValue("v", forKey: "key")
    #expect(try store.statistics().clockOffset == .zero)
    clock.set(by: .seconds(seconds))
    clock.pass(.seconds(10))
    #expect(try store.statistics().clockOffset == .seconds(seconds))
    for _ in 0..<2 {
      try store.maintain()
      queue.runAll()
    }
    let side = seconds < 0 ? "behind" : "ahead of"
    #expect(messages.all.count { $0.contains("the clock was set: it is 3600 s \(side)") } == 1)
  }

  // MARK: Clocks with only the time of day

  @Test("For a clock without elapsed time, each step forward is elapsed time")
  func stepsForward() throws {
    let manual = ManualClock()
    let store = try Store(directory.store, .small(clock: manual), background: queue)
    try store.setValue("v", forKey: "key", lifetime: .seconds(60))
    manual.advance(by: .seconds(-86_400))
    for _ in 0..<59 {
      #expect(try store.text("key") == "v")
      manual.advance(by: .seconds(1))
    }
    #expect(try store.text("key") == "v")
    manual.advance(by: .seconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test("Threads that read such a clock out of order create no time")
  func readOutOfOrder() throws {
    let manual = ManualClock()
    let clock = StoreClock(manual, lastRecorded: ManualClock.start)
    for _ in 0..<1000 {
      manual.advance(by: .milliseconds(10))
      _ = clock.now()
      manual.advance(by: .milliseconds(-10))
      _ = clock.now()
    }
    #expect(clock.now() <= ManualClock.start.advanced(by: .milliseconds(10)))
  }

  @Test("No time of a clock, and no recorded time, is too far away")
  func extremes() {
    for recorded in [Int64.min, 0, .max] {
      for time in [Int64.min, 0, .max] {
        let manual = ManualClock(Timestamp(millisecondsSinceEpoch: time))
        let clock = StoreClock(
          manual, lastRecorded: Timestamp(millisecondsSinceEpoch: recorded))
        for other in [Int64.max, .min, 0, .max] {
          manual.set(Timestamp(millisecondsSinceEpoch: other))
          #expect(clock.now().millisecondsSinceEpoch >= other)
          _ = clock.offset
        }
      }
    }
  }

  @Test("The system's clock is within a few milliseconds of the store's time")
  func systemClock() {
    let system = SystemClock()
    let clock = StoreClock(system, lastRecorded: Timestamp(millisecondsSinceEpoch: 0))
    for _ in 0..<100_000 { _ = clock.now() }
    let (before, now, after) = (system.now(), clock.now(), system.now())
    #expect(now >= before.advanced(by: .milliseconds(-20)))
    #expect(now <= after.advanced(by: .milliseconds(20)))
    #expect(system.elapsed() ?? .zero > .zero)
  }
}
