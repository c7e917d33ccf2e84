import CairnStore
import FuzzSupport
import Testing

@Suite("Entries")
final class EntryTests: OpenStoreSuite {
  @Test("A store keeps no tags")
  func tags() throws {
    let options = EntryOptions(tags: ["x"])
    #expect(throws: StoreError.unsupportedOption(name: "tags")) {
      try store.setValue("1", forKey: "a", options: options)
    }
    #expect(throws: StoreError.unsupportedOption(name: "tags")) {
      try store.write { try $0.setValue("1", forKey: "a", options: options) }
    }
    #expect(try store.count() == 0)
  }

  @Test(
    "Every attribute is returned by entry and info, even after a reopen",
    arguments: [false, true])
  func attributes(reopened: Bool) throws {
    let version = try store.setValue(
      "value", forKey: "key",
      options: EntryOptions(
        cost: 77, lifetime: .milliseconds(60_250), idleLimit: .milliseconds(30_125),
        metadata: [1, 2, 3]))
    var store = store
    if reopened {
      try store.close()
      store = try Store(directory.store, .small(clock: clock))
    }
    let entry = try #require(try store.entry(forKey: "key"))
    #expect(entry.key == Array("key".utf8))
    #expect(entry.value == Array("value".utf8))
    #expect(entry.metadata == [1, 2, 3])
    #expect(entry.info.version == version)
    #expect(entry.info.valueByteCount == 5)
    #expect(entry.info.written == ManualClock.start)
    #expect(entry.info.accessed == ManualClock.start)
    #expect(entry.info.expires == ManualClock.start.advanced(by: .milliseconds(60_250)))
    #expect(entry.info.idleLimit == .milliseconds(30_125))
    #expect(entry.info.cost == 77)
    #expect(entry.info.metadataByteCount == 3)
    #expect(try store.info(forKey: "key") == entry.info)
  }

  @Test("Attributes that were not given are absent")
  func noAttributes() throws {
    try store.setValue("value", forKey: "key")
    let entry = try #require(try store.entry(forKey: "key"))
    #expect(entry.info.expires == nil)
    #expect(entry.info.idleLimit == nil)
    #expect(entry.info.givenCost == nil)
    #expect(entry.metadata == [])
  }

  @Test("A cost of 0 and the largest cost are returned unchanged", arguments: [0, 1, Int.max])
  func costs(cost: Int) throws {
    try store.setValue("value", forKey: "key", options: .cost(cost))
    #expect(try store.info(forKey: "key")?.cost == cost)
  }

  @Test("A cost below 0 counts as 0, in every write", arguments: [-1, Int.min])
  func negativeCost(cost: Int) throws {
    try store.setValue("value", forKey: "set", options: .cost(cost))
    _ = try store.compareAndSet("value", forKey: "compared", expecting: nil, options: .cost(cost))
    try store.write { try $0.setValue("value", forKey: "in a batch", options: .cost(cost)) }
    for key in ["set", "compared", "in a batch"] {
      #expect(try store.info(forKey: key)?.cost == 0)
    }
  }

  @Test("The time of writing is the clock's, to the second")
  func written() throws {
    clock.advance(by: .milliseconds(12_999))
    try store.setValue("value", forKey: "key")
    #expect(
      try store.info(forKey: "key")?.written == ManualClock.start.advanced(by: .seconds(12)))
  }

  @Test("A read changes the time of access; info and contains do not")
  func accessed() throws {
    try store.setValue("value", forKey: "key")
    clock.advance(by: .seconds(100))
    _ = try store.info(forKey: "key")
    _ = try store.contains("key")
    try store.forEachKey { _ in .next }
    #expect(try store.info(forKey: "key")?.accessed == ManualClock.start)
    _ = try store.value(forKey: "key")
    #expect(
      try store.info(forKey: "key")?.accessed == ManualClock.start.advanced(by: .seconds(100)))
  }

  @Test("Versions grow with every write, across opens, and identify the write")
  func versions() throws {
    var last: UInt64 = 0
    var store = store
    for round in 0..<3 {
      for number in 0..<5 {
        let version = try store.setValue("\(round)", forKey: "key\(number)")
        #expect(version > last)
        #expect(try store.info(forKey: "key\(number)")?.version == version)
        last = version
      }
      if round == 1 { try store.removeAll() }
      try store.close()
      store = try Store(directory.store, .small(clock: clock))
    }
  }
}
