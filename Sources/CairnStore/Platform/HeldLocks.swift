internal import Glibc
internal import Synchronization

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

  fileprivate static func insert(_ file: File, _ identity: FileIdentity) {
    held.withLock { $0[ObjectIdentifier(file)] = Held(identity: identity, process: getpid()) }
    file.isListed.store(true, ordering: .relaxed)
  }

  /// To be called before a file gives its lock up or is closed.
  static func remove(_ file: File) {
    // Nearly all files are none of these.
    guard file.isListed.load(ordering: .relaxed) else { return }
    _ = held.withLock { $0.removeValue(forKey: ObjectIdentifier(file)) }
  }

  fileprivate static func contains(_ identity: FileIdentity) -> Bool {
    let process = getpid()
    return held.withLock {
      $0.values.contains { $0.identity == identity && $0.process == process }
    }
  }
}

extension File {
  /// Takes the lock of the store that this file LOCK belongs to.
  ///
  /// - Throws: `locked` where another opener is in the way; `system`.
  package func lockStore(at path: String, exclusively: Bool) throws(StoreError) {
    let identity = try status().identity
    guard try lock(exclusively: exclusively) else {
      throw .locked(path: path, inThisProcess: identity.map { HeldLocks.contains($0) } ?? false)
    }
    if let identity { HeldLocks.insert(self, identity) }
  }
}
