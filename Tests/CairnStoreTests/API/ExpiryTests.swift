import CairnStore
import FuzzSupport
import Testing

@Suite("Expiry")
final class ExpiryTests: OpenStoreSuite {
  @Test("A value lives until the millisecond of its end and no longer")
  func lifetime() throws {
    try store.setValue("v", forKey: "key", lifetime: .milliseconds(5000))
    clock.advance(by: .milliseconds(4999))
    #expect(try store.text("key") == "v")
    clock.advance(by: .milliseconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test("Reading does not prolong a lifetime")
  func readsDoNotProlong() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    for _ in 0..<9 {
      clock.advance(by: .seconds(1))
      #expect(try store.text("key") == "v")
    }
    clock.advance(by: .seconds(1))
    #expect(try store.text("key") == nil)
  }

  @Test("An expired value is a miss in every form of reading")
  func miss() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(1))
    try store.setValue("v", forKey: "other")
    clock.advance(by: .seconds(2))
    #expect(try store.value(forKey: "key") == nil)
    #expect(try store.entry(forKey: "key") == nil)
    #expect(try store.info(forKey: "key") == nil)
    #expect(try store.contains("key") == false)
    #expect(try store.withValue(forKey: "key") { _ in 1 } == nil)
    #expect(try store.values(forKeys: ["key"]) == [nil])
    #expect(try store.contents().keys.sorted() == ["other"])
    var keys = 0
    try store.forEachKey { _ in
      keys += 1
      return .next
    }
    #expect(keys == 1)
    #expect(try store.count() == 1)
    #expect(try store.removeValue(forKey: "key") == false)
    #expect(try store.removeValues(forKeys: ["key"]) == 0)
  }

  @Test("An expired value counts as absent for compare-and-set")
  func compareAndSet() throws {
    let version = try store.setValue("v", forKey: "key", lifetime: .seconds(1))
    clock.advance(by: .seconds(2))
    #expect(
      try store.compareAndSet("w", forKey: "key", expecting: version) == .mismatch(current: nil))
    #expect(try store.compareAndRemove(forKey: "key", expecting: version) == false)
    guard case .stored = try store.compareAndSet("w", forKey: "key", expecting: nil) else {
      Issue.record("not stored")
      return
    }
    #expect(try store.text("key") == "w")
  }

  @Test(
    "With a lifetime of zero or less, a value expires at once",
    arguments: [Duration.zero, .milliseconds(-1), .seconds(-1_000_000), .seconds(Int64.min)])
  func noLifetime(lifetime: Duration) throws {
    try store.setValue("v", forKey: "key", lifetime: .after(lifetime))
    #expect(try store.text("key") == nil)
    #expect(try store.count() == 0)
  }

  @Test("With an idle limit of zero or less, a value expires at once")
  func noIdleLimit() throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.zero))
    try store.setValue("v", forKey: "other", options: .idleLimit(.seconds(-5)))
    #expect(try store.text("key") == nil)
    #expect(try store.text("other") == nil)
  }

  @Test("The longest lifetime and idle limit never end")
  func longest() throws {
    let longest = Duration.seconds(Int64.max)
    try store.setValue(
      "v", forKey: "key", options: EntryOptions(lifetime: .after(longest), idleLimit: longest))
    clock.set(Timestamp(millisecondsSinceEpoch: 4_000_000_000_000))
    #expect(try store.text("key") == "v")
    #expect(try store.info(forKey: "key")?.expires == .distantFuture)
  }

  @Test("An overwrite with another lifetime replaces the first lifetime")
  func overwritten() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(1))
    try store.setValue("w", forKey: "key")
    clock.advance(by: .seconds(100))
    #expect(try store.text("key") == "w")
    try store.setValue("x", forKey: "key", lifetime: .seconds(1))
    clock.advance(by: .seconds(1))
    #expect(try store.text("key") == nil)
    #expect(try store.count() == 0)
  }

  @Test("An expired value does not make an older one reappear")
  func older() throws {
    try store.setValue("old", forKey: "key")
    try store.setValue("new", forKey: "key", lifetime: .seconds(1))
    clock.advance(by: .seconds(2))
    #expect(try store.text("key") == nil)
    try store.close()
    #expect(try Store(directory.store, .small(clock: clock)).text("key") == nil)
  }

  @Test("A lifetime continues while the store is closed")
  func reopened() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    try store.close()
    clock.advance(by: .seconds(9))
    let second = try Store(directory.store, .small(clock: clock))
    #expect(try second.text("key") == "v")
    #expect(try second.count() == 1)
    try second.close()
    clock.advance(by: .seconds(1))
    let third = try Store(directory.store, .small(clock: clock))
    #expect(try third.text("key") == nil)
    #expect(try third.count() == 0)
  }

  // MARK: Idle limits

  @Test("Without a read, a value is gone when its idle limit has passed")
  func idle() throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.seconds(100)))
    clock.advance(by: .seconds(98))
    #expect(try store.contains("key"))
    // The time of an access is accurate to a second or to a hundredth of its age.
    clock.advance(by: .seconds(4))
    #expect(try store.text("key") == nil)
  }

  @Test("A read prolongs the idle time", arguments: ["value", "entry", "withValue", "values"])
  func readProlongs(form: String) throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.seconds(100)))
    for _ in 0..<5 {
      clock.advance(by: .seconds(60))
      switch form {
      case "value": #expect(try store.value(forKey: "key") != nil)
      case "entry": #expect(try store.entry(forKey: "key") != nil)
      case "withValue": #expect(try store.withValue(forKey: "key") { _ in 1 } == 1)
      default: #expect(try store.values(forKeys: ["key"])[0] != nil)
      }
    }
  }

  @Test(
    "A call that is not an access does not prolong the idle time",
    arguments: ["contains", "info", "keys", "entries", "count"])
  func othersDoNot(form: String) throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.seconds(100)))
    clock.advance(by: .seconds(60))
    switch form {
    case "contains": #expect(try store.contains("key"))
    case "info": #expect(try store.info(forKey: "key") != nil)
    case "keys": try store.forEachKey { _ in .next }
    case "entries": try store.forEachEntry { _ in .next }
    default: #expect(try store.count() == 1)
    }
    clock.advance(by: .seconds(42))
    #expect(try store.contains("key") == false)
  }

  @Test("A read of an expired value does not revive it")
  func readAfterEnd() throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.seconds(10)))
    clock.advance(by: .seconds(12))
    #expect(try store.text("key") == nil)
    #expect(try store.text("key") == nil)
    #expect(try store.contains("key") == false)
  }

  @Test("Opening a store counts as a read of every value")
  func openingProlongs() throws {
    try store.setValue("v", forKey: "key", options: .idleLimit(.seconds(100)))
    try store.close()
    clock.advance(by: .seconds(1000))
    let second = try Store(directory.store, .small(clock: clock))
    #expect(try second.contains("key"))
    clock.advance(by: .seconds(102))
    #expect(try second.contains("key") == false)
  }

  @Test("A value with an idle limit exists right after it was written")
  func shortIdleLimit() throws {
    try store.setValue("other", forKey: "other")
    clock.advance(by: .milliseconds(990))
    try store.setValue("v", forKey: "key", options: .idleLimit(.milliseconds(500)))
    #expect(try store.text("key") == "v")
  }

  // MARK: Clocks

  @Test("A clock that goes back by less than a day prolongs no lifetime")
  func clockBack() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    clock.advance(by: .seconds(60))
    try store.setValue("w", forKey: "other")
    try store.close()
    clock.advance(by: .seconds(-59))
    let second = try Store(directory.store, .small(clock: clock))
    #expect(try second.text("key") == nil)
    #expect(try second.statistics().recovery.clockWentBack == false)
  }

  @Test("A recorded time more than a day ahead is not believed, and this is reported")
  func clockFarBack() throws {
    clock.advance(by: .seconds(90_000))
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    try store.close()
    clock.set(ManualClock.start)
    let second = try Store(directory.store, .small(clock: clock))
    #expect(try second.statistics().recovery.clockWentBack)
    try second.setValue("w", forKey: "new", lifetime: .seconds(10))
    #expect(try second.text("new") == "w")
    clock.advance(by: .seconds(10))
    #expect(try second.text("new") == nil)
  }
}
