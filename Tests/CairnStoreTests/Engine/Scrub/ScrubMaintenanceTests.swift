import CairnStore
import FuzzSupport
import Testing

/// At 256 KiB a second, a step of 256 KiB is due each second.
@Suite("Scrubbing by maintenance")
struct ScrubMaintenanceTests {
  let scene: ScrubScene
  static let rate = 256 << 10

  init() throws { scene = try ScrubScene() }

  func open(
    rate: Int = rate, _ change: (inout StoreConfiguration) -> Void = { _ in }
  ) throws -> Store {
    try scene.open {
      $0.scrubBytesPerSecond = rate
      change(&$0)
    }
  }

  /// Lets time pass, second by second.
  func pass(_ seconds: Int) {
    for _ in 0..<seconds {
      scene.clock.advance(by: .seconds(1))
      scene.queue.runAll(dueAfter: .seconds(1))
    }
  }

  func scrub(_ store: Store) throws -> ScrubStatistics { try store.statistics().scrub }

  @Test("Damage is found without a request, and reported once per cycle")
  func found() throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    pass(100)
    #expect(scene.events.all == [event])
    #expect(try scrub(store).lastCompleted != nil)
    #expect(try scrub(store).lastDamageCount == 1)
    // The next cycle begins a day after this one.
    pass(7200)
    #expect(scene.events.all == [event])
    scene.clock.advance(by: .seconds(86_400))
    scene.queue.runAll(dueAfter: .seconds(3600))
    pass(100)
    #expect(scene.events.all == [event, event])
  }

  @Test("Without the option, nothing is read")
  func off() throws {
    let store = try scene.open()
    try scene.fill(store)
    let read = scene.files.readByteCount
    pass(100)
    #expect(scene.files.readByteCount == read)
    #expect(try scrub(store).readByteCount == 0)
  }

  @Test("Scrubbing reads no more than the rate allows, whatever else requests passes")
  func pace() throws {
    let store = try open { $0.maintenanceInterval = .milliseconds(100) }
    try scene.fill(store, 0..<2000)
    let before = try scrub(store).readByteCount
    for tenth in 0..<100 {
      scene.clock.advance(by: .milliseconds(100))
      try store.setValue("x", forKey: "\(tenth)")
      scene.queue.runAll(dueAfter: .milliseconds(100))
    }
    let read = try scrub(store).readByteCount - before
    #expect(read <= 10 * Self.rate + (512 << 10), "\(read)")
    #expect(read >= 5 * Self.rate, "\(read)")
  }

  @Test("Scrubbing makes up for delays of up to a second")
  func catchesUp() throws {
    let store = try open(rate: 2 << 20)
    try scene.fill(store, 0..<4000)
    scene.clock.advance(by: .seconds(3600))
    scene.queue.runAll(dueAfter: .seconds(3600))
    for _ in 0..<100 { scene.queue.runAll(dueAfter: .milliseconds(1)) }
    let read = try scrub(store).readByteCount
    #expect(read > 1 << 20 && read < 3 << 20, "\(read)")
  }

  @Test("A step reads one window, and each run takes a few steps")
  func bounded() throws {
    let store = try open(rate: .max) { $0.segmentByteLimit = 8 << 20 }
    try scene.fill(store, 0..<2000)
    let read = scene.files.readByteCount
    scene.clock.advance(by: .seconds(1))
    scene.queue.runAll(dueAfter: .seconds(1))
    let step = scene.files.readByteCount - read
    #expect(step > 0 && step <= 1 << 20, "\(step)")
  }

  @Test("Sessions that are too short for a cycle read the whole log together")
  func shortSessions() throws {
    // The ids of most segments are far above 1.
    for _ in 0..<40 {
      let store = try scene.open()
      try scene.fill(store, 0..<1)
      try store.close()
    }
    let store = try scene.open { $0.segmentByteLimit = 256 << 10 }
    try scene.fill(store, 0..<800)
    try store.close()
    let event = try scene.damageValue("key 780")
    for _ in 0..<60 where scene.events.all.isEmpty {
      let store = try open { $0.segmentByteLimit = 256 << 10 }
      pass(2)
      #expect(try scrub(store).lastCompleted == nil)
      try store.close()
    }
    #expect(scene.events.all == [event])
  }

  @Test("Endless compactions do not starve scrubbing")
  func notStarved() throws {
    let store = try open {
      $0.spaceBound = 1.1
      $0.deadByteFloor = 0
      $0.maintenanceInterval = .seconds(1)
    }
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    for round in 0..<30 {
      try scene.fill(store, 20..<60, byteCount: 1000 + round)
      scene.clock.advance(by: .seconds(1))
      // Only passes run, as when one follows another: the scrub's timer does not.
      try store.maintain()
    }
    // The scrub finds it, or the compaction that copies it.
    #expect(scene.events.all.contains { $0.keys == event.keys })
  }

  @Test("A failing chore does not starve scrubbing, and scrubbing starves no chore")
  func failingChores() throws {
    let store = try open { $0.maintenanceInterval = .seconds(1) }
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    try store.setValue("v", forKey: "short", lifetime: .seconds(5))
    // No checkpoint can be made.
    scene.files.setHook { $0.file.hasPrefix("ckpt-") ? 5 : nil }
    pass(60)
    #expect(scene.events.all == [event])
    #expect(try store.statistics().count == 60, "what has expired is removed")
  }

  @Test("While a step reads, writers, readers and statistics continue")
  func noLock() throws {
    let store = try open()
    try scene.fill(store)
    let isInside = Collected<Int>()
    scene.files.setHook { event in
      if event.call == .read, event.file.hasPrefix("seg-"), isInside.all.isEmpty {
        isInside.add(1)
        // On the step's own thread, which would wait forever for a lock that the step holds.
        _ = try? store.setValue("v", forKey: "meanwhile")
        _ = try? store.value(forKey: "key 1")
        _ = try? store.statistics()
        _ = try? store.compact()
      }
      return nil
    }
    pass(3)
    scene.files.setHook(nil)
    #expect(isInside.all == [1])
    #expect(try store.value(forKey: "meanwhile") != nil)
  }

  @Test("A close in the middle of a step writes nothing afterwards")
  func closedMeanwhile() throws {
    let store = try open()
    try scene.fill(store)
    let after = Collected<DirectoryListing>()
    let path = scene.directory.store
    scene.files.setHook { event in
      if event.call == .read, event.file.hasPrefix("seg-"), after.all.isEmpty {
        try? store.close()
        if let listing = try? DirectoryListing(of: path) { after.add(listing) }
      }
      return nil
    }
    pass(3)
    scene.files.setHook(nil)
    #expect(try after.all == [DirectoryListing(of: path)])
  }

  @Test("An error that is not the medium's is logged, and retried a minute later")
  func failure() throws {
    let store = try open()
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    scene.files.setHook { $0.call == .read && $0.file.hasPrefix("seg-") ? 12 : nil }
    pass(30)
    #expect(scene.log.all.filter { $0.hasPrefix("scrubbing: ") }.count == 1)
    scene.files.setHook(nil)
    pass(100)
    #expect(scene.events.all == [event])
  }

  @Test("A clock that is set back or ahead does not stop scrubbing")
  func clock() throws {
    let store = try open()
    try scene.fill(store, 0..<600)
    let event = try scene.damageValue("key 599")
    pass(1)
    scene.clock.advance(by: .seconds(-10 * 86_400))
    pass(2)
    scene.clock.advance(by: .seconds(20 * 86_400))
    pass(30)
    #expect(scene.events.all.contains(event))
  }

  @Test("Without an interval, only maintain takes steps")
  func byHand() throws {
    let store = try open { $0.maintenanceInterval = nil }
    try scene.fill(store)
    let event = try scene.damageValue("key 3")
    pass(100)
    #expect(scene.events.all == [])
    for _ in 0..<20 {
      scene.clock.advance(by: .seconds(1))
      try store.maintain()
    }
    #expect(scene.events.all == [event])
  }

  @Test("An observer may use the store, and close it")
  func observer() throws {
    let held = Collected<Store>()
    let store = try open {
      $0.damageObserver = { event in
        for store in held.all {
          _ = try? store.setValue("healed", forKey: "key 3", durability: .durable)
          try? store.close()
        }
      }
    }
    held.add(store)
    try scene.fill(store)
    _ = try scene.damageValue("key 3")
    pass(5)
    #expect(storeError { _ = try store.count() } == .closed(path: scene.directory.store))
  }
}
