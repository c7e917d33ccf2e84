import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Taken values, and reads that are not accesses")
struct TakenValueTests {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, .small(durability: .process) { [clock] in $0.clock = clock })
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
    try await store.setValue("2", forKey: "a")
    #expect(try await store.takeValue(forKey: "a", durability: .durable) == [0x32])
    #expect(try await store.takeValue(forKey: "a") == nil)
    try await store.close()
    await #expect(throws: StoreError.closed(path: directory.store)) {
      try await store.takeValue(forKey: "a")
    }
  }

  @Test("When threads write and take keys at once, each value goes to one of them")
  func threads() throws {
    let found = Mutex<[[UInt8]]>([])
    let threads = (0..<4).map { thread in
      Background { [store] in
        for step in 0..<200 {
          try store.setValue([UInt8(thread), UInt8(step)], forKey: "\(thread) \(step)")
          for other in 0..<4 {
            let taken = try store.takeValue(forKey: "\(other) \(step)")
            if let taken { found.withLock { $0.append(taken) } }
          }
        }
      }
    }
    for thread in threads { #expect(thread.finishes(within: 60)) }
    var all = found.withLock { $0 }
    for key in try store.keys() { all += try store.takeValue(forKey: key).map { [$0] } ?? [] }
    #expect(all.count == 4 * 200 && Set(all).count == all.count)
  }

  @Test("A peek leaves the order of use and the idle limit unchanged")
  func peeks() throws {
    for key in ["a", "b", "c"] { try store.setValue(key, forKey: key) }
    #expect(try store.peekValue(forKey: "a") == [0x61] && store.peekValue(forKey: "d") == nil)
    _ = try store.value(forKey: "b")
    try store.trim(.toCount(2))
    #expect(try !store.contains("a") && store.contains("b"))
    try store.setValue("v", forKey: "idle", options: .idleLimit(.seconds(100)))
    clock.advance(by: .seconds(60))
    #expect(try store.peekValue(forKey: "idle") == [0x76])
    clock.advance(by: .seconds(60))
    #expect(try store.peekValue(forKey: "idle") == nil)
  }

  @Test("A damaged value is an error, not taken; a plain write heals it")
  func damage() throws {
    let scene = try StoreScene()
    let store = try scene.open()
    try store.setValue("value", forKey: "the key")
    try scene.damage("the key")
    let calls: [() throws -> [UInt8]?] = [
      { try store.peekValue(forKey: "the key") }, { try store.takeValue(forKey: "the key") },
    ]
    for call in calls {
      #expect(#expect(throws: StoreError.self) { try call() }?.corruption != nil)
    }
    try store.setValue("v", forKey: "the key")
    #expect(try store.takeValue(forKey: "the key") == [0x76])
  }
}
