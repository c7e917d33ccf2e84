/// A second use of the file LOCK: its length is 1 once a sync of the log has failed, and 0 again
/// once the store has been recovered.
///
/// After a failed sync, the kernel treats unwritten pages as clean. A process that opens the store
/// then finds holes, as after a power cut, though the machine has not restarted. Without this mark,
/// the process would have to treat the holes as damage. The mark matters only until the machine
/// restarts, so it needs no sync. It is a length, so it needs no room on a full disk.
package struct SyncFailureMark {
  let lockFile: File

  package init(lockFile: File) { self.lockFile = lockFile }

  package func isSet() throws(StoreError) -> Bool { try lockFile.status().byteCount > 0 }

  /// If setting the mark fails too, the next open may refuse the store until the machine restarts.
  func set() { try? lockFile.truncate(to: 1) }

  /// If clearing the mark fails, a later recovery treats damage in data that was not durable as a
  /// torn tail.
  func clear() { if (try? isSet()) != false { try? lockFile.truncate(to: 0) } }
}
