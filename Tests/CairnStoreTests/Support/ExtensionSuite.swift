import CairnStore
import FuzzSupport

/// What the tests of extended lifetimes share.
protocol ExtensionSuite {
  var directory: TemporaryDirectory { get }
  var clock: ManualClock { get }
  var queue: ManualBackgroundQueue { get }
}

extension ExtensionSuite {
  func makeStore(_ change: (inout StoreConfiguration) -> Void = { _ in }) throws -> Store {
    try Store(directory.store, .small(clock: clock, change), background: queue)
  }

  /// When a value ends, in seconds from the start of the clock.
  func end(_ store: Store, _ key: String) throws -> Int64? {
    try store.info(forKey: key)?.expires.map {
      ($0.millisecondsSinceEpoch - ManualClock.start.millisecondsSinceEpoch) / 1000
    }
  }

  /// The store as the death of the process leaves it, opened.
  func reopenedAfterKill(_ name: String, boot: [UInt8]? = nil) throws -> Store {
    try Image(of: directory.store).write(to: directory(name))
    return try Store(
      directory(name), .small(clock: clock), fileSystem: FaultyFileSystem(bootIdentifier: boot),
      background: queue)
  }
}
