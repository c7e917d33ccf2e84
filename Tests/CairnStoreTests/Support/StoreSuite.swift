import CairnStore
import FuzzSupport

/// The base of suites in which each test opens a store: a scene in memory.
class StoreSuite {
  let scene: StoreScene
  var directory: TemporaryDirectory { scene.directory }
  var clock: ManualClock { scene.clock }
  var queue: ManualBackgroundQueue { scene.queue }

  init() throws { scene = try StoreScene(on: .memory) }

  func makeStore(
    _ change: (inout StoreConfiguration) -> Void = { _ in },
    fileSystem: any FileSystem = SystemFileSystem()
  ) throws -> Store {
    try Store(
      directory.store, .small(clock: clock, change), fileSystem: fileSystem, background: queue)
  }

  /// When a value ends, in seconds from the start of the clock.
  func end(_ store: Store, _ key: String) throws -> Int64? {
    try store.info(forKey: key)?.expires.map {
      ($0.millisecondsSinceEpoch - ManualClock.start.millisecondsSinceEpoch) / 1000
    }
  }

  /// Opens the store as a kill would leave it.
  func reopenedAfterKill(_ name: String, boot: [UInt8]? = nil) throws -> Store {
    try Image(of: directory.store).write(to: directory(name))
    return try Store(
      directory(name), .small(clock: clock), fileSystem: FaultyFileSystem(bootIdentifier: boot),
      background: queue)
  }
}

/// The base of suites whose tests have an open store and set its clock.
class OpenStoreSuite {
  let directory: TemporaryDirectory
  let clock = ManualClock()
  let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Store(directory.store, .small(clock: clock))
  }
}
