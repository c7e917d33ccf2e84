// The forms of calls that async code gets: no thread that tasks run on waits for a lock, for room, for a sync or for
// compaction. Each promises what its synchronous form promises.
//
// A write of single keys or of a batch is never given up: where its task is cancelled, it still happens, and returns when
// that is known.

// MARK: Writing

extension Store {
  /// Sets the value of a key. As the synchronous form, but no thread waits: a value of up to 64 KiB is appended at once
  /// where nothing has to be waited for; everything else happens on one of the store's own threads. Tasks that wait for
  /// a sync hold no thread and share it.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> UInt64 {
    let write = try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.start(
          value, forKey: key, options: options, durability: durability)
      }
    }
    return try await finish(write).version
  }

  /// Sets the value of a key, which lives for `lifetime`.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, lifetime: Lifetime,
    durability: Durability? = nil
  ) async throws(StoreError) -> UInt64 {
    try await setValue(value, forKey: key, options: .lifetime(lifetime), durability: durability)
  }

  /// Sets the value of a key if its version is the expected one.
  @inlinable
  public nonisolated(nonsending) func compareAndSet(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64?,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> CompareAndSetResult {
    let write = try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.start(
          value, forKey: key, expecting: version, options: options, durability: durability)
      }
    }
    return try await finish(write)
  }

  /// Changes the value of a key in one call. `change` runs in the caller's isolation.
  @discardableResult
  public nonisolated(nonsending) func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil,
    _ change: (_ value: [UInt8]?) throws -> [UInt8]?
  ) async throws -> (value: [UInt8], version: UInt64)? {
    let key = key.withBytes { [UInt8](copying: $0) }
    while true {
      let entry = try entry(forKey: key)
      guard let value = try change(entry?.value) else {
        guard let version = entry?.info.version else { return nil }
        if try await compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
        continue
      }
      let result = try await compareAndSet(
        value, forKey: key, expecting: entry?.info.version,
        options: options.keeping(entry?.info, metadata: entry?.metadata), durability: durability)
      if case .stored(let version) = result { return (value, version) }
    }
  }

  /// Removes the value of a key.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let write = try key.withBytes { (key) throws(StoreError) in
      try engine.startRemoval(ofKey: key, expecting: nil, durability: durability)
    }
    return try await finish(write)
  }

  /// Removes the value of a key if its version is the expected one.
  @inlinable
  public nonisolated(nonsending) func compareAndRemove(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64,
    durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let write = try key.withBytes { (key) throws(StoreError) in
      try engine.startRemoval(ofKey: key, expecting: version, durability: durability)
    }
    return try await finish(write)
  }

  /// Writes many changes at once. `body` runs in the caller's isolation; the batch is appended on one of the store's own
  /// threads.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func write<Result>(
    durability: Durability? = nil, _ body: (inout Batch) throws -> Result
  ) async throws -> Result {
    var batch = try engine.makeBatch()
    let result = try body(&batch)
    _ = try await finish(engine.start(batch, durability: durability))
    return result
  }

  /// Sets the values of many keys at once, as one batch.
  @inlinable
  public nonisolated(nonsending) func setValues(
    _ pairs: some Sequence<(key: some ByteSource, value: some ByteSource)>,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) {
    var batch = try engine.makeBatch()
    for (key, value) in pairs { try batch.setValue(value, forKey: key, options: options) }
    _ = try await finish(engine.start(batch, durability: durability))
  }

  /// Removes the values of many keys, each as a write of its own, with one sync for all of them.
  @discardableResult
  public nonisolated(nonsending) func removeValues(
    forKeys keys: some Sequence<some ByteSource>, durability: Durability? = nil
  ) async throws(StoreError) -> Int {
    let keys = keys.map { $0.withBytes { [UInt8](copying: $0) } }
    return try await workers.performUncancelled { () throws(StoreError) in
      try self.removeValues(forKeys: keys, durability: durability)
    }
  }

  /// Has a value live for `lifetime` from now on, if that is longer than it would otherwise.
  @discardableResult
  public nonisolated(nonsending) func extendLifetime(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, to lifetime: Duration,
    durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let key = key.withBytes { [UInt8](copying: $0) }
    return try await workers.performUncancelled { () throws(StoreError) in
      try self.extendLifetime(forKey: key, to: lifetime, durability: durability)
    }
  }

  /// Has the values of many keys live longer.
  @discardableResult
  public nonisolated(nonsending) func extendLifetimes(
    forKeys keys: some Sequence<some ByteSource>, to lifetime: Duration,
    durability: Durability? = nil
  ) async throws(StoreError) -> Int {
    let keys = keys.map { $0.withBytes { [UInt8](copying: $0) } }
    return try await workers.performUncancelled { () throws(StoreError) in
      try self.extendLifetimes(forKeys: keys, to: lifetime, durability: durability)
    }
  }

  /// Removes everything.
  ///
  /// - Parameter progress: told after each file that went, on the thread that does the work.
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began: nothing was
  ///   removed then.
  public nonisolated(nonsending) func removeAll(
    progress: @escaping @Sendable (RemoveAllProgress) -> Void = { _ in }
  ) async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.removeAll(progress: progress) }
  }

  /// Makes every write durable that was acknowledged before the call.
  public nonisolated(nonsending) func sync() async throws(StoreError) {
    try engine.session.checkWritable()
    try await engine.log.waitForSync(through: lastVersion)
  }

  // MARK: Two steps

  /// Waits for what a write waits for that has begun.
  @usableFromInline
  package nonisolated(nonsending) func finish<Result>(
    _ write: StartedWrite<Result, StoreError>
  ) async throws(StoreError) -> Result {
    let result: Result
    let pending: PendingWrite
    switch write {
    case .entered(let entered, let rest): (result, pending) = (entered, rest)
    case .left(let enter): (result, pending) = try await workers.performUncancelled(enter)
    }
    try await finish(pending)
    return result
  }

  /// Gives a write that was entered the durability that it was promised; as the synchronous form.
  package nonisolated(nonsending) func finish(_ pending: PendingWrite) async throws(StoreError) {
    if pending.keepsLimits {
      try await workers.performUncancelled { () throws(StoreError) in
        self.engine.evictor.keepLimits()
      }
    }
    if pending.sequence > 0 {
      try await engine.committer.commit(pending.sequence, pending.durability)
    }
    if pending.slowedByteCount > 0 {
      try await workers.performUncancelled { () throws(StoreError) in
        self.engine.writer.pressure.waitForCompaction(afterMakingDead: pending.slowedByteCount)
      }
    }
  }
}

