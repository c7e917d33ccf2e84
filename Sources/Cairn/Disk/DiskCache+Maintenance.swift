public import CairnStore

extension DiskCache {
  /// Makes every write acknowledged before the call durable, whatever its durability class.
  ///
  /// - Throws: `durabilityUnknown` if the sync fails.
  public func sync() throws(StoreError) {
    try store.sync()
  }

  /// Reclaims the space of all dead records. See `Store.compact`. The cache also compacts by
  /// itself: the store's `spaceBound` controls when.
  @discardableResult
  public func compact() throws(StoreError) -> CompactionReport {
    try store.compact()
  }

  /// Reads and checks all of the cache's data on disk once. See `Store.scrub`. Observers receive an
  /// event for each damaged value. With the store option `scrubBytesPerSecond`, maintenance scrubs
  /// continuously.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(StoreError) -> CheckReport {
    try store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
  }

  /// Runs maintenance now, not in the background: removes expired entries and the entries of
  /// removed tags, compacts to the space bound, and restores the configured free disk space.
  ///
  /// - Throws: see `trim(.expired)` and `compact()`.
  public func maintain() throws(StoreError) {
    marks.resume()
    try store.maintain()
  }

  /// Copies the current state of the cache into a new directory, while writes continue. The copy is
  /// an independent cache. See `Snapshot.backup`.
  @discardableResult
  public func backup(
    to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    try store.backup(to: destination, progress: progress)
  }

  /// Writes a value to a file, as the bytes that the value coder made. Counts as an access.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - path: the file, whose directory must exist. The call atomically replaces an existing file.
  ///     When it returns, the new file is durable and has mode 0600. If the process dies during the
  ///     call, it may leave a file whose name begins with `.cairn-export-`. The first export of a
  ///     later process into the same directory removes that file.
  /// - Returns: whether the key had a value. If not, nothing is written.
  /// - Throws: see `value(forKey:)`; `system`, `noSpace` or `unusable` if
  ///   the file cannot be written. An existing file then stays as it is.
  @discardableResult
  public func exportValue(forKey key: Key, to path: String) throws(StoreError) -> Bool {
    let isFound: Void? = try withBytes(ofValueFor: key) { (bytes) throws(StoreError) in
      try File.replace(at: path, with: bytes, fileSystem: SystemFileSystem())
    }
    return isFound != nil
  }
}
