/// A read-only view of a store at one moment, while writes continue.
///
///     let snapshot = try store.snapshot()
///     defer { snapshot.close() }
///     try snapshot.forEachEntry { entry in … }
///
/// A snapshot shows all of a batch or none of it. It omits entries that had expired when it was
/// made, and keeps entries that expire later. No later write, `removeAll` or close of the store
/// changes the snapshot, and you can read it after the store is closed. Reads do not count as
/// accesses. All methods are safe to call from any thread.
///
/// Making a snapshot takes little time. If a compaction is switching the index to its copies, the
/// call waits for a fraction of a second. While a snapshot is open, the store copies each part of
/// the index before that part first changes. The copies take up to 19 bytes per entry. The store
/// also cannot reclaim the disk space of records that the snapshot shows. Closing the snapshot
/// releases both.
public final class Snapshot: Sendable {
  private let engine: Engine
  private let held: Lock<SnapshotState?>
  /// The version of the newest write in the snapshot.
  public let version: UInt64

  init(of engine: Engine) throws(StoreError) {
    self.engine = engine
    let state = try engine.reader.takeSnapshot()
    held = Lock(state)
    version = state.lastSequence
  }

  private func state() throws(StoreError) -> SnapshotState {
    guard let state = held.withLock({ $0 }) else { throw .closed(path: engine.session.path) }
    return state
  }

  /// Releases the memory and the disk space that the snapshot holds. Later calls throw `closed`,
  /// and reads in progress finish. Releasing the last reference also closes the snapshot.
  public func close() {
    let state = held.withLock { held in
      defer { held = nil }
      return held
    }
    // Release the state outside the lock, because this frees much memory.
    withExtendedLifetime(state) {}
  }

  /// Copies every entry of the snapshot into a new store, while writes continue.
  ///
  /// The copy is an independent store with the same keys, values, versions, lifetimes and access
  /// order. It opens without recovery. The call reads back every byte before the copy becomes a
  /// store. On filesystems that can share blocks (XFS, btrfs), the copy shares them with the
  /// original.
  ///
  /// - Parameters:
  ///   - destination: a path outside the store that does not exist, or an empty directory, or an
  ///     earlier backup of the same store that nobody has opened for writing. Then only what has
  ///     changed is copied and checked, and the earlier backup stays whole until the new one has
  ///     replaced it. When
  ///     the call returns, the copy is durable, whatever the durability of the store's writes. If
  ///     the call throws, it removes the files it has written. After a crash, the directory may
  ///     contain an unfinished copy, marked by a file `UNFINISHED-COPY`. It cannot be opened as a
  ///     store.
  ///   - progress: called occasionally, on this thread.
  /// - Returns: what was copied. Values that are damaged in the store are damaged in the copy too,
  ///   and the report lists them.
  /// - Throws: `corrupt` if the head of a record is damaged (use `Store.salvage` of the
  ///   module `CairnRepair`); `unusable`, `noSpace`, `unsafeFile`,
  ///   `unsupportedFileSystem`, `closed`, `usedAfterFork`, `system`.
  /// - Complexity: O(bytes of the log), including dead records. Call `Store.compact` first for a
  ///   smaller copy.
  @discardableResult
  public func backup(
    to destination: String, progress: (WorkProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    try Backup(engine).copy(try state(), to: destination, progress: progress)
  }

  /// Copies the snapshot, on a thread of its own. See the synchronous form.
  @discardableResult
  public nonisolated(nonsending) func backup(
    to destination: String, progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) -> BackupReport {
    try await WorkQueue.performAlone { () throws(StoreError) in
      try self.backup(to: destination, progress: progress)
    }
  }

  /// The number of keys in the snapshot.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`. A damaged record does not throw. It counts,
  ///   because it may not have expired.
  /// - Complexity: O(1) if no entry can expire, otherwise O(keys).
  public func count() throws(StoreError) -> Int { try engine.reader.count(in: try state()) }

  /// A copy of the value of a key, or `nil` if the key had no unexpired value.
  ///
  /// - Throws: `corrupt` if the record or the value is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`; `outOfMemory` if there is no memory to copy the key's part of the
  ///   index for the snapshot.
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    guard let pinned = try pinnedValue(forKey: key) else { return nil }
    return pinned.bytes.copied()
  }

  /// Calls `body` with the value of a key, without copying it. See `Store.withValue`.
  public func withValue<Result>(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    _ body: (RawSpan) throws -> Result
  ) throws -> Result? {
    guard let pinned = try pinnedValue(forKey: key) else { return nil }
    return try body(pinned.bytes)
  }

  private func pinnedValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> PinnedValue? {
    let state = try state()
    let found = try key.withBytes { (key) throws(StoreError) in
      try engine.reader.find(key, in: state, part: .all)
    }
    guard let found else { return nil }
    try engine.reader.check(found.record)
    return PinnedValue(found)
  }

  /// The value of a key, with its metadata and all information about it.
  ///
  /// - Throws: see `value(forKey:)`.
  public func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Entry<[UInt8], [UInt8]>? {
    let state = try state()
    let found = try key.withBytes { (key) throws(StoreError) in
      try engine.reader.find(key, in: state, part: .all)
    }
    guard let found else { return nil }
    return try engine.reader.entry(of: found)
  }

  /// Information about a key: version, times, sizes and cost. Does not read the value.
  ///
  /// - Throws: `corrupt` if the head of the record is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  public func info(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> EntryInfo? {
    let state = try state()
    let found = try key.withBytes { (key) throws(StoreError) in
      try engine.reader.find(key, in: state, part: .head)
    }
    guard let found else { return nil }
    return engine.reader.info(of: found)
  }

  /// Whether the key has a value in the snapshot. Does not read the value.
  ///
  /// - Throws: `corrupt` if the head of the record is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  public func contains(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Bool {
    try info(forKey: key) != nil
  }

  /// Calls `body` once for each key that begins with `prefix`, in no particular order, until `body`
  /// returns `.stop`. `body` runs outside all locks and may use the store.
  ///
  /// - Throws: any error of `body`, unchanged. Otherwise a ``StoreError``. If a record is damaged,
  ///   the call visits all other keys first and then throws `corrupt`.
  /// - Complexity: O(keys), whatever the prefix.
  public func forEachKey(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable = "",
    _ body: (RawSpan) throws -> Visit
  ) throws {
    let state = try state()
    try prefix.withBytes { prefix in try engine.reader.forEachKey(in: state, prefix: prefix, body) }
  }

  /// Calls `body` with the head of each entry; otherwise like `forEachKey`.
  package func forEachHead(
    _ body: (_ key: RawSpan, _ metadata: RawSpan, _ version: UInt64) throws -> Visit
  ) throws {
    try engine.reader.forEachHead(in: try state(), body)
  }

  /// Calls `body` with each entry whose key begins with `prefix`; otherwise like `forEachKey`.
  public func forEachEntry(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable = "",
    _ body: (Entry<[UInt8], [UInt8]>) throws -> Visit
  ) throws {
    let state = try state()
    try prefix.withBytes { prefix in try engine.reader.forEachEntry(in: state, prefix: prefix, body)
    }
  }

}

extension Store {
  /// A read-only view of the store at this moment. Writes to the store do not change it.
  ///
  /// - Throws: `closed`, `usedAfterFork`. In a store that follows another process, also the errors
  ///   of `catchUp()`.
  /// - Complexity: O(segments).
  public func snapshot() throws(StoreError) -> Snapshot {
    guard let follower else { return try Snapshot(of: engine) }
    return try follower.atOneMoment { (engine) throws(StoreError) in try Snapshot(of: engine) }
  }
}
