/// An embedded key-value store of bytes, in one directory.
///
/// Writes append values to a log of memory-mapped segments. A hash index in memory locates them.
/// ``Durability`` says what an acknowledged write survives. If a byte is damaged on disk, reads of
/// its key throw. They never return a wrong value or `nil`.
///
///     let store = try Store(path: "/var/lib/example/blobs")
///     try store.setValue("hello", forKey: "greeting", lifetime: .seconds(60))
///     let value = try store.value(forKey: "greeting")
///     try store.close()
///
/// All methods are safe to call from any thread. Each is linearizable per key: it takes effect at
/// one moment between its call and its return. Calls block for as long as the memory or the disk
/// takes. A get, or a `.process` or `.interval` set, that stays in the page cache takes less time
/// than a thread hop, so call it directly from async code. A durable write, the default, waits for
/// a disk sync, and trims, compactions and backups take long. In async code, call their async forms
/// with `await`.
public final class Store: Sendable {
  @usableFromInline let engine: Engine
  /// The engine's reader. It is a separate reference, because inlined reads that reach it through
  /// the engine would retain and release one more object.
  @usableFromInline let reader: Reader
  /// The reader's source in a store that follows another process. The engine then has no entries.
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
  /// Opening a cleanly closed store reads only a checkpoint's header, and the index loads as keys
  /// are used. After a crash, opening reads the headers of records written since the last
  /// checkpoint, and finds the end of the log.
  ///
  /// - Parameters:
  ///   - path: a directory. Its parent must exist. A new one gets mode 0700, its files 0600.
  ///   - configuration: see ``StoreConfiguration``.
  /// - Throws: `locked` if the store is already open, in this process or another; `noStore` if it
  ///   does not exist and the configuration forbids creating it; `corrupt`, with file and offset,
  ///   if a durable part is damaged (nothing is changed); `notAStore`, `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `noSpace`, `system`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) if the checkpoint is damaged.
  public init(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    engine = try Engine(
      path: path, configuration: configuration, environment: .system(), readOnly: false)
    reader = engine.reader
    follower = nil
  }

  /// Opens the store at a path for reading. Changes nothing on disk, even if the store was not
  /// closed. Several readers may have the store open at once, but not together with a writer.
  ///
  /// - Throws: see `init(path:configuration:)`; every write throws `readOnly`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) if the checkpoint is damaged.
  public init(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    engine = try Engine(
      path: path, configuration: configuration, environment: .system(), readOnly: true)
    reader = engine.reader
    follower = nil
  }

