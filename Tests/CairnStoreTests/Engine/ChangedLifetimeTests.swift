import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Synchronization
import Testing

@Suite("Changed lifetimes")
final class ChangedLifetimeTests: StoreSuite {
  // MARK: What a call does

  @Test("The entry lives this long from now on, with the same value and attributes")
  func sets() throws {
    let store = try makeStore()
    let version = try store.setValue(
      "v", forKey: "key",
      options: EntryOptions(
        cost: 5, lifetime: .seconds(10), idleLimit: .seconds(90), metadata: [1]))
    clock.advance(by: .seconds(9))
    let before = try #require(try store.entry(forKey: "key"))
    #expect(try store.setLifetime(.seconds(10), forKey: "key"))
    var after = try #require(try store.entry(forKey: "key"))
    #expect(after.info.version > version)
    #expect(try end(store, "key") == 19)
    #expect(after.info.written == before.info.written.advanced(by: .seconds(9)))
    after.info = before.info
    #expect(after == before)
    let info = try #require(try store.info(forKey: "key"))
    #expect(info.cost == 5 && info.idleLimit == .seconds(90) && info.metadataByteCount == 1)
    clock.advance(by: .milliseconds(9999))
    #expect(try store.text("key") == "v")
    #expect(try store.count() == 1)
    clock.advance(by: .milliseconds(1))
    #expect(try store.text("key") == nil)
    #expect(try store.contents() == [:])
    #expect(try store.count() == 0)
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.statistics().liveByteCount == 0)
    #expect(try store.auditUsage() == [])
  }

  @Test("If nothing would change, nothing is written")
  func writesNothing() throws {
    let store = try makeStore()
    try store.setValue("v", forKey: "endless")
    try store.setValue("v", forKey: "long", lifetime: .seconds(100))
    try store.setValue("v", forKey: "short", lifetime: .seconds(1))
    try store.setValue("v", forKey: "idle", options: .idleLimit(.seconds(50)))
    let hundred = clock.now().advanced(by: .seconds(100))
    clock.advance(by: .seconds(2))
    let last = try store.statistics().lastVersion
    #expect(try store.setLifetime(.unlimited, forKey: "endless"))
    #expect(try store.setLifetime(.standard, forKey: "endless"))
    #expect(try end(store, "endless") == nil)
    #expect(try store.setLifetime(.seconds(98), forKey: "long"))
    #expect(try store.setLifetime(.until(hundred), forKey: "long"))
    #expect(try end(store, "long") == 100)
    #expect(try store.setLifetime(.unlimited, forKey: "idle"))
    #expect(try store.setLifetime(.seconds(5), forKey: "short") == false)
    #expect(try store.setLifetime(.seconds(5), forKey: "absent") == false)
    #expect(try store.statistics().lastVersion == last)
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.setLifetime(.seconds(5), forKey: "")
    }
  }

  @Test("A lifetime becomes shorter, begins and ends too; it may end at once")
  func shortens() throws {
    let store = try makeStore { $0.lifetime = .seconds(60) }
    try store.setValue("v", forKey: "key", lifetime: .unlimited)
    for (lifetime, expected) in [
      (Lifetime.seconds(50), 50), (.seconds(5), 5), (.standard, 60), (.unlimited, nil),
      (.seconds(8), 8),
    ] as [(Lifetime, Int64?)] {
      #expect(try store.setLifetime(lifetime, forKey: "key"))
      #expect(try end(store, "key") == expected)
    }
    #expect(try reopenedAfterKill("killed").text("key") == "v")
    #expect(try store.setLifetime(.seconds(0), forKey: "key"))
    #expect(try store.text("key") == nil)
    #expect(try store.setLifetime(.seconds(9), forKey: "key") == false)
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.auditUsage() == [])
  }

  @Test("Lifetimes of many keys, only some of them present")
  func manyKeys() throws {
    let store = try makeStore()
    for number in 0..<10 {
      try store.setValue("v", forKey: "key\(number)", lifetime: .seconds(Int64(10 + number)))
    }
    try store.setValue("v", forKey: "endless")
    let keys = (5..<15).map { "key\($0)" } + ["endless"]
    let there = try keys.filter {
      try store.setLifetime(.seconds(17), forKey: $0, durability: .durable)
    }
    #expect(there.count == 6)
    for number in 0..<10 {
      let expected = number < 5 ? 10 + number : 17
      #expect(try end(store, "key\(number)") == Int64(expected))
    }
  }

  @Test("A lifetime applies to the current value, not to a later one")
  func otherValue() throws {
    let store = try makeStore()
    for key in ["overwritten", "removed", "batch"] {
      try store.setValue("v", forKey: key, lifetime: .seconds(10))
      #expect(try store.setLifetime(.seconds(100), forKey: key))
    }
    try store.setValue("w", forKey: "overwritten", lifetime: .seconds(20))
    try store.removeValue(forKey: "removed")
    try store.setValue("w", forKey: "removed", lifetime: .seconds(30))
    try store.write { batch in
      try batch.setValue("w", forKey: "batch", options: .lifetime(.seconds(40)))
    }
    func check(_ store: Store) throws {
      #expect(try end(store, "overwritten") == 20)
      #expect(try end(store, "removed") == 30)
      #expect(try end(store, "batch") == 40)
      #expect(try store.auditUsage() == [])
    }
    try check(store)
    try check(reopenedAfterKill("killed"))
    try store.close()
    try check(makeStore())
  }

  @Test("A removal of expired entries uses the later end")
  func removalOfExpired() throws {
    let store = try makeStore()
    try store.setValue("v", forKey: "a", lifetime: .seconds(10))
    try store.setValue("v", forKey: "b", lifetime: .seconds(10))
    try store.setLifetime(.seconds(20), forKey: "a")
    clock.advance(by: .seconds(15))
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.contents().keys.sorted() == ["a"])
    clock.advance(by: .seconds(5))
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.statistics().count == 0)
  }

  @Test("An entry that was idle for too long goes, however late its lifetime ends")
  func idleLimit() throws {
    // The entry's end was taken for one set in between, so every removal spared the entry.
    let store = try makeStore()
    try store.setValue(
      "v", forKey: "key", options: EntryOptions(lifetime: .seconds(100), idleLimit: .seconds(10)))
    #expect(try store.setLifetime(.seconds(1000), forKey: "key"))
    clock.advance(by: .seconds(20))
    #expect(try store.setLifetime(.seconds(2000), forKey: "key") == false)
    #expect(try store.count() == 0)
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.statistics().count == 0)
    #expect(try store.auditUsage() == [])
  }

  @Test("An entry that was found expired but then lives longer stays")
  func extendedInTheCourseOfARemoval() throws {
    let system = FaultyFileSystem()
    let rewound = RewoundClock(clock: self.clock, origin: self.clock.now())
    let store = try Store(
      directory.store,
      .small {
        $0.clock = rewound
        $0.mapsFiles = false
      }, fileSystem: system, background: queue)
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    try store.setLifetime(.seconds(15), forKey: "key")
    let clock = self.clock
    clock.advance(by: .seconds(20))
    let reads = Mutex(0)
    system.setHook { event in
      // When its tombstone is made.
      let isNow = reads.withLock {
        $0 += 1
        return $0 == 1
      }
      guard event.call == .read, isNow else { return nil }
      // Another thread read its clock before this one.
      clock.advance(by: .seconds(-15))
      do { #expect(try store.setLifetime(.seconds(100), forKey: "key")) } catch {
        Issue.record(error)
      }
      clock.advance(by: .seconds(15))
      return nil
    }
    #expect(try store.trim(.expired).count == 0)
    system.setHook(nil)
    #expect(reads.withLock { $0 } > 1)
    #expect(try end(store, "key") == 105)
  }

  @Test(
    "A value that is written while the call reads the old one stays", arguments: [1, 2])
  func overtaken(read: Int) throws {
    let system = FaultyFileSystem()
    let store = try Store(
      directory.store,
      .small {
        $0.clock = clock
        $0.mapsFiles = false
      }, fileSystem: system, background: queue)
    try store.setValue("old", forKey: "key", lifetime: .seconds(10))
    let reads = Mutex(0)
    system.setHook { event in
      // The first read is of the head, the second of the value.
      let isNow = reads.withLock {
        $0 += event.call == .read ? 1 : 0
        return event.call == .read && $0 == read
      }
      if isNow { _ = try? store.setValue("new", forKey: "key") }
      return nil
    }
    #expect(try store.setLifetime(.seconds(100), forKey: "key"))
    system.setHook(nil)
    #expect(reads.withLock { $0 } >= read)
    #expect(try store.text("key") == "new")
  }

  @Test("A snapshot shows the ends of its moment, whatever comes after")
  func snapshot() throws {
    let store = try makeStore()
    for key in ["a", "b"] { try store.setValue("v", forKey: key, lifetime: .seconds(10)) }
    try store.setLifetime(.seconds(50), forKey: "a")
    clock.advance(by: .seconds(5))
    let snapshot = try store.snapshot()
    defer { snapshot.close() }
    let ends = try ["a", "b"].map { try snapshot.info(forKey: $0)?.expires }
    try store.setLifetime(.seconds(500), forKey: "a")
    try store.setLifetime(.seconds(500), forKey: "b")
    try store.removeValue(forKey: "a")
    #expect(try ["a", "b"].map { try snapshot.info(forKey: $0)?.expires } == ends)
    clock.advance(by: .seconds(20))
    let later = try store.snapshot()
    defer { later.close() }
    #expect(try later.count() == 1)
    var seen: [Timestamp?] = []
    try later.forEachEntry {
      seen.append($0.info.expires)
      return .next
    }
    #expect(seen == [try store.info(forKey: "b")?.expires])
    #expect(try snapshot.count() == 2)
  }

  // MARK: Limits

  @Test("No lifetime is too long or too short", arguments: [true, false])
  func extremes(isClosed: Bool) throws {
    var store = try makeStore()
    for key in ["longest", "endless"] {
      try store.setValue("v", forKey: key, lifetime: .seconds(9))
    }
    let longest = Duration(
      secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999)
    #expect(try store.setLifetime(.seconds(Int64.max / 1000), forKey: "longest"))
    #expect(try store.setLifetime(.after(longest), forKey: "endless"))
    let shortest = Duration(secondsComponent: .min, attosecondsComponent: 0)
    try store.setValue("v", forKey: "shortest")
    #expect(try store.setLifetime(.after(shortest), forKey: "shortest"))
    #expect(try store.trim(.expired).count == 1)
    #expect(try store.info(forKey: "endless")?.expires?.millisecondsSinceEpoch == .max)
    let last = try store.statistics().lastVersion
    #expect(try store.setLifetime(.after(longest), forKey: "endless"))
    #expect(try store.statistics().lastVersion == last)
    let ends = try store.ends()
    if isClosed {
      try store.close()
      store = try makeStore()
    } else {
      try Image(of: directory.store).write(to: directory("killed"))
      store = try Store(directory("killed"), .small(clock: clock), background: queue)
    }
    #expect(try store.ends() == ends)
    #expect(try store.trim(.expired).count == 0)
    clock.advance(by: .seconds(1 << 40))
    #expect(try store.count() == 2)
    try store.compact()
    #expect(try store.ends() == ends)
    #expect(try store.auditUsage() == [])
  }

  @Test("Lifetimes set forever keep space within its bound")
  func forEver() throws {
    let store = try makeStore {
      $0.deadByteFloor = 0
      $0.spaceBound = 1.5
    }
    for number in 0..<100 {
      try store.setValue(
        [UInt8](repeating: 7, count: 2000), forKey: "key\(number)", lifetime: .seconds(100))
    }
    for _ in 0..<400 {
      clock.advance(by: .milliseconds(500))
      for number in 0..<100 {
        try store.setLifetime(.seconds(100), forKey: "key\(number)")
      }
      queue.runAll()
    }
    let statistics = try store.statistics()
    #expect(try store.count() == 100)
    #expect(statistics.allocatedByteCount < 4 * 200_000)
    #expect(try store.auditUsage() == [])
    let ends = try store.ends()
    #expect(try reopenedAfterKill("killed").ends() == ends)
  }

  @Test("A store without an idle limit of its own keeps it, whatever the configuration says")
  func neverIdle() throws {
    let old = try makeStore()
    try old.setValue("v", forKey: "key", lifetime: .seconds(100))
    try old.close()
    let store = try makeStore { $0.idleLimit = .seconds(10) }
    try store.setLifetime(.seconds(1000), forKey: "key")
    clock.advance(by: .seconds(20))
    #expect(try store.text("key") == "v")
    #expect(try store.info(forKey: "key")?.idleLimit == nil)
  }

  @Test("A new lifetime tells the observer that it replaced the value")
  func observed() throws {
    let events = Mutex<[String]>([])
    let store = try makeStore {
      $0.byteLimit = 2000
      $0.removalObserver = { event in
        guard case .entry(let key, _, let cause) = event else { return }
        events.withLock { $0.append("\(String(decoding: key, as: UTF8.self)) \(cause)") }
      }
    }
    let value = [UInt8](repeating: 7, count: 500)
    for number in 0..<3 {
      try store.setValue(value, forKey: "\(number)", lifetime: .seconds(100))
    }
    for number in 0..<3 { try store.setLifetime(.seconds(200), forKey: "\(number)") }
    #expect(events.withLock { $0 } == (0..<3).map { "\($0) replaced" })
  }

  @Test("A damaged value is not written again")
  func damaged() throws {
    let store = try makeStore()
    try store.setValue("a value to damage", forKey: "key", lifetime: .seconds(10))
    try store.close()
    let image = try Image(of: directory.store)
    let name = try #require(image.segmentNames.first)
    let record = try #require(try image.records(in: name).first)
    try image.flipping(name, at: record.offset + record.header.valueRange.lowerBound)
      .write(to: directory("damaged"))
    let damaged = try Store(directory("damaged"), .small(clock: clock), background: queue)
    #expect(throws: StoreError.self) {
      try damaged.setLifetime(.seconds(100), forKey: "key")
    }
    #expect(try end(damaged, "key") == 10)
  }
}

/// A clock whose elapsed time goes back too, as can happen when several threads read one.
private struct RewoundClock: WallClock {
  let clock: ManualClock
  let origin: Timestamp

  func now() -> Timestamp { clock.now() }

  func elapsed() -> Duration? {
    .milliseconds(clock.now().millisecondsSinceEpoch - origin.millisecondsSinceEpoch)
  }
}
