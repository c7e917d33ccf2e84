/// The store locks that this process holds. When an open finds a store locked, this list shows
/// whether its own process holds the lock, which the kernel does not report.
enum HeldLocks {
  private struct Held {
    /// The identity of the file LOCK.
    let identity: FileIdentity
    /// A forked child inherits this list, but none of the locks.
    let process = ProcessMark()
  }

  /// Keyed by the open file that holds the lock.
  private static let held = Lock<[ObjectIdentifier: Held]>([:], isOfProcess: true)

  static func insert(_ file: ObjectIdentifier, _ identity: FileIdentity) {
    held.withLock { $0[file] = Held(identity: identity) }
  }

  static func remove(_ file: ObjectIdentifier) {
    _ = held.withLock { $0.removeValue(forKey: file) }
  }

  static func contains(_ identity: FileIdentity) -> Bool {
    held.withLock {
      $0.values.contains { $0.identity == identity && !$0.process.isForeign }
    }
  }
}
