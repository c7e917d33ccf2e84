import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Writes that return the old value, and reads that are not accesses")
struct ReplacedValueTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, .small(durability: .process) { [clock] in $0.clock = clock })
  }

  @Test("A write returns the value that it replaced, and keeps none of its options")
  func updateValue() throws {
    #expect(try store.updateValue("1", forKey: "a") == nil)
    #expect(try store.updateValue("2", forKey: "a", options: .lifetime(.seconds(10))) == [0x31])
    #expect(try store.info(forKey: "a")?.expires != nil)
    #expect(try store.updateValue("3", forKey: "a", durability: .durable) == [0x32])
    #expect(try store.info(forKey: "a")?.expires == nil)
    try store.setValue("4", forKey: "a", lifetime: .seconds(10))
    clock.advance(by: .seconds(10))
    #expect(try store.updateValue("", forKey: "a") == nil)
    #expect(try store.updateValue("5", forKey: "a") == [])
    #expect(
      throws: StoreError.invalidKey(
        reason: "it has 0 bytes; it must have 1 to 65535")
    ) {
      try store.updateValue("6", forKey: "")
    }
  }

  @Test("A taken value is gone, and an expired value is not returned")
  func takeValue() throws {
    try store.setValue("1", forKey: "a")
    #expect(try store.takeValue(forKey: "a") == [0x31])
    #expect(try store.takeValue(forKey: "a") == nil)
    try store.setValue("2", forKey: "a", lifetime: .seconds(10))
    #expect(try store.takeValue(forKey: "a", durability: .durable) == [0x32])
    try store.setValue("3", forKey: "a", lifetime: .seconds(10))
    clock.advance(by: .seconds(10))
    #expect(try store.takeValue(forKey: "a") == nil)
    #expect(try store.count() == 0)
  }

  @Test("The async forms do the same")
  func asyncForms() async throws {
    #expect(try await store.updateValue("1", forKey: "a") == nil)
    #expect(
      try await store.updateValue("2", forKey: "a", options: .cost(7), durability: .durable)
        == [0x31])
    #expect(try store.info(forKey: "a")?.cost == 7)
    #expect(try await store.takeValue(forKey: "a", durability: .durable) == [0x32])
    #expect(try await store.takeValue(forKey: "a") == nil)
    try await store.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.updateValue("3", forKey: "a")
    }
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.takeValue(forKey: "a")
    }
  }

  @Test("When threads write and take a key at once, each value goes to one of them")
  func threads() throws {
    let found = Mutex<[[UInt8]]>([])
    let threads = (0..<4).map { thread in
      Background { [store] in
        for step in 0..<200 {
          let old =
            step % 3 == 2
            ? try store.takeValue(forKey: "a")
            : try store.updateValue([UInt8(thread), UInt8(step)], forKey: "a")
          if let old { found.withLock { $0.append(old) } }
        }
      }
    }
    for thread in threads { #expect(thread.finishes(within: 60)) }
    var all = found.withLock { $0 }
    if let last = try store.value(forKey: "a") { all.append(last) }
    #expect(all.count == 4 * 134 && Set(all).count == all.count)
  }

  @Test("A peek leaves the order of use and the idle limit unchanged")
  func peeks() throws {
    for key in ["a", "b", "c"] { try store.setValue(key, forKey: key) }
    #expect(try store.peekValue(forKey: "a") == [0x61] && store.peekValue(forKey: "d") == nil)
    _ = try store.value(forKey: "b")
    try store.trim(toCount: 2)
    #expect(try !store.contains("a") && store.contains("b"))
    try store.setValue("v", forKey: "idle", options: .idleLimit(.seconds(100)))
    clock.advance(by: .seconds(60))
    #expect(try store.peekValue(forKey: "idle") == [0x76])
    clock.advance(by: .seconds(60))
    #expect(try store.peekValue(forKey: "idle") == nil)
  }

  @Test("A damaged value is an error, neither replaced nor taken; a plain write heals it")
  func damage() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "the key")
    try scene.damage("the key")
    let calls: [() throws -> [UInt8]?] = [
      { try store.peekValue(forKey: "the key") }, { try store.takeValue(forKey: "the key") },
      { try store.updateValue("v", forKey: "the key") },
    ]
    for call in calls {
      #expect(#expect(throws: StoreError.self) { try call() }?.corruption != nil)
    }
    try store.setValue("v", forKey: "the key")
    #expect(try store.takeValue(forKey: "the key") == [0x76])
  }
}
