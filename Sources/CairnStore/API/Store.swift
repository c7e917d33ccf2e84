/// An embedded key-value store: bytes in, bytes out, in one directory.
///
/// Values are appended to a log of memory-mapped segments and found through a hash index in
/// memory. What an acknowledged write survives is the choice of ``Durability``. A damaged byte on
/// disk is an error for the key it belongs to, never a wrong value and never a missing one.
///
///     let store = try Store(path: "/var/lib/example/blobs")
///     try store.setValue("hello", forKey: "greeting", lifetime: .seconds(60))
///     let value = try store.value(forKey: "greeting")
///     try store.close()
///
/// All methods may be called from any thread; each is linearizable per key: it takes effect at
/// one moment between its call and its return. Calls block for as long as the memory or the disk
/// takes. A get, or a set of class `process` or `interval`, that stays in the page cache takes less than a
/// thread hop: call it from async code as it is. A durable write, which is the default, waits for a sync of the
/// disk, and trims, compactions and backups take long: async code calls them through `perform`.
public final class Store: Sendable {
  @usableFromInline let engine: Engine
  /// The engine's. A reference of its own, since callers that inline a read would count another that they find by way of
  /// the engine.
  @usableFromInline let reader: Reader
  /// What reads go through in a store that follows another process; the engine has no entries then.
  @usableFromInline let follower: Follower?
  /// Where asynchronous calls do their work.
  package let workers: WorkQueue
  /// Where writes are entered that tasks may not wait for: long work does not hold them up.
  package let entering: WorkQueue

  /// The directory, as it was given.
  public let path: String

  /// Opens the store at a path for reading and writing, or makes one there.
  ///
  /// Opening a store that was closed reads a checkpoint's header alone; the index comes as keys are
  /// asked for. After a crash it reads the headers of what was written since the last checkpoint, and
  /// finds the end of the log.
  ///
  /// - Parameters:
  ///   - path: a directory. Its parent must exist. A new one gets mode 0700, its files 0600.
  ///   - configuration: see ``StoreConfiguration``.
  /// - Throws: `locked` where it is open already, here or in another process; `noStore` where
  ///   there is none and none is to be made; `corrupt` naming file and offset where a durable
  ///   part is damaged (nothing is changed then); `notAStore`, `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `noSpace`, `system`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) where the checkpoint is damaged.
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

  /// Opens the store at a path for reading. Nothing on disk is changed, also where the store was
  /// not closed. Several readers may have it open at once, but no writer beside them.
  ///
  /// - Throws: as `init(path:configuration:)`; every write throws `readOnly`.
  /// - Complexity: O(segments) after a close, O(records since the last checkpoint) after a crash,
  ///   O(records) where the checkpoint is damaged.
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

  /// Opens a store in an environment of the caller's: for simulations.
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

  /// Closes the store, if `close` was not called. Errors go to the log: call `close` to have them thrown.
  deinit { closeAtEnd() }

  // MARK: State

  /// How many keys a read would find. Includes keys whose records are damaged; reading one throws.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`. A damaged record counts unless its lifetime is known to have
  ///   ended.
  /// - Complexity: O(1) where no entry can expire. Else O(expired entries), in memory, and a look at 4 bytes for
  ///   each 64 keys of those parts of the index that have any. Reads the records of entries that expire in this
  ///   very moment, and once those of entries with an idle limit that may have expired, and of segments in which
  ///   something has expired since they were written in an earlier session.
  public func count() throws(StoreError) -> Int { try currentEngine.trimmer.expiry.count() }

  /// Whether a read would find no key; as `count()`.
  public var isEmpty: Bool { get throws(StoreError) { try count() == 0 } }

  /// The state of the store.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments).
  public func statistics() throws(StoreError) -> StoreStatistics { try currentEngine.statistics() }

  /// Makes every write durable that was acknowledged before the call, whatever class it asked for.
  ///
  /// - Throws: `durabilityUnknown` where the sync fails; the store is poisoned then: it takes no
  ///   more writes, reads go on, and opening it anew recovers what is on disk.
  public func sync() throws(StoreError) { try engine.log.sync() }

  /// Makes a checkpoint now. The store does so by itself.
  package func checkpoint() throws(StoreError) { try engine.checkpointer.checkpoint() }

  /// Compacts everything as on a full disk: for tests.
  ///
  /// - Parameter isEnough: asked after each piece of a segment.
  package func compactByPieces(
    of byteCount: Int, until isEnough: () -> Bool = { false }
  ) throws(StoreError) {
    try engine.compactor.compactByPieces(of: byteCount, until: isEnough)
  }

  /// For tests: the keys, the least recently accessed first.
  package func keysByRecency() throws -> [[UInt8]] { try currentReader.keysByRecency() }

