// The async forms. They never make a task's thread wait for a lock, free space, a sync or
// compaction. Each gives the same guarantees as its synchronous form.
//
// Cancellation never abandons a write of single keys or of a batch: the write still happens, and
// the call returns once its outcome is known.

// MARK: Writing

extension Store {
  /// Sets the value of a key, like the synchronous form, but without blocking a thread. If a value
  /// of up to 64 KiB can be appended without waiting, the call appends it directly. All other work
  /// happens on one of the store's own threads. Tasks that wait for a sync hold no thread and share
  /// the sync.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> UInt64 {
    let write = try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.start(
          value, forKey: key, options: options.with(lifetime), durability: durability)
      }
    }
    return try await finish(write).version
  }

  /// Sets the value of a key if its version is the expected one.
  @inlinable
  public nonisolated(nonsending) func compareAndSet(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, expecting version: UInt64?,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> CompareAndSetResult {
    let write = try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        try engine.start(
          value, forKey: key, expecting: version, options: options.with(lifetime),
          durability: durability)
      }
    }
    return try await finish(write)
  }

  /// Changes the value of a key without losing concurrent changes. `change` runs in the caller's
  /// isolation.
  @discardableResult
  public nonisolated(nonsending) func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil,
    _ change: (_ value: [UInt8]?) throws -> [UInt8]?
  ) async throws -> (value: [UInt8], version: UInt64)? {
    let key = key.withBytes { [UInt8](copying: $0) }
    return try await updateEntry(forKey: key, durability: durability) { entry in
      try change(entry?.value).map { ($0, options.with(lifetime).keeping(entry)) }
    }
  }

  package nonisolated(nonsending) func updateEntry(
    forKey key: [UInt8], durability: Durability?,
    _ change: (ByteEntry?) throws -> (value: [UInt8], options: EntryOptions)?
  ) async throws -> (value: [UInt8], version: UInt64)? {
    while true {
      let entry = try entry(forKey: key)
      let version = entry?.info.version
      if let (value, options) = try change(entry) {
        let result = try await compareAndSet(
          value, forKey: key, expecting: version, options: options, durability: durability)
        if case .stored(let version) = result { return (value, version) }
      } else {
        guard let version else { return nil }
        if try await compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
      }
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

  /// Adds to a counter without losing concurrent additions, and returns the new number.
  @discardableResult
  public nonisolated(nonsending) func increment(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, by amount: Int64 = 1,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> Int64 {
    let key = key.withBytes { [UInt8](copying: $0) }
    while true {
      let increment = try Increment(entry(forKey: key), by: amount, options.with(lifetime))
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

  /// Removes the values of many keys. Each removal is a separate write, and one sync covers all of
  /// them.
  @discardableResult
  public nonisolated(nonsending) func removeValues(
    forKeys keys: some Sequence<some ByteSource>, durability: Durability? = nil
  ) async throws(StoreError) -> Int {
    let keys = keys.map { $0.withBytes { [UInt8](copying: $0) } }
    return try await finishing { (store, pending) throws(StoreError) in
      try store.enterRemovals(ofKeys: keys, durability: durability, &pending)
    }
  }

  /// Makes a value's lifetime longer or shorter.
  @discardableResult
  public nonisolated(nonsending) func setLifetime(
    _ lifetime: Lifetime, forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    let key = key.withBytes { [UInt8](copying: $0) }
    return try await finishing { (store, pending) throws(StoreError) in
      try store.engine.setLifetime(
        lifetime, forKey: key.rawSpan, durability: durability, &pending)
    }
  }

  /// Removes every entry.
  ///
  /// - Parameter progress: called after each file is removed, on the thread that does the work.
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began; nothing is then removed.
  public nonisolated(nonsending) func removeAll(
    progress: @escaping @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(StoreError) {
    try await perform { (store) throws(StoreError) in try store.removeAll(progress: progress) }
  }

  /// Makes every write acknowledged before the call durable.
  public nonisolated(nonsending) func sync() async throws(StoreError) {
    try engine.session.checkWritable()
    // Another thread may hold the log's lock for a long time.
    let last = try await entering.performUncancelled { () throws(StoreError) in self.lastVersion }
    try await engine.log.waitForSync(through: last)
  }

  // MARK: Two steps

  /// Enters writes on another thread by calling `body`, and finishes them.
  private nonisolated(nonsending) func finishing<Result: Sendable>(
    _ body: @escaping @Sendable (Store, inout PendingWrite) throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await finish(
      .left { () throws(StoreError) in
        var pending = PendingWrite()
        let result = try body(self, &pending)
        return (result, pending)
      })
  }

  /// Does all the waiting that an unfinished write requires.
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

  /// Gives an entered write its promised durability. See the synchronous form.
  package nonisolated(nonsending) func finish(_ pending: PendingWrite) async throws(StoreError) {
    if pending.mustEnforceLimits {
      try await entering.performUncancelled { () throws(StoreError) in
        self.engine.evictor.enforceLimits()
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
