public import CairnStore

extension DiskCache {
  /// Makes every write acknowledged before the call durable, whatever its class.
  ///
  /// - Throws: `store` with `durabilityUnknown` if the sync fails.
  public func sync() throws(CacheError) {
    try storing { () throws(StoreError) in try store.sync() }
  }

  /// Reclaims all reclaimable space. See `Store.compact`. The cache also compacts by itself,
  /// according to the store's `spaceBound`.
  @discardableResult
  public func compact() throws(CacheError) -> CompactionReport {
    try storing { () throws(StoreError) in try store.compact() }
  }

  /// Reads and checks all of the cache's data on disk once. See `Store.scrub`. The cache also does
  /// so by itself if its store's configuration sets `scrubBytesPerSecond`. Observers receive an
  /// event for each damaged value.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(CacheError) -> ScrubReport {
    try storing { () throws(StoreError) in
      try store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    }
  }

  /// Does all due maintenance at once: removes expired entries, keeps the configured free disk
  /// space, and compacts to the space bound.
  ///
  /// - Throws: see `removeExpired()` and `compact()`.
  public func maintain() throws(CacheError) {
    recency?.tell()
    marks.resume()
    try storing { () throws(StoreError) in try store.maintain() }
  }

  /// Copies the current state of the cache into a new directory while it stays in use. See
  /// `Snapshot.backup`. The copy is an independent cache.
  @discardableResult
  public func backup(
    to destination: String, progress: (WorkProgress) -> Void
  ) throws(CacheError) -> BackupReport {
    recency?.tell()
    return try storing { () throws(StoreError) in
      try store.backup(to: destination, progress: progress)
    }
  }

  /// Copies the whole cache into a new store, while writes continue. See `backup(to:progress:)`.
  @inlinable
  @discardableResult
  public func backup(to destination: String) throws(CacheError) -> BackupReport {
    try backup(to: destination) { _ in }
  }

  /// Writes the bytes of a value to a file: the bytes from the value coder, as `withValue` passes
  /// them. Counts as an access.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - path: the file, whose directory must exist. The new file atomically replaces an existing
  ///     one, is durable when the call returns, and has mode 0600. If the process dies during the
  ///     call, it may leave a file named `.cairn-export-` plus 13 letters and digits. The first
  ///     export of a later process into the same directory removes that file.
  /// - Returns: whether the key had a value. If not, nothing is written.
  /// - Throws: see `value(forKey:)`; `store` with `system` or `noSpace` if the file cannot be
  ///   written: the old file stays.
  @discardableResult
  public func exportValue(forKey key: Key, to path: String) throws(CacheError) -> Bool {
    let isFound: Void? = try withBytes(ofValueFor: key) { (bytes) throws(CacheError) in
      try storing { () throws(StoreError) in
        try File.replace(at: path, with: bytes, fileSystem: SystemFileSystem())
      }
    }
    return isFound != nil
  }
}
