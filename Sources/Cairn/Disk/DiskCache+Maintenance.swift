public import CairnStore

extension DiskCache {
  /// Makes every write durable that was acknowledged before the call, whatever its class.
  ///
  /// - Throws: `store` with `durabilityUnknown` if the sync fails.
  public func sync() throws(CacheError) {
    try storing { () throws(StoreError) in try store.sync() }
  }

  /// Reclaims all reclaimable space; see `Store.compact`. The cache also compacts by itself, as the
  /// store's `spaceBound` asks.
  @discardableResult
  public func compact() throws(CacheError) -> CompactionReport {
    try storing { () throws(StoreError) in try store.compact() }
  }

  /// Reads and checks everything that the cache has on disk once; see `Store.scrub`. The cache also
  /// does so by itself if the configuration of its store sets `scrubBytesPerSecond`. Observers are
  /// told of each damaged value.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (WorkProgress) -> Visit = { _ in .next }
  ) throws(CacheError) -> ScrubReport {
    try storing { () throws(StoreError) in
      try store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    }
  }

  /// Does all due maintenance at once: removes expired entries, keeps the free space on the disk,
  /// and compacts to the space bound.
  ///
  /// - Throws: see `removeExpired()` and `compact()`.
  public func maintain() throws(CacheError) {
    recency?.tell()
    marks.resume()
    try storing { () throws(StoreError) in try store.maintain() }
  }

  /// Copies the current state of the cache into a new directory while it stays in use; see
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

  /// Copies everything in the cache into a new store, while writes continue; see
  /// `backup(to:progress:)`.
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
  ///   - path: the file, whose directory must exist. An existing file is replaced atomically by the
  ///     new one, which is durable when the call returns, and has mode 0600. A process that dies
  ///     meanwhile may leave a file `.cairn-export-` with 13 letters and digits there; the first
  ///     export of a later process into the same directory removes it.
  /// - Returns: whether there was a value; if not, nothing is written.
  /// - Throws: see `value(forKey:)`; `store` with `system` or `noSpace` if the file cannot be
  ///   written: the old file stays.
  @discardableResult
  public func exportValue(forKey key: Key, to path: String) throws(CacheError) -> Bool {
    let version = try fetch(key) { (record) throws(CacheError) in
      _ = try metadata(of: record, wantsRest: false)
      try storing { () throws(StoreError) in
        try File.replace(at: path, with: record.value, fileSystem: SystemFileSystem())
      }
      return record.version
    }
    try noteShown(version, of: key)
    if version != nil { try held?.noteAccess(tierKey(key)) }
    return version != nil
  }
}
