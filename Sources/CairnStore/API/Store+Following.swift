/// Reading a store while another process writes to it.
extension Store {
  /// Opens the store at a path for reading while another process may have it open for writing,
  /// and follows its changes.
  ///
  ///     let store = try Store(following: "/var/lib/example/blobs")
  ///     let value = try store.value(forKey: "greeting")
  ///
  /// A read sees one state of the store: all of a batch or none of it, and never an
  /// earlier state than a previous read. An iteration may see new writes, but a snapshot does not.
  /// With `.everyRead`, a read sees every write acknowledged before it began, whatever its
  /// durability. Following never delays the writer, changes nothing in the directory and needs only
  /// read permission. Reads do not count as accesses, so the access order and idle limits are those
  /// of the last checkpoint. Lifetimes end by this process's clock.
  ///
  /// If the writer closes the store, dies or is killed, or another writer takes over, reads
  /// continue. If data that reads have seen is gone, because the disk failed or another store took
  /// its place, one call throws `outdated`, and later calls read the current store.
  ///
  /// While this store is open, a writer on a full disk does not truncate files, and compacts only
  /// as far as it can without truncation. Removed data that is still being read keeps its disk
  /// space until the next read that catches up.
  ///
  /// A writer announces its writes if it can map files and reserve blocks: on ext4, XFS and tmpfs,
  /// with `access = .mapped`. If another kind of writer has the store open, or no writer has opened
  /// it since the machine started, changes appear with each `catchUp` and when the manifest
  /// changes.
  ///
  /// - Parameters:
  ///   - path: the store, on a local filesystem.
  ///   - freshness: when reads see new writes.
  ///   - configuration: see ``StoreConfiguration``. The settings for writing have no effect.
  /// - Throws: `noStore`, `notAStore`; `corrupt` if a durable part is damaged; `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `outOfMemory`,
  ///   `system`. Every write throws `readOnly`.
  /// - Complexity: the same as `init(readingAt:configuration:)`. A read that finds new records is
  ///   O(new records). After a compaction replaced files, or after `removeAll`, it is O(segments +
  ///   records since the last checkpoint). Uses as much memory for the index as the writer, and
  ///   briefly twice as much.
  public convenience init(
    following path: String, freshness: Freshness = .everyRead,
    configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    try self.init(
      following: path, freshness: freshness, configuration: configuration, environment: .system())
  }

  /// Follows a store in an environment that the caller supplies: for simulations.
  package convenience init(
    following path: String, freshness: Freshness, configuration: StoreConfiguration,
    environment: Environment
  ) throws(StoreError) {
    self.init(
      path: path, configuration: configuration,
      follower: try Follower(
        path: path, freshness: freshness, configuration: configuration, environment: environment))
  }

  /// Lets reads see every write acknowledged before this call. Does nothing unless the store
  /// follows another.
  ///
  /// - Throws: `outdated` if data that reads have seen is gone; later reads see the current store.
  ///   `corrupt`, `closed`, `usedAfterFork`, `outOfMemory`, `system`: reads then see the same state
  ///   as before, or throw the same error.
  /// - Complexity: the same as for a read that finds new records.
  public func catchUp() throws(StoreError) { try follower?.catchUp() }

  /// The reader that a read uses.
  @inlinable
  var currentReader: Reader {
    get throws(StoreError) { if let follower { try follower.reader } else { reader } }
  }

  /// The engine that reads see.
  var currentEngine: Engine {
    get throws(StoreError) { if let follower { try follower.engine } else { engine } }
  }
}

extension Store {
  /// The process that holds a store's lock, and its start time. `nil` if none does or it is
  /// unknown.
  package static func owner(at path: String) -> (processID: Int32, since: Timestamp?)? {
    guard
      let directory = try? Directory(path: path, fileSystem: SystemFileSystem(), readOnly: true),
      let lock = try? directory.openFile(FileName.lock, mode: .readOnly),
      let identity = lock.identity, let owner = LockOwner.processID(of: identity)
    else { return nil }
    return (owner, LockOwner.startTime(of: owner))
  }
}