  /// The version of the newest write.
  package var lastVersion: UInt64 { (try? currentEngine)?.log.lastSequence ?? 0 }

  /// Whether it was noticed that the directory was removed.
  package var hasVanished: Bool { engine.session.hasVanished }

  /// Empties a store whose directory was removed, in memory; the observer is told.
  package func abandon() { engine.totalRemoval.abandon() }

  package var writeFailure: SystemFailure? { engine.log.failure }

  /// For tests: what is counted wrongly of the segments.
  package func auditUsage(mayCountMore: Bool = false) throws(StoreError) -> [String] {
    try currentEngine.auditUsage(mayCountMore: mayCountMore)
  }

  /// Makes every write durable, marks the store clean and gives its lock up. Every later call
  /// throws `closed`; a second `close` does nothing.
  ///
  /// Nothing acknowledged is lost without it, but the next open must then find the end of the log.
  /// Zero-copy reads that are under way go on undisturbed.
  ///
  /// - Throws: as `sync()`; `vanished`; and where the mark cannot be written. It is closed all the same and its lock is given up, so
  ///   there is nothing to be tried again: what was durable is safe, and the next open finds what there is of the
  ///   rest.
  public func close() throws(StoreError) { _ = try closeOnce() }

  /// As `close`, and tells whether this call closed it: of several at once, one does.
  package func closeOnce() throws(StoreError) -> Bool {
    if let follower { try follower.close() } else { try engine.close() }
  }

  /// As `close`, where nobody is there to be told of an error: the log is.
  package func closeAtEnd() {
    if let follower { _ = try? follower.close() } else { engine.closeAtEnd() }
  }

  /// Checks every byte of every file of a store that nobody has open for writing, and compares its checkpoint with
  /// the log.
  ///
  /// - Parameters:
  ///   - path: the store.
  ///   - progress: called after each segment, on this thread.
  /// - Returns: what was found; damage is in the report, not thrown.
  /// - Throws: `locked`, `noStore`, `notAStore`, `unsafeFile`, `system`: where it could not be
  ///   checked.
  /// - Complexity: O(bytes). Takes memory for the manifest and a window of 1 MiB; where there is a checkpoint, also as
  ///   much as the index of the open store, and a descriptor for each segment.
  public static func verify(
    path: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> VerificationReport {
    try verify(path: path, environment: .system(), progress: progress)
  }

  /// Checks a store in an environment of the caller's: for simulations.
  package static func verify(
    path: String, environment: Environment, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> VerificationReport {
    try Verifier.verify(path: path, environment: environment, progress: progress)
  }

  /// Copies everything sound in a store that may be damaged into a new store. Nothing is changed in
  /// the old one, and nobody may have it open for writing.
  ///
  /// The copy has the same keys with the same values, metadata, costs, ends of lifetime, idle
  /// limits, times of writing and, as long as they are known, versions. What is copied has passed
  /// its checksums, which tell also where a record belongs. Where the newest record of a key is
  /// damaged, the key is left out: an older value is not put in its place. Where opening the
  /// store works and no record is lost, the copy holds exactly what opening gives, except that values of
  /// which opening says only when they are read that they are damaged are left out. A checkpoint may
  /// let a store be opened although records are lost; a salvage does without. Of a damaged batch at the end of the
  /// log, which opening discards, it copies what is sound. Docs/Durability/Salvage.md tells
  /// what is decided in which case.
  ///
  /// `isComplete` in the report says whether nothing was left out that a write may have been told was stored.
  ///
  /// A record that is lost with its key may have been a newer value or a removal, so an older
  /// value of a key may be back; `warnings` in the report says so. Check it before the copy is
  /// used in the place of the store.
  ///
  /// - Parameters:
  ///   - path: the store. It need not have a manifest, nor all of its files.
  ///   - destination: a path where nothing is, or an empty directory, outside the store. When the
  ///     call returns, the new store is durable there. When it throws, the directory is empty; after
  ///     a crash it holds a file `UNFINISHED-COPY`, and opening it is refused.
  ///   - progress: called now and then, on this thread.
  /// - Returns: what was copied and what was not; damage is in the report, not thrown.
  /// - Throws: `locked` where a process has the store open for writing; `noStore`, `notAStore`;
  ///   `unusableDestination`; `unsupportedVersion` where a part was written by a version of the
  ///   format that this version does not read; `unsafeFile`, `unsupportedFileSystem`, `noSpace`,
  ///   `system`.
  /// - Complexity: O(bytes). Takes memory for all keys and for windows of 1 MiB, not for values.
  @discardableResult
  public static func salvage(
    path: String, to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> SalvageReport {
    try salvage(path: path, to: destination, environment: .system(), progress: progress)
  }

  /// Salvages in an environment of the caller's: for simulations.
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
