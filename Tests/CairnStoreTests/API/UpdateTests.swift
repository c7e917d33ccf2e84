import CairnStore
import FuzzSupport
import Testing

@Suite("Updates of values")
final class UpdateTests: OpenStoreSuite {
  private struct Refused: Error, Equatable { var number = 0 }

  @Test("The closure receives the current value, and its result is written")
  func updates() throws {
    let first = try #require(
      try store.update(forKey: "key") { value in
        #expect(value == nil)
        return [1]
      })
    #expect(first.value == [1])
    let second = try #require(
      try store.update(forKey: "key") { value in
        #expect(value == [1])
        return [2, 3]
      })
    #expect(second.version > first.version)
    #expect(try store.entry(forKey: "key")?.value == [2, 3])
    #expect(try store.info(forKey: "key")?.version == second.version)
    // An empty value is a value.
    #expect(try #require(try store.update(forKey: "key") { _ in [] }).value == [])
    #expect(try store.update(forKey: "key") { $0 } != nil)
  }

  @Test("Returning nil removes the value; for an absent key, nothing is written")
  func removes() throws {
    #expect(try store.update(forKey: "key") { _ in nil } == nil)
    #expect(try store.statistics().lastVersion == 0)
    try store.setValue("v", forKey: "key")
    #expect(try store.update(forKey: "key") { _ in nil } == nil)
    #expect(try !store.contains("key"))
    #expect(try store.statistics().lastVersion == 2)
  }

  @Test("Nothing is kept from an entry that was idle for too long")
  func keepsNothing() throws {
    let store = try Store(
      directory.store + " limited", .small(clock: clock) { $0.lifetime = .seconds(60) })
    try store.setValue(
      "v", forKey: "key", options: EntryOptions(lifetime: .days(365), idleLimit: .seconds(1)))
    clock.advance(by: .seconds(2))
    try store.update(forKey: "key") { value in
      #expect(value == nil)
      return [1]
    }
    #expect(
      try #require(try store.info(forKey: "key")).expires
        == clock.now().advanced(by: .seconds(60)))
  }

  @Test("Options that are not given stay unchanged")
  func keeps() throws {
    try store.setValue(
      "v", forKey: "key",
      options: EntryOptions(cost: 7, lifetime: .seconds(10), idleLimit: .seconds(8), metadata: [1]))
    let before = try #require(try store.info(forKey: "key"))
    clock.advance(by: .seconds(4))
    try store.update(forKey: "key") { _ in [9] }
    let after = try #require(try store.entry(forKey: "key"))
    #expect(after.info.cost == 7 && after.metadata == [1])
    #expect(after.info.expires == before.expires && after.info.idleLimit == .seconds(8))
    clock.advance(by: .seconds(6))
    #expect(try store.value(forKey: "key") == nil)
    // An expired entry has nothing to keep.
    try store.update(forKey: "key") { value in
      #expect(value == nil)
      return [9]
    }
    let new = try #require(try store.entry(forKey: "key"))
    #expect(new.info.expires == nil && new.info.idleLimit == nil && new.info.givenCost == nil)
    #expect(new.metadata == [])
  }

  @Test("Options that are given apply")
  func gives() throws {
    try store.setValue(
      "v", forKey: "key",
      options: EntryOptions(cost: 7, lifetime: .seconds(10), idleLimit: .seconds(8), metadata: [1]))
    try store.update(
      forKey: "key",
      options: EntryOptions(cost: 8, lifetime: .seconds(3), idleLimit: .seconds(2), metadata: [])
    ) { $0 }
    let entry = try #require(try store.entry(forKey: "key"))
    #expect(entry.info.cost == 8 && entry.metadata == [])
    #expect(entry.info.expires == ManualClock.start.advanced(by: .seconds(3)))
    #expect(entry.info.idleLimit == .seconds(2))
    try store.update(forKey: "key", options: .lifetime(.unlimited)) { $0 }
    #expect(try #require(try store.info(forKey: "key")).expires == nil)
  }

  @Test("Under a configured lifetime, an entry without an end keeps having none")
  func keepsNoEnd() throws {
    try store.setValue("v", forKey: "endless")
    try store.close()
    var configuration = StoreConfiguration.small(clock: clock)
    configuration.lifetime = .seconds(10)
    let store = try Store(directory.store, configuration)
    try store.update(forKey: "endless") { $0 }
    #expect(try #require(try store.info(forKey: "endless")).expires == nil)
    try store.update(forKey: "new") { _ in [1] }
    let end = try #require(try store.info(forKey: "new")).expires
    #expect(end == ManualClock.start.advanced(by: .seconds(10)))
  }

  @Test("Under a configured idle limit, an entry without a limit keeps having none")
  func keepsNoIdleLimit() throws {
    try store.setValue("v", forKey: "busy")
    try store.increment(forKey: "count")
    try store.close()
    var configuration = StoreConfiguration.small(clock: clock)
    configuration.idleLimit = .seconds(10)
    let store = try Store(directory.store, configuration)
    try store.update(forKey: "busy") { $0 }
    try store.increment(forKey: "count")
    try store.update(forKey: "new") { _ in [1] }
    #expect(try #require(try store.info(forKey: "busy")).idleLimit == nil)
    #expect(try #require(try store.info(forKey: "count")).idleLimit == nil)
    #expect(try #require(try store.info(forKey: "new")).idleLimit == .seconds(10))
    try store.update(forKey: "busy", options: .idleLimit(.seconds(5))) { $0 }
    #expect(try #require(try store.info(forKey: "busy")).idleLimit == .seconds(5))
  }

  @Test("If the lifetime is extended while the closure runs, the closure runs again")
  func extendedMeanwhile() throws {
    try store.setValue("v", forKey: "key", lifetime: .seconds(10))
    var calls = 0
    try store.update(forKey: "key") { value in
      calls += 1
      _ = try store.setLifetime(.seconds(100), forKey: "key")
      return value
    }
    #expect(calls == 2)
    let end = ManualClock.start.advanced(by: .seconds(100))
    #expect(try store.info(forKey: "key")?.expires == end)
    // A given lifetime still applies.
    try store.update(forKey: "key", options: .lifetime(.seconds(5))) { value in
      _ = try store.setLifetime(.seconds(200), forKey: "key")
      return value
    }
    #expect(try store.info(forKey: "key")?.expires == ManualClock.start.advanced(by: .seconds(5)))
  }

  @Test(
    "If another write comes in between, the update starts over with that value",
    arguments: ["set", "removed", "expired", "set where nothing was"])
  func repeats(kind: String) throws {
    if kind != "set where nothing was" {
      try store.setValue("1", forKey: "key", lifetime: .seconds(10))
    }
    var seen: [[UInt8]?] = []
    let updated = try store.update(forKey: "key") { value in
      seen.append(value)
      if seen.count == 1 {
        switch kind {
        case "removed": try store.removeValue(forKey: "key")
        case "expired": clock.advance(by: .seconds(10))
        default: try store.setValue("2", forKey: "key")
        }
      }
      return Array("3".utf8)
    }
    #expect(seen.count == 2)
    #expect(seen[1] == (kind.hasPrefix("set") ? Array("2".utf8) : nil))
    #expect(updated?.value == Array("3".utf8))
    #expect(try store.text("key") == "3")
  }

  @Test("A removal also starts over if another write comes in between")
  func repeatsRemoval() throws {
    try store.setValue("1", forKey: "key")
    var calls = 0
    try store.update(forKey: "key") { value in
      calls += 1
      if calls == 1 { try store.setValue("2", forKey: "key") }
      return value == Array("2".utf8) ? value : nil
    }
    #expect(calls == 2)
    #expect(try store.text("key") == "2")
  }

  @Test("The closure's error is thrown, and nothing is written")
  func throwing() throws {
    let version = try store.setValue("v", forKey: "key")
    #expect(throws: Refused(number: 3)) {
      try store.update(forKey: "key") { _ in throw Refused(number: 3) }
    }
    #expect(throws: Refused(number: 4)) {
      try store.update(forKey: "other") { _ in throw Refused(number: 4) }
    }
    #expect(try store.statistics().lastVersion == version)
  }

  @Test("A damaged value is an error, and the closure is not called")
  func damaged() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "the key")
    try scene.damage("the key")
    let error = storeError {
      do {
        try store.update(forKey: "the key") { _ in
          Issue.record("called")
          return [1]
        }
      } catch { throw try #require(error as? StoreError) }
    }
    #expect(error?.corruption != nil)
    #expect(try store.statistics().lastVersion == 1)
  }

  @Test("An invalid key, value or metadata is refused")
  func refused() throws {
    #expect(throws: StoreError.self) { try store.update(forKey: "") { _ in [1] } }
    #expect(throws: StoreError.self) {
      try store.update(forKey: "key", options: .metadata([UInt8](repeating: 0, count: 1 << 16))) {
        _ in [1]
      }
    }
    #expect(try store.statistics().lastVersion == 0)
  }

  @Test("Threads that count together lose no increment")
  func increments() throws {
    let store = store
    try onThreads(8) { _ in
      for _ in 0..<100 {
        try store.update(forKey: "key") { value in
          let count = value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
          return Array(String(count + 1).utf8)
        }
      }
    }
    #expect(try store.text("key") == "800")
  }
}
