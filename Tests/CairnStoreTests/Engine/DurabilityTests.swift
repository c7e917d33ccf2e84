import CairnStore
import FuzzSupport
import Testing

@Suite("Durability")
struct DurabilityTests {
  let directory: TemporaryDirectory
  let system = FaultyFileSystem()
  let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  func open(_ durability: Durability = .process) throws -> Store {
    let store = try Store(
      directory.store, .small(durability: durability), fileSystem: system, background: queue)
    // The first write makes a segment, which has its own syncs.
    try store.setValue("v", forKey: "first", durability: .process)
    system.arm(nil)
    return store
  }

  @Test("A write of class process makes no system call")
  func process() throws {
    let store = try open()
    for number in 0..<50 { try store.setValue("v", forKey: "key\(number)") }
    #expect(system.counts == [:])
  }

  @Test("A durable write syncs before it returns, whatever the store's class")
  func durable() throws {
    let store = try open()
    try store.setValue("v", forKey: "key", durability: .durable)
    #expect(system.count(of: .synchronizeData) == 1)
    try store.removeValue(forKey: "key", durability: .durable)
    #expect(system.count(of: .synchronizeData) == 2)
    try store.write(durability: .durable) { try $0.setValue("v", forKey: "key") }
    #expect(system.count(of: .synchronizeData) == 3)
  }

  @Test("A durable removal that finds nothing makes the earlier removal durable")
  func durableAbsence() throws {
    let store = try open()
    try store.setValue("v", forKey: "key", durability: .durable)
    var syncs = system.count(of: .synchronizeData)
    func isSynced() -> Bool {
      defer { syncs = system.count(of: .synchronizeData) }
      return system.count(of: .synchronizeData) == syncs + 1
    }
    let removals: [() throws -> Int] = [
      { try store.removeValue(forKey: "key", durability: .durable) ? 1 : 0 },
      { try store.removeValues(forKeys: ["key"], durability: .durable) },
      {
        try store.write(durability: .durable) { _ in }
        return 0
      },
      { try store.trim(.toCount(10), durability: .durable).count },
    ]
    for removal in removals {
      try store.setValue("v", forKey: "key")
      try store.removeValue(forKey: "key")
      #expect(try removal() == 0)
      #expect(isSynced())
      // One sync is enough.
      #expect(try removal() == 0)
      #expect(!isSynced())
    }
    // A batch records each removal, even of an absent key.
    try store.setValue("v", forKey: "key")
    try store.removeValue(forKey: "key")
    try store.write(durability: .durable) { try $0.removeValue(forKey: "key") }
    #expect(isSynced())
    try store.setValue("v", forKey: "key")
    try store.removeValue(forKey: "absent")
    try store.removeValues(forKeys: ["absent"])
    try store.write { _ in }
    #expect(!isSynced())
  }

  @Test("In a durable store, a write syncs unless it requests less")
  func durableStore() throws {
    let store = try open(.durable)
    try store.setValue("v", forKey: "key")
    #expect(system.count(of: .synchronizeData) == 1)
    try store.setValue("v", forKey: "key", durability: .process)
    #expect(system.count(of: .synchronizeData) == 1)
  }

  @Test("A durable write also waits for the segment before its own")
  func durableAcrossSegments() throws {
    let store = try open()
    for number in 0..<100 {
      try store.setValue([UInt8](repeating: 1, count: 1000), forKey: "key\(number)")
    }
    #expect(try store.statistics().segmentCount == 2)
    system.arm(nil)
    try store.setValue("v", forKey: "key", durability: .durable)
    #expect(system.count(of: .synchronizeData) == 2)
  }

  @Test("A sync syncs everything written, and nothing if nothing was")
  func sync() throws {
    let store = try open()
    try store.sync()
    #expect(system.count(of: .synchronizeData) == 1)
    try store.sync()
    #expect(system.count(of: .synchronizeData) == 1)
    try store.setValue("v", forKey: "key")
    try store.sync()
    #expect(system.count(of: .synchronizeData) == 2)
  }

  @Test("A write of class interval is synced in the background, within the interval")
  func interval() throws {
    let store = try open(.interval(.milliseconds(200)))
    try store.setValue("v", forKey: "key")
    try store.setValue("v", forKey: "key")
    #expect(system.count(of: .synchronizeData) == 0)
    #expect(queue.delays.filter { $0 > .zero && $0 < .seconds(60) } == [.milliseconds(200)])
    queue.runAll()
    #expect(system.count(of: .synchronizeData) == 1)
    try store.setValue("v", forKey: "key")
    #expect(queue.delays.filter { $0 < .seconds(60) } == [.milliseconds(200)])
  }

  @Test("A shorter interval is kept although a longer one is already waiting")
  func shorterInterval() throws {
    let store = try open()
    try store.setValue("v", forKey: "key", durability: .interval(.seconds(3600)))
    try store.setValue("v", forKey: "key", durability: .interval(.milliseconds(10)))
    queue.runAll(dueAfter: .milliseconds(10))
    #expect(system.count(of: .synchronizeData) == 1)
    _ = store
    queue.discardAll()
  }

  @Test("An interval of zero or less requests a sync at once, but does not wait for it")
  func noInterval() throws {
    let store = try open()
    for (number, interval) in [Duration.zero, .seconds(-1), .seconds(Int64.min)].enumerated() {
      try store.setValue("v", forKey: "key", durability: .interval(interval))
      #expect(system.count(of: .synchronizeData) == number)
      queue.runAll(dueAfter: .zero)
      #expect(system.count(of: .synchronizeData) == number + 1)
    }
    try store.close()
  }

  @Test("A close syncs what was written")
  func close() throws {
    let store = try open()
    try store.setValue("v", forKey: "key")
    try store.close()
    #expect(system.count(of: .synchronizeData) == 1)
  }

  @Test("Sixteen threads that write durably at once share their syncs")
  func groupCommit() throws {
    let store = try open(.durable)
    let before = try store.statistics().lastVersion
    let gate = Gate()
    system.setWatch { if $0 == .synchronizeData { gate.passOnce() } }
    // One thread is held up in its sync, which is for its own write alone, until the others have
    // appended. If all began at once, they could all append before the first sync and share that
    // one.
    let first = Background { try store.setValue("v", forKey: "key0") }
    try gate.waitForArrival()
    let others = (1..<16).map { index in
      Background { try store.setValue("v", forKey: "key\(index)") }
    }
    try waitUntil { try store.statistics().lastVersion == before + 16 }
    #expect(system.count(of: .synchronizeData) == 1)
    gate.open()
    for writer in [first] + others {
      #expect(writer.finishes())
      #expect(writer.error == nil)
    }
    #expect(system.count(of: .synchronizeData) == 2)
    #expect(try store.count() == 17)
  }
}
