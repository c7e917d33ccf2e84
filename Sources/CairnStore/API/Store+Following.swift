/// Reading a store while another process writes to it.
extension Store {
  /// Opens the store at a path for reading, even while another process writes to it, and follows
  /// that process's changes.
  ///
  ///     let store = try Store(following: "/var/lib/example/blobs")
  ///     let value = try store.value(forKey: "greeting")
  ///
  /// A read sees all of a batch or none of it, and never an earlier state than a previous read saw.
  /// An iteration may see new writes, but a snapshot does not. With `.everyRead`, a read sees every
  /// write acknowledged before the read began, whatever the write's durability. Following never
  /// delays the writer, changes nothing in the directory and needs only read permission. Reads do
  /// not count as accesses: access times, and with them idle limits, are those of the last
  /// checkpoint. This process's clock decides when lifetimes end.
  ///
  /// Reads continue if the writer closes the store, dies or is killed, and if another writer takes
  /// over. If data that reads have seen is gone, because the disk failed or another store replaced
  /// this one, one call throws `outdated`. Later calls read the current store.
  ///
  /// While this store is open, a writer on a full disk does not truncate files, so it may reclaim
  /// less space. Removed data that a read has seen keeps its disk space until a later read catches
  /// up.
  ///
  /// A writer that can map files and reserve blocks (on ext4, XFS and tmpfs, with
  /// `mapsFiles = true`) announces each write, so that reads see it. With any other writer, or if
  /// no writer has opened the store since the machine started, reads see changes only after a
  /// `catchUp` or a change of the manifest.
  ///
  /// - Parameters:
  ///   - path: the store, on a local filesystem.
  ///   - freshness: when reads see new writes.
  ///   - configuration: see ``StoreConfiguration``. Settings that concern only writes have no
  ///     effect.
  /// - Throws: `noStore`, `notAStore`; `corrupt` if a durable part is damaged; `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `outOfMemory`,
  ///   `system`. Every write to the returned store throws `readOnly`.
  /// - Complexity: the same as `init(readingAt:configuration:)`. A read that finds new records is
  ///   O(new records). The first read after a compaction or a `removeAll` is O(segments + records
  ///   since the last checkpoint). The index takes as much memory as the writer's, and briefly
  ///   twice as much.
  public convenience init(
    following path: String, freshness: Freshness = .everyRead,
    configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    try self.init(
      following: path, freshness: freshness, configuration: configuration, environment: .system())
  }

  /// Follows a store in an environment that the caller supplies, for simulations.
  package convenience init(
    following path: String, freshness: Freshness, configuration: StoreConfiguration,
    environment: Environment
  ) throws(StoreError) {
    let follower = try Follower(
      path: path, freshness: freshness, configuration: configuration, environment: environment)
    self.init(
      path: path, configuration: configuration, engine: follower.shell, follower: follower)
  }

  /// Lets later reads see every write acknowledged before this call. Does nothing unless the store
  /// follows another process.
  ///
  /// - Throws: `outdated` if data that reads have seen is gone; later reads then see the current
  ///   store. After `corrupt`, `closed`, `usedAfterFork`, `outOfMemory` or `system`, later reads
  ///   see the same state as before, or throw the same error.
  /// - Complexity: the same as for a read that finds new records.
  public func catchUp() throws(StoreError) { try follower?.catchUp() }

  /// The reader that a read uses.
  @inlinable
  var currentReader: Reader {
    get throws(StoreError) { if let follower { try follower.reader } else { reader } }
  }

  /// The engine that reads see.
  package var currentEngine: Engine {
    get throws(StoreError) { if let follower { try follower.engine } else { engine } }
  }
}

extension Store {
  /// The process that holds a store's lock, and its start time. `nil` if no process does, or if the
  /// process is unknown.
  package static func owner(at path: String) -> (processID: Int32, since: Timestamp?)? {
    guard
      let directory = try? Directory(path: path, fileSystem: SystemFileSystem(), readOnly: true),
      let lock = try? directory.openFile(FileName.lock, mode: .readOnly),
      let identity = lock.identity, let owner = LockOwner.processID(of: identity)
    else { return nil }
    return (owner, LockOwner.startTime(of: owner))
  }
}
