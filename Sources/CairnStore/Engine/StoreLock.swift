internal import Synchronization

/// The store's `LOCK` file. It keeps other processes out until the store is closed, and shows
/// whether the store's directory still exists.
///
/// Clean-up jobs may remove cache directories whose files are open. Writes still succeed then, but
/// into files that no process can open again. `LOCK` reveals this, because no store removes that
/// file: a file without a name has a link count of 0, and checking the count takes less than a
/// microsecond. If the directory itself still exists, another process may have made a store in it,
/// and that store's manifest must not be replaced.
///
/// 1. A store writes to named files only while it holds the lock.
/// 2. Once a store has vanished, it stays vanished.
///
/// This lock is taken under the catalog's lock or under none. Only the reserve's lock is taken
/// under it.
final class StoreLock: Sendable {
  /// How long writes may continue in a directory that is gone, in milliseconds.
  private static let lookInterval: UInt64 = 1000

  private let file: File
  private let held = Lock(true)
  private let vanished = Atomic(false)
  /// The time of the last check, in milliseconds.
  private let lookTime: Atomic<Int64>

  init(_ file: File, now: Timestamp) {
    self.file = file
    lookTime = Atomic(now.millisecondsSinceEpoch)
  }

  // MARK: Holding it

  /// Whether the lock is still held.
  var isHeld: Bool { held.withLock { $0 } }

  /// Runs `body` unless the lock has been released. It is not released while `body` runs.
  func whileHeld<Value>(_ body: (File) -> Value) -> Value? {
    held.withLock { $0 ? body(file) : nil }
  }

  func giveUp() {
    held.withLock { isHeld in
      // A forked child may hold the descriptor too, so unlock the file before closing it.
      if isHeld { file.unlock() }
      isHeld = false
    }
  }

  // MARK: The directory

  /// Whether the store has noticed that the directory is gone.
  var hasVanished: Bool {
    @inline(__always) get { vanished.load(ordering: .relaxed) }
  }

  /// The result of a check of the directory.
  enum Look {
    case isThere
    case isGone
    /// The directory is gone, and no earlier check noticed it.
    case hasJustGone
  }

  /// Checks whether the directory is gone.
  func look() -> Look {
    if hasVanished { return .isGone }
    guard file.isRemoved else { return .isThere }
    return vanished.exchange(true, ordering: .relaxed) ? .isGone : .hasJustGone
  }

  /// Whether the last check was at least a second ago. If several threads call this at once, only
  /// one gets `true` and checks.
  func takeTurnToLook(at now: Timestamp) -> Bool {
    let time = now.millisecondsSinceEpoch
    let last = lookTime.load(ordering: .relaxed)
    return time.subtracting(clamped: last).magnitude >= Self.lookInterval
      && lookTime.compareExchange(expected: last, desired: time, ordering: .relaxed).exchanged
  }
}
