/// Reading a store while another process writes to it.
extension Store {
  /// Opens the store at a path to read it beside the process that has it open for writing, if there is one, and to see it
  /// change.
  ///
  ///     let store = try Store(following: "/var/lib/example/blobs")
  ///     let value = try store.value(forKey: "greeting")
  ///
  /// A read finds a state that the store was in, all of a batch or nothing of it, and never an earlier state than a read
  /// before it; an iteration may see writes arrive, a snapshot does not. With `.everyRead` it finds everything that was acknowledged before it began, whatever its durability. The
  /// writer is never held up, nothing in the directory is changed, and the right to read is enough. No read counts as an
  /// access, so the order of use and idle limits are as the last checkpoint knows them, and lifetimes end by this process's
  /// clock.
  ///
  /// The writer may close the store, die or be killed, and another may follow it: reads go on. Where something is gone that
  /// was there, since the disk has failed or another store was put into the place, one call throws `outdated`, and those
  /// after it find what is there.
  ///
  /// While this is open, a writer on a full disk cuts no file off, and compacts as far as it can without. What was removed
  /// and is still read keeps its space on the disk, until the next read that goes on.
  ///
  /// A writer announces its writes where files are mapped and blocks can be reserved: on ext4, XFS and tmpfs, and with
  /// `access = .mapped`. A store that another writer has open, or none since the machine started, is seen as it is with each
  /// `catchUp`, and when its manifest changes.
  ///
  /// - Parameters:
  ///   - path: the store, on a local filesystem.
  ///   - freshness: when new writes are seen.
  ///   - configuration: see ``StoreConfiguration``; what concerns writing is of no concern.
  /// - Throws: `noStore`, `notAStore`; `corrupt` where a durable part is damaged; `unsafeFile`, `unsupportedVersion`,
  ///   `unsupportedFileSystem`, `invalidConfiguration`, `outOfMemory`, `system`. Every write throws `readOnly`.
  /// - Complexity: as `init(readingAt:configuration:)`. A read that finds something new is O(what is new); where a
  ///   compaction has replaced files or all was removed, O(segments + records since the last checkpoint). Takes memory
  ///   for the index as the writer does, and twice that for a moment.
  public convenience init(
    following path: String, freshness: Freshness = .everyRead,
    configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    try self.init(
      following: path, freshness: freshness, configuration: configuration, environment: .system())
  }

  /// Follows in an environment of the caller's: for simulations.
  package convenience init(
    following path: String, freshness: Freshness, configuration: StoreConfiguration,
    environment: Environment
  ) throws(StoreError) {
    self.init(
      path: path, configuration: configuration,
      follower: try Follower(
        path: path, freshness: freshness, configuration: configuration, environment: environment))
  }

  /// Has reads find everything that was acknowledged before this call. Does nothing in a store that follows no other.
  ///
  /// - Throws: `outdated` where something is gone that reads have found; reads go on, and find what is there. `corrupt`,
  ///   `closed`, `usedAfterFork`, `outOfMemory`, `system`: then reads find what they found before, or throw as this.
  /// - Complexity: as a read that finds something new.
  public func catchUp() throws(StoreError) { try follower?.catchUp() }

  /// What a read is asked of.
  @inlinable
  var currentReader: Reader {
    get throws(StoreError) { if let follower { try follower.reader } else { reader } }
  }

  /// What the store is made of as reads see it.
  var currentEngine: Engine {
    get throws(StoreError) { if let follower { try follower.engine } else { engine } }
  }
}

extension Store {
  /// The process that has a store open, by its lock, and since when it runs; `nil` where there is none, or nobody tells.
  package static func owner(at path: String) -> (processID: Int32, since: Timestamp?)? {
    guard
      let directory = try? Directory(path: path, fileSystem: SystemFileSystem(), readOnly: true),
      let lock = try? directory.openFile(FileName.lock, mode: .readOnly),
      let identity = lock.identity, let owner = LockOwner.processID(of: identity)
    else { return nil }
    return (owner, LockOwner.startTime(of: owner))
  }
}