// MARK: What takes long

extension Store {
  /// Opens the store at a path for reading and writing, or makes one there.
  ///
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began.
  public convenience init(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) {
    try await self.init(path: path, configuration: configuration, readOnly: false)
  }

  /// Opens the store at a path for reading.
  ///
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began.
  public convenience init(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) async throws(StoreError) {
    try await self.init(path: path, configuration: configuration, readOnly: true)
  }

  private convenience init(
    path: String, configuration: StoreConfiguration, readOnly: Bool
  ) async throws(StoreError) {
    self.init(
      path: path, configuration: configuration,
      engine: try await WorkQueue.opening.perform(orThrow: .cancelled) { () throws(StoreError) in
        try Engine(
          path: path, configuration: configuration, environment: .system(), readOnly: readOnly)
      })
  }

  /// Makes every write durable, marks the store clean and gives its lock up. It waits in no line. A close is never given
  /// up.
  public nonisolated(nonsending) func close() async throws(StoreError) {
    try await WorkQueue.performAlone { () throws(StoreError) in try self.close() }
  }

  /// Removes entries until at most `count` are left.
  ///
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began. Once begun, it
  ///   goes on to its end.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toCount count: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await perform { (store) throws(StoreError) in
      try store.trim(toCount: count, order: order, durability: durability)
    }
  }

  /// Removes entries until at most so many bytes are live. Where cancelled, as `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toBytes byteCount: Int, order: TrimOrder = .leastRecentlyUsed, durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await perform { (store) throws(StoreError) in
      try store.trim(toBytes: byteCount, order: order, durability: durability)
    }
  }

  /// Removes entries until so much of the disk is free. Where cancelled, as `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func trim(
    toFreeDiskSpace byteCount: Int, durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await perform { (store) throws(StoreError) in
      try store.trim(toFreeDiskSpace: byteCount, durability: durability)
    }
  }

  /// Removes the entries of an age. Where cancelled, as `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func trim(
    olderThan age: Duration, by basis: AgeBasis = .access, durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await perform { (store) throws(StoreError) in
      try store.trim(olderThan: age, by: basis, durability: durability)
    }
  }

  /// Removes what has expired. Where cancelled, as `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func removeExpired(
    durability: Durability? = nil
  ) async throws(StoreError) -> RemovalSummary {
    try await perform { (store) throws(StoreError) in
      try store.removeExpired(durability: durability)
    }
  }

  /// Removes the entries that `isRemoved` says, which runs on one of the store's own threads. Where cancelled, as
  /// `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func remove(
    durability: Durability? = nil,
    where isRemoved: @escaping @Sendable (_ key: RawSpan, _ info: EntryInfo) throws -> Bool
  ) async throws -> RemovalSummary {
    try await perform { try $0.remove(durability: durability, where: isRemoved) }
  }

  /// Gives the space of dead records back. Where cancelled, as `trim(toCount:)`.
  @discardableResult
  public nonisolated(nonsending) func compact() async throws(StoreError) -> CompactionReport {
    try await perform { (store) throws(StoreError) in try store.compact() }
  }

  /// Does now what the store does by itself in the background. Where cancelled, as `trim(toCount:)`.
  public nonisolated(nonsending) func maintain() async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.maintain() }
  }

  /// Copies the store as it is at this moment. Where cancelled, as `trim(toCount:)`.
  ///
  /// - Parameter progress: called now and then, on the thread that does the work.
  @discardableResult
  public nonisolated(nonsending) func backup(
    to destination: String, progress: @escaping @Sendable (BackupProgress) -> Void = { _ in }
  ) async throws(StoreError) -> BackupReport {
    try await perform { (store) throws(StoreError) in
      try store.backup(to: destination, progress: progress)
    }
  }

  /// Reads everything that is sealed, to find damage while a backup is still good. It runs on a thread of its own, so it
  /// holds up no other call.
  ///
  /// - Returns: what was found; `isComplete` is `false` where the task was cancelled meanwhile.
  /// - Throws: as the synchronous form; never `cancelled`.
  @discardableResult
  public nonisolated(nonsending) func scrub(
    bytesPerSecond: Int? = nil,
    progress: @escaping @Sendable (ScrubProgress) -> Visit = { _ in .next }
  ) async throws(StoreError) -> ScrubReport {
    let isCancelled = Lock(false)
    let result = await withTaskCancellationHandler { () -> Swift.Result<ScrubReport, StoreError> in
      do throws(StoreError) {
        return .success(
          try await WorkQueue.performAlone { () throws(StoreError) in
            try self.scrub(bytesPerSecond: bytesPerSecond) {
              isCancelled.withLock { $0 } ? .stop : progress($0)
            }
          })
      } catch { return .failure(error) }
    } onCancel: {
      isCancelled.withLock { $0 = true }
    }
    return try result.get()
  }

  /// Checks every byte of every file of a store that nobody has open for writing, on a thread of its own.
  ///
  /// - Parameter progress: called after each segment, on that thread.
  public static nonisolated(nonsending) func verify(
    path: String, progress: @escaping @Sendable (VerificationProgress) -> Void = { _ in }
  ) async throws(StoreError) -> VerificationReport {
    try await WorkQueue.performAlone { () throws(StoreError) in
      try verify(path: path, progress: progress)
    }
  }

  /// Copies everything sound in a store that may be damaged into a new store, on a thread of its own.
  ///
  /// - Parameter progress: called now and then, on that thread.
  @discardableResult
  public static nonisolated(nonsending) func salvage(
    path: String, to destination: String,
    progress: @escaping @Sendable (SalvageProgress) -> Void = { _ in }
  ) async throws(StoreError) -> SalvageReport {
    try await WorkQueue.performAlone { () throws(StoreError) in
      try salvage(path: path, to: destination, progress: progress)
    }
  }
}

