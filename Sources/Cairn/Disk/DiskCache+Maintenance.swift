public import CairnStore

extension DiskCache {
  /// Makes every write durable that was acknowledged before the call, whatever class it asked for.
  ///
  /// - Throws: `store` with `durabilityUnknown` where the sync fails.
  public func sync() throws(CacheError) {
    try storing { () throws(StoreError) in try store.sync() }
  }

  /// Gives back all space that can be given back; as `Store.compact`. The cache does so by itself as the
  /// store's `spaceBound` wants it.
  @discardableResult
  public func compact() throws(CacheError) -> CompactionReport {
    try storing { () throws(StoreError) in try store.compact() }
  }

  /// Reads all that the cache has on disk once and checks it; as `Store.scrub`. The cache does so by itself with
  /// `scrubBytesPerSecond` in the configuration of its store. Observers are told of each damaged value.
  @discardableResult
  public func scrub(
    bytesPerSecond: Int? = nil, progress: (ScrubProgress) -> Visit = { _ in .next }
  ) throws(CacheError) -> ScrubReport {
    try storing { () throws(StoreError) in
      try store.scrub(bytesPerSecond: bytesPerSecond, progress: progress)
    }
  }

  /// Does at once everything the cache does for itself now and then: removes what has expired, keeps the free
  /// space on the disk, and compacts where the space bound wants it.
  ///
  /// - Throws: as `removeExpired()` and `compact()`.
  public func maintain() throws(CacheError) {
    recency?.tell()
    marks.resume()
    try storing { () throws(StoreError) in try store.maintain() }
  }

  /// Copies the cache as it is now into a new directory, while it goes on; as `Snapshot.backup`. The copy
  /// is a cache in its own right.
  @discardableResult
  public func backup(
    to destination: String, progress: (BackupProgress) -> Void
  ) throws(CacheError) -> BackupReport {
    recency?.tell()
    return try storing { () throws(StoreError) in
      try store.backup(to: destination, progress: progress)
    }
  }

  /// Copies all that it holds into a new store, while writes go on; as `backup(to:progress:)`.
  @inlinable
  @discardableResult
  public func backup(to destination: String) throws(CacheError) -> BackupReport {
    try backup(to: destination) { _ in }
  }

  /// Writes the bytes of a value to a file: what the value coder made, as `withValue` has them. Counts as an
  /// access.
  ///
  /// - Parameters:
  ///   - key: the key.
  ///   - path: of the file, whose directory must exist. One that is there is replaced at once by the new one,
  ///     which is durable when the call returns, and has mode 0600.
  ///     A process that dies meanwhile may leave a file `.cairn-export-` with 13 letters and digits there; it
  ///     goes with the first export of a later process into the same directory.
  /// - Returns: whether there was a value; where not, nothing is written.
  /// - Throws: as `value(forKey:)`; `store` with `system` or `noSpace` where the file cannot be written:
  ///   what was there stays.
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
