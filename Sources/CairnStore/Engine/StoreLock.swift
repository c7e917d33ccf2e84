internal import Synchronization

/// The store's file LOCK: it keeps other processes out until the store is closed, and tells whether the store's
/// directory is still there.
///
/// Cleaners of caches remove directories whose files are open; then every write goes on to succeed, into files that
/// nobody can open again. `LOCK` tells, since nobody else removes it: a file without a name has a link count of 0, and
/// asking for that takes less than a microsecond. Where the directory stayed, another process may have made a store
/// in it, whose manifest must not be replaced.
///
/// 1. A store writes to files with names only while it holds the lock.
/// 2. A store whose directory has vanished stays so.
///
/// The lock is taken under the catalog's or none; under it, only that of the reserve.
final class StoreLock: Sendable {
  /// How long a write may go on in a directory that is gone, in milliseconds.
  private static let lookInterval: Int64 = 1000

  private let file: File
  private let held = Lock(true)
  private let vanished = Atomic(false)
  /// When that was last looked at, in milliseconds.
  private let lookTime: Atomic<Int64>

  init(_ file: File, now: Timestamp) {
    self.file = file
    lookTime = Atomic(now.millisecondsSinceEpoch)
  }

  // MARK: Holding it

  /// Whether the lock has not been given up.
  var isHeld: Bool { held.withLock { $0 } }

  /// Runs `body` unless the lock was given up. It is not given up meanwhile.
  func whileHeld<Value>(_ body: (File) -> Value) -> Value? {
    held.withLock { $0 ? body(file) : nil }
  }

  func giveUp() {
    held.withLock { isHeld in
      // A forked child may hold the descriptor too: the lock is given up, not just closed.
      if isHeld { file.unlock() }
      isHeld = false
    }
  }

  // MARK: The directory

  /// Whether it was noticed that the directory is gone.
  var hasVanished: Bool {
    @inline(__always) get { vanished.load(ordering: .relaxed) }
  }

  /// What a look at the directory has found.
  enum Look {
    case isThere
    case isGone
    /// Gone, and nobody had noticed before.
    case hasJustGone
  }

  /// Looks whether the directory is gone.
  func look() -> Look {
    if hasVanished { return .isGone }
    guard file.isRemoved else { return .isThere }
    return vanished.exchange(true, ordering: .relaxed) ? .isGone : .hasJustGone
  }

  /// Whether nobody has looked for a second. Of several threads that ask, one is told so, and looks.
  func takeTurnToLook(at now: Timestamp) -> Bool {
    let time = now.millisecondsSinceEpoch
    let last = lookTime.load(ordering: .relaxed)
    let (passed, isTooLarge) = time.subtractingReportingOverflow(last)
    return (isTooLarge || abs(passed) >= Self.lookInterval)
      && lookTime.compareExchange(expected: last, desired: time, ordering: .relaxed).exchanged
  }
}
