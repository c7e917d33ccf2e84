/// A store as it was at one moment, while writes go on.
///
///     let snapshot = try store.snapshot()
///     defer { snapshot.close() }
///     try snapshot.forEachEntry { entry in … }
///
/// It shows all of a batch or nothing, and what had expired by then as expired. Nothing that happens
/// to the store changes what it shows: neither writes nor a removal of all, nor the store's close:
/// it may be read after that, and is freed by itself. Reading it does not count as an access. All methods may be called
/// from any thread.
///
/// Making one takes no time, but that it waits where a compaction is just putting its copies in place,
/// which takes a fraction of a second; each part of the index that changes while it lives is copied once, for up
/// to 19 bytes an entry, and the disk space of what was removed meanwhile is given back when it is
/// closed.
public final class Snapshot: Sendable {
  private let engine: Engine
  private let held: Lock<SnapshotState?>
  /// The version of the newest write that it shows.
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

  /// Gives up what it holds. Every later call throws `closed`; reads under way go on. Called when the
  /// last reference goes, if not before.
  public func close() {
    let state = held.withLock { held in
      defer { held = nil }
      return held
    }
    // Out of the lock, since it frees much memory.
    withExtendedLifetime(state) {}
  }

  /// Copies all that it shows into a new store, while the store goes on.
  ///
  /// The copy is a store in its own right: with the same keys, values, versions, lifetimes and order of
  /// accesses, which opens at once. Every byte of it was read again before it becomes one. Blocks are
  /// shared with the store where the filesystem can (XFS, btrfs).
  ///
  /// - Parameters:
  ///   - destination: a path where nothing is, or an empty directory, outside the store. When the call
  ///     returns, the copy is durable there, whatever the durability of the store's writes. When it
  ///     throws, the directory is empty; after a crash it may hold a file `UNFINISHED-COPY`, and
  ///     opening it is refused.
  ///   - progress: called now and then, on this thread.
  /// - Returns: what was copied. A value that is damaged in the store is so in the copy; the report
  ///   names it.
  /// - Throws: `corrupt` where a record's head is damaged: the store needs `Store.salvage`;
  ///   `unusableDestination`, `noSpace`, `unsafeFile`, `unsupportedFileSystem`, `closed`,
  ///   `usedAfterFork`, `system`.
  /// - Complexity: O(bytes of the log), dead ones too: `Store.compact` before makes it smaller.
  @discardableResult
  public func backup(
    to destination: String, progress: (BackupProgress) -> Void = { _ in }
  ) throws(StoreError) -> BackupReport {
    try Backup(engine).copy(try state(), to: destination, progress: progress)
  }

  /// How many keys it shows.
  ///
  /// - Throws: `closed`, `usedAfterFork`, `system`. What is damaged is counted, as it is not known to have expired.
  /// - Complexity: O(1) where no entry can expire, else O(keys).
  public func count() throws(StoreError) -> Int { try engine.reader.count(in: try state()) }

  /// The value of a key, copied out, or `nil` where there was none or it had expired.
  ///
  /// - Throws: `corrupt` where the record or the value is damaged; `invalidKey`, `closed`,
  ///   `usedAfterFork`, `system`.
  public func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    guard let pinned = try pinnedValue(forKey: key) else { return nil }
    return pinned.bytes.copied()
  }

  /// Calls `body` with the value of a key where it lies; as `Store.withValue`.
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
    if engine.reader.verifiesValues { try found.record.checkValue() }
    return PinnedValue(found)
  }

  /// The value of a key with everything the store knew about it.
  ///
  /// - Throws: as `value(forKey:)`.
  public func entry(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Entry? {
    let state = try state()
    let found = try key.withBytes { (key) throws(StoreError) in
      try engine.reader.find(key, in: state, part: .all)
    }
    guard let found else { return nil }
    return try engine.reader.entry(of: found)
  }

  /// What the store knew of a key. The value is not read.
  ///
  /// - Throws: `corrupt` where the head of the record is damaged; `invalidKey`, `closed`, `usedAfterFork`, `system`.
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

  /// Whether it shows a value of the key. The value is not read.
  ///
  /// - Throws: `corrupt` where the head of the record is damaged; `invalidKey`, `closed`, `usedAfterFork`, `system`.
  public func contains(
    _ key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Bool {
    try info(forKey: key) != nil
  }

  /// Calls `body` once for each key that begins with `prefix`, in no particular order, until it returns `.stop`. `body` runs outside all locks and may use the store.
  ///
  /// - Throws: what `body` throws, unchanged; else a ``StoreError``: `corrupt` after all others were visited,
  ///   as `Store.forEachKey`.
  /// - Complexity: O(keys), whatever the prefix.
  public func forEachKey(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable, _ body: (RawSpan) throws -> Visit
  ) throws {
    let state = try state()
    try prefix.withBytes { prefix in try engine.reader.forEachKey(in: state, prefix: prefix, body) }
  }

  /// Calls `body` with what is known of each entry but for its value; as `forEachKey`.
  package func forEachHead(
    _ body: (_ key: RawSpan, _ metadata: RawSpan, _ version: UInt64) throws -> Visit
  ) throws {
    try engine.reader.forEachHead(in: try state(), body)
  }

  /// Calls `body` with each entry whose key begins with `prefix`; otherwise as `forEachKey`.
  public func forEachEntry(
    prefix: borrowing some ByteSource & ~Copyable & ~Escapable, _ body: (Entry) throws -> Visit
  ) throws {
    let state = try state()
    try prefix.withBytes { prefix in try engine.reader.forEachEntry(in: state, prefix: prefix, body)
    }
  }

  /// Calls `body` with each key; otherwise as `forEachKey(prefix:_:)`.
  public func forEachKey(_ body: (RawSpan) throws -> Visit) throws {
    try forEachKey(prefix: "", body)
  }

  /// Calls `body` with each entry; otherwise as `forEachKey`.
  public func forEachEntry(_ body: (Entry) throws -> Visit) throws {
    try forEachEntry(prefix: "", body)
  }
}

extension Store {
  /// The store as it is now, for reading while writes go on.
  ///
  /// - Throws: `closed`, `usedAfterFork`.
  /// - Complexity: O(segments).
  public func snapshot() throws(StoreError) -> Snapshot {
    guard let follower else { return try Snapshot(of: engine) }
    return try follower.atOneMoment { (engine) throws(StoreError) in try Snapshot(of: engine) }
  }
}
