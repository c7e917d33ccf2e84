import CairnLibC
import CairnStore
import FuzzSupport
import Synchronization
import Testing

@Suite("Callbacks may use the store")
struct LogUseTests {
  let directory: TemporaryDirectory
  let told = Messages()

  init() throws { directory = try TemporaryDirectory() }

  /// Opens a store whose log calls `body` with the store at each message that contains `text`.
  func open(
    _ text: String, _ fileSystem: any FileSystem = SystemFileSystem(),
    _ body: @escaping @Sendable (Store) throws -> Void
  ) throws -> (store: Store, place: Place) {
    let place = Place()
    let store = try Store(
      directory.store,
      .small { [told] in
        $0.log = DiagnosticLog { message in
          guard message.text.contains(text), let store = place.store else { return }
          try? body(store)
          told.add(message.text)
        }
      }, fileSystem: fileSystem)
    place.set(store)
    return (store, place)
  }

  /// The path of the log's store.
  final class Place: Sendable {
    private let held = Mutex<Store?>(nil)
    var store: Store? { held.withLock { $0 } }
    func set(_ store: Store?) { held.withLock { $0 = store } }
  }

  /// Waits for the message, which may come from another thread.
  func waitForMessage() -> Bool {
    for _ in 0..<2000 where told.all.isEmpty { usleep(10_000) }
    return !told.all.isEmpty
  }

  @Test("A rebuilt shard of the index: the log reads every key")
  func shard() throws {
    let fixture = try CheckpointFixture()
    let image = try fixture.image.flipping(fixture.name, at: fixture.header.headerByteCount, bit: 0)
    try image.write(to: directory.store)
    let (store, place) = try open("are read from the log") { store in _ = try store.contents() }
    defer { place.set(nil) }
    let reader = Background {
      let contents = try store.contents()
      #expect(contents == fixture.contents)
    }
    #expect(reader.finishes(within: 20))
    #expect(reader.error == nil)
    #expect(waitForMessage())
  }

  @Test("An old checkpoint that cannot be removed: the log compacts")
  func oldCheckpoint() throws {
    let system = FaultyFileSystem()
    let (store, place) = try open("removing ckpt", system) { store in _ = try store.compact() }
    defer { place.set(nil) }
    try store.setValue("v", forKey: "key")
    try store.checkpoint()
    try store.setValue("w", forKey: "key")
    let old = FileName.checkpoint(try Image(of: directory.store).manifest.checkpointID)
    system.setHook { $0.call == .unlink && $0.file == old ? EIO : nil }
    let writer = Background { try store.checkpoint() }
    #expect(writer.finishes(within: 20))
    #expect(waitForMessage())
    system.setHook(nil)
  }

  @Test("A checkpoint that cannot be written: the log compacts")
  func newCheckpoint() throws {
    let system = FaultyFileSystem()
    let (store, place) = try open("no checkpoint", system) { store in _ = try store.compact() }
    defer { place.set(nil) }
    try store.setValue("v", forKey: "key")
    system.setHook { $0.call == .write && $0.file.hasPrefix("ckpt-") ? EIO : nil }
    let writer = Background { try store.checkpoint() }
    #expect(writer.finishes(within: 20))
    #expect(waitForMessage())
    system.setHook(nil)
    #expect(try store.text("key") == "v")
  }

  @Test("A failure that ends all writing: the log closes the store")
  func poison() throws {
    let system = FaultyFileSystem()
    let (store, place) = try open("accepts no more writes", system) { store in try store.close() }
    defer { place.set(nil) }
    try store.setValue("v", forKey: "key")
    system.setHook { $0.call == .synchronizeData ? EIO : nil }
    let writer = Background { try store.checkpoint() }
    #expect(writer.finishes(within: 20))
    #expect(waitForMessage())
    system.setHook(nil)
    #expect(storeError { _ = try store.count() } != nil)
  }

  @Test("A file that could not be removed: the log requests statistics")
  func removedFile() throws {
    let system = FaultyFileSystem()
    let (store, place) = try open("removing seg", system) { store in _ = try store.statistics() }
    defer { place.set(nil) }
    try store.setValue("v", forKey: "key")
    system.arm(.init(call: .unlink, index: 0, errorNumber: EIO, isLasting: true))
    let remover = Background { try store.removeAll() }
    #expect(remover.finishes(within: 20))
    #expect(remover.error == nil)
    // In a store without syncs, files are removed in the background.
    #expect(waitForMessage())
    #expect(told.all.count == 1)
    system.arm(nil)
    #expect(try store.count() == 0)
  }
}
