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

  /// Sets the value of a key and returns the one that it replaced.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func updateValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> [UInt8]? {
    while true {
      let old = try entry(forKey: key)
      let result = try await compareAndSet(
        value, forKey: key, expecting: old?.info.version, options: options, durability: durability)
      if case .stored = result { return old?.value }
    }
  }

  /// Removes the value of a key and returns it.
  @inlinable
  public nonisolated(nonsending) func takeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) async throws(StoreError) -> [UInt8]? {
    while let entry = try entry(forKey: key) {
      let isTaken = try await compareAndRemove(
        forKey: key, expecting: entry.info.version, durability: durability)
      if isTaken { return entry.value }
    }
    return nil
  }

  /// Adds to a counter in one call.
  @discardableResult
  public nonisolated(nonsending) func increment(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, by amount: Int64 = 1,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> Int64 {
    let key = key.withBytes { [UInt8](copying: $0) }
    while true {
      let increment = try Increment(entry(forKey: key), by: amount, options)
      let result = try await compareAndSet(
        increment.value, forKey: key, expecting: increment.version, options: increment.options,
        durability: durability)
      if case .stored = result { return increment.number }
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
    var batch = try makeBatch()
    let result = try body(&batch)
    _ = try await finish(engine.start(batch.records, durability: durability))
    return result
  }

  /// Sets the values of many keys at once, as one batch.
  @inlinable
  public nonisolated(nonsending) func setValues(
    _ pairs: some Sequence<(key: some ByteSource, value: some ByteSource)>,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) {
    var batch = try makeBatch()
    for (key, value) in pairs { try batch.setValue(value, forKey: key, options: options) }
    _ = try await finish(engine.start(batch.records, durability: durability))
  }

  /// Removes the values of many keys, each as a write of its own, with one sync for all of them.
  @discardableResult
  public nonisolated(nonsending) func removeValues(
    forKeys keys: some Sequence<some ByteSource>, durability: Durability? = nil
  ) async throws(StoreError) -> Int {
    let keys = keys.map { $0.withBytes { [UInt8](copying: $0) } }
    return try await entering.performUncancelled { () throws(StoreError) in
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
    return try await entering.performUncancelled { () throws(StoreError) in
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
    return try await entering.performUncancelled { () throws(StoreError) in
      try self.extendLifetimes(forKeys: keys, to: lifetime, durability: durability)
    }
  }

  /// Removes everything.
  ///
  /// - Parameter progress: told after each file that went, on the thread that does the work.
  /// - Throws: as the synchronous form; `cancelled` where the task was cancelled before the work began: nothing was
  ///   removed then.
  public nonisolated(nonsending) func removeAll(
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.removeAll(progress: progress) }
  }

  /// Makes every write durable that was acknowledged before the call.
  public nonisolated(nonsending) func sync() async throws(StoreError) {
    try engine.session.checkWritable()
    // The log's lock may be held for long.
    let last = try await entering.performUncancelled { () throws(StoreError) in self.lastVersion }
    try await engine.log.waitForSync(through: last)
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
    case .left(let enter): (result, pending) = try await entering.performUncancelled(enter)
    }
    try await finish(pending)
    return result
  }

  /// Gives a write that was entered the durability that it was promised; as the synchronous form.
  package nonisolated(nonsending) func finish(_ pending: PendingWrite) async throws(StoreError) {
    if pending.keepsLimits {
      try await entering.performUncancelled { () throws(StoreError) in
        self.engine.evictor.keepLimits()
      }
    }
    if pending.sequence > 0 {
      try await engine.committer.commit(pending.sequence, pending.durability)
    }
    if pending.slowedByteCount > 0 {
      try await entering.performUncancelled { () throws(StoreError) in
        self.engine.writer.pressure.waitForCompaction(afterMakingDead: pending.slowedByteCount)
      }
    }
  }
}
