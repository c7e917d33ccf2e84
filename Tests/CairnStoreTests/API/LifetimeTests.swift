import CairnStore
import FuzzSupport
import Testing

@Suite("Lifetimes")
struct LifetimeTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    var configuration = StoreConfiguration.small(clock: clock)
    configuration.lifetime = .seconds(100)
    store = try Store(directory.store, configuration)
  }

  @Test("Equal lengths are equal lifetimes, however they are written")
  func units() {
    #expect(Lifetime.seconds(86_400) == .after(.seconds(86_400)))
    #expect(Lifetime.milliseconds(86_400_000) == .days(1))
    #expect(Lifetime.minutes(1440) == .hours(24) && Lifetime.hours(24) == .days(1))
    #expect(Lifetime.seconds(0.5) == .milliseconds(500))
    #expect(Lifetime.seconds(UInt64(7)) == .seconds(Int8(7)))
    // These are rounded down, like all times.
    #expect(Lifetime.seconds(0.0019) == .milliseconds(1))
    #expect(Lifetime.seconds(-0.0011) == .milliseconds(-2))
    #expect(Lifetime.after(.microseconds(1999)) == .milliseconds(1))
    #expect(Lifetime.standard != .unlimited && Lifetime.seconds(0) != .standard)
    #expect(Lifetime.until(Timestamp(millisecondsSinceEpoch: 5)) != .milliseconds(5))
  }

  @Test("A length that is too long or too short to represent is clamped, and never traps")
  func extremes() {
    let longest = Lifetime.milliseconds(Int64.max)
    #expect(Lifetime.days(Int.max) == longest && Lifetime.seconds(UInt64.max) == longest)
    #expect(Lifetime.seconds(Double.infinity) == longest && Lifetime.seconds(1e300) == longest)
    #expect(Lifetime.after(.seconds(Int64.max)) == longest)
    let shortest = Lifetime.milliseconds(Int64.min)
    #expect(Lifetime.hours(Int.min) == shortest && Lifetime.minutes(Int.min) == shortest)
    #expect(Lifetime.seconds(-Double.infinity) == shortest)
    #expect(Lifetime.seconds(Double.nan) == .seconds(0))
  }

  /// Lifetimes, and when each ends for an entry written at the start of the clock.
  static let ends: [(Lifetime, Timestamp?)] = [
    (.standard, ManualClock.start.advanced(by: .seconds(100))),
    (.unlimited, nil),
    (.seconds(7), ManualClock.start.advanced(by: .seconds(7))),
    (
      .until(ManualClock.start.advanced(by: .seconds(9))),
      ManualClock.start.advanced(by: .seconds(9))
    ),
    (.days(Int.max), .distantFuture),
    (.until(.distantFuture), .distantFuture),
  ]

  @Test("Each form of write accepts each lifetime", arguments: ends)
  func writes(lifetime: Lifetime, end: Timestamp?) throws {
    try store.setValue("v", forKey: "set", lifetime: lifetime)
    _ = try store.compareAndSet(
      "v", forKey: "compared", expecting: nil, options: .lifetime(lifetime))
    try store.write { try $0.setValue("v", forKey: "in a batch", options: .lifetime(lifetime)) }
    for key in ["set", "compared", "in a batch"] {
      #expect(try #require(try store.info(forKey: key)).expires == end)
    }
  }

  @Test("Without a lifetime, the configured one applies")
  func standard() throws {
    try store.setValue("v", forKey: "key")
    clock.advance(by: .seconds(99))
    #expect(try store.contains("key"))
    clock.advance(by: .seconds(1))
    #expect(try !store.contains("key"))
  }

  @Test("An unlimited lifetime outlives the configured one, even after a reopen")
  func unlimited() throws {
    try store.setValue("v", forKey: "key", lifetime: .unlimited)
    try store.close()
    clock.advance(by: .seconds(1000))
    let store = try Store(directory.store, .small(clock: clock))
    #expect(try store.contains("key"))
  }

  @Test("If the end is not in the future, the entry has expired", arguments: [0, -1, -1000])
  func pastEnd(seconds: Int) throws {
    try store.setValue("old", forKey: "key")
    let end = ManualClock.start.advanced(by: .seconds(seconds))
    try store.setValue("new", forKey: "key", lifetime: .until(end))
    #expect(try store.value(forKey: "key") == nil)
    // If this thread had to wait for its turn, housekeeping may have removed the entry first.
    try store.trim(.expired)
    #expect(try store.statistics().count == 0)
  }

  @Test("An overwrite can keep the entry's end")
  func keptEnd() throws {
    try store.setValue("one", forKey: "key", lifetime: .seconds(10))
    clock.advance(by: .seconds(4))
    let info = try #require(try store.info(forKey: "key"))
    let end = try #require(info.expires)
    _ = try store.compareAndSet(
      "two", forKey: "key", expecting: info.version, options: .lifetime(.until(end)))
    #expect(try store.info(forKey: "key")?.expires == end)
    clock.advance(by: .seconds(6))
    #expect(try store.value(forKey: "key") == nil)
  }
}
