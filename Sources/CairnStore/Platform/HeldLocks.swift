internal import Synchronization

/// The locks on stores that this process holds, so that whoever is refused can be told whether it is the
/// process itself that is in the way: the kernel does not tell.
enum HeldLocks {
  /// What identifies the file LOCK, by the open file that holds the lock.
  private static let held = Mutex<[ObjectIdentifier: FileIdentity]>([:])

  static func insert(_ file: File, _ identity: FileIdentity) {
    held.withLock { $0[ObjectIdentifier(file)] = identity }
  }

  static func remove(_ file: File) {
    _ = held.withLock { $0.removeValue(forKey: ObjectIdentifier(file)) }
  }

  static func contains(_ identity: FileIdentity) -> Bool {
    held.withLock { $0.values.contains(identity) }
  }
}

extension File {
  /// Takes the lock of the store that this file LOCK belongs to.
  ///
  /// - Throws: `locked` where another opener is in the way.
  package func lockStore(at path: String, exclusively: Bool) throws(StoreError) {
    let isOurs = try lock(exclusively: exclusively)
    let identity = try? status().identity
    guard isOurs else {
      throw .locked(path: path, inThisProcess: identity.map { HeldLocks.contains($0) } ?? false)
    }
    if let identity { HeldLocks.insert(self, identity) }
  }
}
