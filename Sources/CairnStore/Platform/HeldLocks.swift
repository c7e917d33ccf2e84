internal import Glibc

/// The locks on stores that this process holds, so that whoever is refused can be told whether it is the
/// process itself that is in the way: the kernel does not tell.
enum HeldLocks {
  private struct Held {
    /// What identifies the file LOCK.
    var identity: FileIdentity
    /// A child that was forked inherits this list, and no lock.
    var process: pid_t
  }

  /// By the open file that holds the lock.
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