  /// Opens a store in an environment that the caller supplies: for simulations.
  package init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    engine = try Engine(
      path: path, configuration: configuration, environment: environment, readOnly: readOnly)
    reader = engine.reader
    follower = nil
  }

  init(path: String, configuration: StoreConfiguration, engine: Engine) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    self.engine = engine
    reader = engine.reader
    follower = nil
  }

  init(path: String, configuration: StoreConfiguration, follower: Follower) {
    self.path = path
    workers = WorkQueue(width: configuration.concurrentCallLimit)
    entering = WorkQueue(width: configuration.concurrentCallLimit)
    engine = follower.shell
    reader = engine.reader
    self.follower = follower
  }

  /// Closes the store if `close` was not called. Errors go to the log; call `close` to have them
  /// thrown.
  deinit { closeAtEnd() }

  // MARK: State

  /// The number of keys that a read would find. Includes keys whose records are damaged. Reading
  /// one throws.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`. A damaged record counts unless its lifetime is
  ///   known to have ended.
  /// - Complexity: O(1) if no entry can expire. Otherwise O(expired entries), in memory, plus 4
  ///   bytes read for each 64 keys in index parts with entries that can expire. Also reads the
  ///   records of entries that expire at this very moment. Once, it reads the records of entries
  ///   whose idle limit may have ended, and of segments from earlier sessions with entries that
  ///   have expired since.
  public func count() throws(StoreError) -> Int { try currentEngine.trimmer.expiry.count() }

  /// Whether a read would find no key; see `count()`.
  public var isEmpty: Bool { get throws(StoreError) { try count() == 0 } }

  /// The state of the store.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments).
  public func statistics() throws(StoreError) -> StoreStatistics { try currentEngine.statistics() }

  /// Makes every write acknowledged before the call durable, whatever its class.
  ///
  /// - Throws: `durabilityUnknown` if the sync fails. The store is then poisoned: it accepts no
  ///   more writes, reads continue, and reopening it recovers the data on disk.
  public func sync() throws(StoreError) { try engine.log.sync() }

  /// Makes a checkpoint now. The store also makes checkpoints by itself.
  package func checkpoint() throws(StoreError) { try engine.checkpointer.checkpoint() }

  /// Compacts everything as on a full disk: for tests.
  ///
  /// - Parameter isEnough: called after each piece of a segment.
  package func compactByPieces(
    of byteCount: Int, until isEnough: () -> Bool = { false }
  ) throws(StoreError) {
    try engine.compactor.compactByPieces(of: byteCount, until: isEnough)
  }

  /// The keys, the least recently accessed first: for tests.
  package func keysByRecency() throws -> [[UInt8]] { try currentReader.keysByRecency() }

  /// The version of the newest write or, in a store that follows another, of the newest write
  /// visible to its last read. Does not look for changes, so that a call that can throw reports
  /// `outdated`.
  package var lastVersion: UInt64 {
    guard let follower else { return engine.log.lastSequence }
    return follower.lastReader?.log.lastSequence ?? 0
  }

  /// Whether the store has noticed that its directory was removed.
  package var hasVanished: Bool { engine.session.hasVanished }

  /// Empties a store whose directory was removed, in memory, and tells the observer.
  package func abandon() { engine.totalRemoval.abandon() }

  package var writeFailure: SystemFailure? { engine.log.failure }

  /// Errors in the usage counts of the segments: for tests.
  package func auditUsage(mayCountMore: Bool = false) throws(StoreError) -> [String] {
    try currentEngine.auditUsage(mayCountMore: mayCountMore)
  }

  /// Makes every write durable, marks the store clean and releases its lock. Later calls throw
  /// `closed`; a second `close` does nothing.
  ///
  /// Without a close, no acknowledged write is lost, but the next open must find the end of the
  /// log. Zero-copy reads in progress continue undisturbed.
  ///
  /// - Throws: see `sync()`; `vanished`; an error if the mark cannot be written. The store is
  ///   closed and its lock released anyway, so do not retry. Durable writes are safe, and
  ///   the next open recovers as much of the rest as it finds.
  public func close() throws(StoreError) { _ = try closeOnce() }

  /// Closes the store like `close`, and returns whether this call closed it. If calls overlap, only
  /// one closes it.
  package func closeOnce() throws(StoreError) -> Bool {
    if let follower { try follower.close() } else { try engine.close() }
  }

  /// Closes the store like `close` when no caller can receive an error. Errors go to the log.
  package func closeAtEnd() {
    if let follower { _ = try? follower.close() } else { engine.closeAtEnd() }
  }

  /// Checks every byte of every file of a store that is not open for writing, and compares its
  /// checkpoint with the log.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - progress: called after each segment, on this thread.
  /// - Returns: a report, which lists any damage instead of throwing it.
  /// - Throws: `locked`, `noStore`, `notAStore`, `unsafeFile`, `system`: the store could not be
  ///   checked.
  /// - Complexity: O(bytes). Uses memory for the manifest and a window of 1 MiB. If the store has a
  ///   checkpoint, also uses as much memory as the index of the open store, and a descriptor for
  ///   each segment.
  public static func verify(
    path: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> VerificationReport {
    try verify(path: path, environment: .system(), progress: progress)
  }

  /// Checks a store in an environment that the caller supplies: for simulations.
  package static func verify(
    path: String, environment: Environment, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> VerificationReport {
    try Verifier.verify(path: path, environment: environment, progress: progress)
  }

  /// Copies everything sound in a possibly damaged store into a new store. Changes nothing in
  /// the old store, which must not be open for writing.
  ///
  /// The copy has the same keys with the same values, metadata, costs, expiry, idle limits, write
  /// times and, if known, versions. Every copied record has passed its checksums, which also verify
  /// its place. If the newest record of a key is damaged, salvage omits the key rather than restore
  /// an older value. If the store can be opened and no record is lost, the copy holds exactly the
  /// entries that opening finds, except for damaged values that an open detects only on reading. A
  /// checkpoint may let a store open although records are lost, but salvage does not use
  /// checkpoints. Opening discards a damaged batch at the end of the log, but salvage copies its
  /// sound members. Docs/Durability/Salvage.md describes each case.
  ///
  /// `isComplete` in the report says whether the copy has every write that may have been
  /// acknowledged.
  ///
  /// A record lost with its key may have been a newer value or a removal, so an older value of a
  /// key may reappear. `warnings` in the report says so. Check it before you use the copy instead
  /// of the store.
  ///
  /// - Parameters:
  ///   - path: the store. Its manifest and some of its files may be missing.
  ///   - destination: a path that does not exist, or an empty directory, outside the store. When
  ///     the call returns, the new store is durable there. If the call throws, the directory is
  ///     empty. After a crash, the directory holds a file `UNFINISHED-COPY`, and cannot be opened.
  ///   - progress: called occasionally, on this thread.
  /// - Returns: a report of the copied and lost entries. Damage is reported, not thrown.
  /// - Throws: `locked` if a process has the store open for writing; `noStore`, `notAStore`;
  ///   `unusableDestination`; `unsupportedVersion` if a part has a newer version of the
  ///   format; `unsafeFile`, `unsupportedFileSystem`, `noSpace`, `system`.
  /// - Complexity: O(bytes). Uses memory for all keys and for windows of 1 MiB, not for values.
  @discardableResult
  public static func salvage(
    path: String, to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> SalvageReport {
    try salvage(path: path, to: destination, environment: .system(), progress: progress)
  }

  /// Salvages in an environment that the caller supplies: for simulations.
  package static func salvage(
    path: String, to destination: String, environment: Environment,
    segmentByteLimit: Int = 64 << 20, clock: any WallClock = SystemClock(),
    progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> SalvageReport {
    try Salvager.salvage(
      path: path, to: destination, segmentByteLimit: segmentByteLimit, clock: clock,
      environment: environment, progress: progress)
  }
}

extension Store: CustomStringConvertible {
  /// The path.
  public var description: String { "Store at \(shown(path))" }
}
