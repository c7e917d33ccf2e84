import CairnStore
import FuzzSupport
import Synchronization
import Testing

/// If a write waited for a sync, each test would hang: no sync returns before the writes do.
@Suite("Slow syncs delay only writes that requested them", .timeLimit(.minutes(2)))
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
    #expect(try store.usage().segmentCount > 10)
    for number in 0..<150 { try store.removeValue(forKey: "key \(number)") }
    // Meanwhile housekeeping waits in a sync.
    #expect(system.awaitHeldSync())
    system.releaseSyncs()
    try store.close()
  }

  @Test("Others continue into the next segments while a manifest is prepared for a large value")
  func largeValue() throws {
    let store = try open()
    try write(store, 0..<5)
    system.holdSyncs(of: "MANIFEST.next.new")
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
