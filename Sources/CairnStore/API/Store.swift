/// An embedded key-value store of bytes, in one directory.
///
/// Writes append values to a log of memory-mapped segments, and a hash index in memory locates the
/// values. ``Durability`` says what an acknowledged write survives. If a key's bytes are damaged on
/// disk, reads of the key throw. They never return a wrong value or `nil`.
///
///     let store = try Store(path: "/var/lib/example/blobs")
///     try store.setValue("hello", forKey: "greeting", lifetime: .seconds(60))
///     let value = try store.value(forKey: "greeting")
///     try store.close()
///
/// All methods are safe to call from any thread. Operations on a key are linearizable: each takes
/// effect at one moment between its call and its return. Reads are synchronous. If the value is in
/// the page cache, a read takes less time than a thread switch, so call it directly from async
/// code. Writes have a synchronous form and an async form. Writes are durable by default, so the
/// synchronous form blocks its thread for a disk sync. In async code, use `try await` for writes,
/// trims, compactions and backups.
public final class Store: Sendable {
  @usableFromInline let engine: Engine
  /// The engine's reader. It is a separate reference, because inlined reads that reached it through
  /// the engine would retain and release one more object.
  @usableFromInline let reader: Reader
  /// Supplies the reader in a store that follows another process. The engine then has no entries.
  @usableFromInline let follower: Follower?
  /// The threads for asynchronous calls.
  package let workers: WorkQueue
  /// The threads that enter writes for tasks that must not block. Long work does not delay these
  /// writes.
  package let entering: WorkQueue

  /// The directory, as the caller gave it.
  public let path: String

  /// Opens the store at a path for reading and writing, or creates it.
  ///
  /// Opening a cleanly closed store reads little more than a checkpoint's header, and the index
  /// loads as keys are used. After a crash, opening reads the headers of the records written since
  /// the last checkpoint, to find the end of the log.
  ///
  /// - Parameters:
  ///   - path: a directory, whose parent must exist. A new directory gets mode 0700, and its files
  ///     get mode 0600.
  ///   - configuration: see ``StoreConfiguration``.
  /// - Throws: `locked` if the store is already open, in this process or another; `noStore` if the
  ///   store does not exist and the configuration forbids creating it; `corrupt`, with file and
  ///   offset, if a durable part is damaged (nothing is changed); `notAStore`, `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `noSpace`,
  ///   `outOfMemory`, `system`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) if the checkpoint is damaged.
  public convenience init(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    try self.init(
      path: path, configuration: configuration, environment: .system(), readOnly: false)
  }

  /// Opens the store at a path for reading. Changes nothing on disk, even if the store was not
  /// closed. Several processes can have a store open for reading at once, but not while one has it
  /// open for writing. To read while another process writes, use
  /// `init(following:freshness:configuration:)`.
  ///
  /// - Throws: see `init(path:configuration:)`. Every write to the returned store throws
  ///   `readOnly`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) if the checkpoint is damaged.
  public convenience init(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    try self.init(
      path: path, configuration: configuration, environment: .system(), readOnly: true)
  }

  /// Opens a store in an environment that the caller supplies, for simulations.
  package convenience init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    self.init(
      path: path, configuration: configuration,
      engine: try Engine(
        path: path, configuration: configuration, environment: environment, readOnly: readOnly))
  }

  init(
    path: String, configuration: StoreConfiguration, engine: Engine, follower: Follower? = nil
  ) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    self.engine = engine
    reader = engine.reader
    self.follower = follower
  }

  /// Closes the store if `close` was not called. Errors go to the diagnostic log; call `close` to
  /// receive them.
  deinit { closeAtEnd() }

  // MARK: State

  /// The number of keys that a read would find. Includes keys whose records are damaged, although
  /// reading them throws.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`. A damaged record counts unless its lifetime is
  ///   known to have ended.
  /// - Complexity: O(1) if no entry can expire. Otherwise O(expired entries) in memory, plus
  ///   4 bytes read for each 64 keys in index parts with entries that can expire. The call also
  ///   reads the records of a few entries to decide whether they have expired.
  public func count() throws(StoreError) -> Int { try currentEngine.trimmer.expiry.count() }

  /// The current state of the store: its keys, bytes and segments, and the result of the open.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments).
  public func statistics() throws(StoreError) -> StoreStatistics { try currentEngine.statistics() }

  /// Makes every write acknowledged before the call durable, whatever its class.
  ///
  /// - Throws: `durabilityUnknown` if the sync fails. The store is then poisoned: it accepts no
  ///   more writes, but reads continue, and reopening the store recovers the data on disk.
  ///   `poisoned`, `vanished`, `readOnly`, `closed`, `usedAfterFork`.
  public func sync() throws(StoreError) { try engine.log.sync() }

  /// Makes a checkpoint now. The store also makes checkpoints by itself.
  package func checkpoint() throws(StoreError) { try engine.checkpointer.checkpoint() }

  /// The version of the newest write or, in a store that follows another process, of the newest
  /// write visible to its last read. Does not check for changes, because only a call that can throw
  /// may report `outdated`.
  package var lastVersion: UInt64 {
    guard let follower else { return engine.log.lastSequence }
    return follower.lastReader?.log.lastSequence ?? 0
  }

  /// Whether the store takes no more writes, because a sync failed or its directory was removed.
  package var isStopped: Bool { engine.session.hasVanished || writeFailure != nil }

  package var isClosed: Bool { engine.session.isClosed }

  package var writeFailure: SystemFailure? { engine.log.failure }

  /// Makes every write durable, marks the store clean and releases its lock. Later calls throw
  /// `closed`, but a second `close` does nothing.
  ///
  /// If you do not close the store, no acknowledged write is lost, but the next open takes longer.
  /// Zero-copy reads in progress continue. Files stay mapped until the store is released.
  ///
  /// - Throws: see `sync()`; also `noSpace` or `system` if the store cannot be marked clean. The
  ///   store is closed and its lock released even if the call throws, so do not retry. Durable
  ///   writes are safe, and the next open recovers as much of the rest as it finds.
  public func close() throws(StoreError) { _ = try closeOnce() }

  /// Closes the store like `close`, and returns whether this call closed it. If calls overlap, only
  /// one closes the store.
  package func closeOnce() throws(StoreError) -> Bool {
    if let follower { try follower.close() } else { try engine.close() }
  }

  /// Closes the store like `close` when no caller can receive an error. Errors go to the diagnostic
  /// log.
  package func closeAtEnd() {
    if let follower { _ = try? follower.close() } else { engine.closeAtEnd() }
  }
}

extension Store: CustomStringConvertible {
  /// The path.
  public var description: String { "Store at \(shown(path))" }
}
