internal import Glibc

/// The store locks that this process holds. When an open finds a store locked, this list shows
/// whether its own process holds the lock, which the kernel does not report.
enum HeldLocks {
  private struct Held {
    /// The identity of the file LOCK.
    var identity: FileIdentity
    /// A forked child inherits this list, but none of the locks.
    var process: pid_t
  }

  /// Keyed by the open file that holds the lock.
  private static let held = Lock<[ObjectIdentifier: Held]>([:])

  static func insert(_ file: ObjectIdentifier, _ identity: FileIdentity) {
    held.withLock { $0[file] = Held(identity: identity, process: getpid()) }
  }

  static func remove(_ file: ObjectIdentifier) {
    _ = held.withLock { $0.removeValue(forKey: file) }
  }

  static func contains(_ identity: FileIdentity) -> Bool {
    let process = getpid()
    return held.withLock {
      $0.values.contains { $0.identity == identity && $0.process == process }
    }
  }
}
