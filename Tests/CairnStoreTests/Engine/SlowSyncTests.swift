import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// If a write waited for a sync, each test would hang: no sync returns before the writes do.
@Suite("Slow syncs delay only writes that requested them", .timeLimit(.minutes(30)))
struct SlowSyncTests {
  let directory: TemporaryDirectory
  let system = SlowSyncFileSystem()

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ durability: Durability = .process) throws -> Store {
    try Store(
      path: directory.store, configuration: .small(durability: durability),
      environment: Environment(
        fileSystem: system, background: ThreadBackgroundQueue(),
        maintenance: ThreadBackgroundQueue(), syncing: ThreadBackgroundQueue()), readOnly: false)
  }

  private static let value = [UInt8](repeating: 7, count: 5000)

  private func write(_ store: Store, _ keys: Range<Int>) throws {
    for number in keys { try store.setValue(Self.value, forKey: "key \(number)") }
  }

  @Test("The first write of a session waits for no sync, nor do those of the next ten segments")
  func firstWrites() throws {
    try open().close()
    let store = try open()
    system.holdSyncs()
    defer { system.releaseSyncs() }
    try write(store, 0..<150)
    #expect(try store.statistics().segmentCount > 10)
    for number in 0..<150 { try store.removeValue(forKey: "key \(number)") }
    // Meanwhile, housekeeping waits in a sync.
    #expect(system.awaitHeldSync())
    system.releaseSyncs()
    try store.close()
  }

  @Test("Statistics wait for no sync of a manifest")
  func statistics() throws {
    let store = try open()
    try write(store, 0..<5)
    system.holdSyncs(of: "MANIFEST.new")
    defer { system.releaseSyncs() }
    try write(store, 5..<30)
    // Housekeeping is listing the rolled segments as sealed.
    #expect(system.awaitHeldSync())
    #expect(try store.statistics().count == 30)
    system.releaseSyncs()
    try store.close()
    let again = try open()
    #expect(try again.statistics().segments.count { !$0.isSealed } == 1)
    try again.close()
    let reader = try Store(
      path: directory.store, configuration: .small(), environment: .system(), readOnly: true)
    #expect(try reader.statistics().segments.count { !$0.isSealed } == 1)
    try reader.close()
  }

  @Test("Nobody waits for the manifest of a removal of all")
  func besideRemovalOfAll() throws {
    let store = try open()
    try write(store, 0..<5)
    system.holdSyncs(of: "MANIFEST.new")
    defer { system.releaseSyncs() }
    let removal = Background { try store.removeAll() }
    #expect(system.awaitHeldSync())
    // More than one segment.
    try write(store, 5..<50)
    #expect(try store.count() == 50)
    system.releaseSyncs()
    #expect(removal.finishes() && removal.error == nil)
    #expect(try store.count() == 0)
    try write(store, 0..<5)
    try store.close()
    #expect(try open().count() == 5)
  }

  @Test("Compaction takes its turn, however fast others fill segments during syncs")
  func compactionInTurn() throws {
    let scene = try StoreScene()
    // No writer waits for compaction, which runs on the same thread.
    let store = try scene.open { $0.deadByteFloor = 1 << 30 }
    /// Overwrites one key until at least one more segment is full.
    @Sendable func fillSegment() throws {
      for _ in 0..<13 { try store.setValue(Self.value, forKey: "key") }
    }
    for _ in 0..<5 { try fillSegment() }
    let synced = Mutex<Set<String>>([])
    let segmentCounts = Mutex<[Int]>([])
    let problems = Messages()
    scene.fileSystem.setHook { event in
      // Whenever a segment is synced for the first time, another one is filled.
      guard event.call == .synchronizeData, event.file.hasPrefix("seg-"),
        synced.withLock({ $0.count < 50 && $0.insert(event.file).inserted })
      else { return nil }
      do {
        try fillSegment()
        let count = try store.statistics().segmentCount
        segmentCounts.withLock { $0.append(count) }
      } catch { problems.add("\(error)") }
      return nil
    }
    scene.queue.runAll()
    scene.fileSystem.setHook(nil)
    #expect(problems.all == [])
    #expect(synced.withLock { $0.count } == 50)
    #expect(segmentCounts.withLock { $0.max() ?? 0 } < 30)
    try store.close()
  }

  @Test("The manifest of a compaction also seals what writers filled while it copied")
  func sealedByCompaction() throws {
    let scene = try StoreScene()
    let store = try scene.open { ($0.deadByteFloor, $0.spaceBound) = (100_000, 1.25) }
    let unsealedCount = Mutex<Int?>(nil)
    let isCopied = Atomic(false)
    let problems = Messages()
    scene.fileSystem.setHook { event in
      guard event.file.hasPrefix("seg-") else { return nil }
      do {
        switch event.call {
        // Only copies are synced whole.
        case .synchronize where !isCopied.load(ordering: .relaxed):
          try write(store, 0..<40)
          isCopied.store(true, ordering: .relaxed)
        case .unlink where isCopied.load(ordering: .relaxed):
          let count = try store.statistics().segments.count { !$0.isSealed }
          unsealedCount.withLock { $0 = $0 ?? count }
        default: break
        }
      } catch { problems.add("\(error)") }
      return nil
    }
    try write(store, 0..<60)
    for number in stride(from: 0, to: 60, by: 2) { try write(store, number..<number + 1) }
    scene.queue.runAll()
    scene.fileSystem.setHook(nil)
    #expect(problems.all == [])
    #expect(unsealedCount.withLock { $0 } == 1)
    try store.close()
  }

  @Test("Others continue into the next segments while a manifest is prepared for a large value")
  func largeValue() throws {
    let store = try open()
    try write(store, 0..<5)
    system.holdSyncs(of: "MANIFEST.new")
    defer { system.releaseSyncs() }
    let writer = Background {
      try store.setValue([UInt8](repeating: 7, count: 100_000), forKey: "large")
    }
    #expect(system.awaitHeldSync())
    try write(store, 5..<50)
    #expect(try store.value(forKey: "large") == nil)
    system.releaseSyncs()
    #expect(writer.finishes())
    #expect(writer.error == nil)
    try store.close()
    #expect(try open().count() == 51)
  }

  @Test("A session that continues in the last segment of the one before waits for no sync")
  func resumed() throws {
    let first = try open()
    try write(first, 0..<5)
    try first.close()
    let store = try open()
    system.holdSyncs()
    defer { system.releaseSyncs() }
    try write(store, 5..<10)
    system.releaseSyncs()
    try store.close()
    #expect(try open().count() == 10)
  }

  @Test(
    "The sync of an interval does not wait for the manifest's sync, under which segments are sealed"
  )
  func interval() throws {
    let store = try open()
    try write(store, 0..<5)
    system.holdSyncs(of: "MANIFEST.new")
    defer { system.releaseSyncs() }
    // Three segments were rolled, and housekeeping begins to seal them.
    try write(store, 5..<40)
    #expect(system.awaitHeldSync())
    try store.setValue("value", forKey: "last", durability: .durable)
    system.releaseSyncs()
    try store.close()
  }
}