// MARK: The rest

extension Store {
  /// Calls the synchronous forms in async code.
  ///
  ///     let version = try store.synchronous { try $0.setValue("hello", forKey: "greeting") }
  ///
  /// They block the thread for as long as the memory or the disk takes. A durable write blocks it for a sync, and with
  /// it everything that waits for its turn on that thread.
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws.
  @inlinable
  @discardableResult
  public func synchronous<Result: ~Copyable, Failure: Error>(
    _ body: (Store) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(self)
  }

  /// Does work that throws errors of the store only on one of the store's own threads: reads of what is not in the page
  /// cache, say, which block a thread until the disk has read it. As many run at once as `concurrentCallLimit` in the
  /// configuration says; the others wait in line.
  ///
  ///     let value = try await store.perform { (store) throws(StoreError) in
  ///       try store.value(forKey: "cold")
  ///     }
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `cancelled` where the task was cancelled before the work began, at once: nothing
  ///   was done then. Once begun, the work goes on to its end.
  /// - Complexity: a hop to another thread and back.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await workers.perform(orThrow: .cancelled) { () throws(StoreError) in try body(self) }
  }

  /// Does any work with the store on one of the store's own threads.
  ///
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws; `StoreError.cancelled` where the task was cancelled before the work began:
  ///   nothing was done then. Once begun, the work goes on to its end.
  @discardableResult
  public nonisolated(nonsending) func perform<Result: Sendable>(
    _ body: @escaping @Sendable (Store) throws -> Result
  ) async throws -> Result {
    try await perform { (store) throws(StoreError) in Swift.Result { try body(store) } }.get()
  }
}

extension CompareAndSetResult {
  /// The version that was written, where nothing was expected.
  @usableFromInline
  package var version: UInt64 {
    guard case .stored(let version) = self else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }
}
