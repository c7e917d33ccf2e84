public import CairnStore

// The async forms of writes. They never make a task's thread wait for a lock, free space, a sync or
// compaction. Each gives the same guarantees as its synchronous form.
//
// Cancellation never abandons a write of single keys or of a batch: the write still happens, and
// the call returns once the write's outcome is known.

extension DiskCache {
  /// Sets the value of a key, like the synchronous form, but blocks no thread. If a value of up to
  /// 64 KiB can be appended without waiting, the call appends it directly. All other work happens
  /// on one of the cache's own threads. Tasks that wait for a sync hold no thread and share the
  /// sync.
  @inlinable
  @discardableResult
  public nonisolated(nonsending) func setValue(
    _ value: Value, forKey key: Key, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> UInt64 {
    let began = callStart()
    let write = try started(
      value, forKey: key, expecting: nil, options: options.with(lifetime), durability: durability)
    return try await finish(write, of: key, began).version
  }

  /// Sets the value of a key if its version is the expected one.
  @inlinable
  public nonisolated(nonsending) func compareAndSet(
    _ value: Value, forKey key: Key, expecting version: UInt64?,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) -> CompareAndSetResult {
    let began = callStart()
    let write = try started(
      value, forKey: key, expecting: .some(version), options: options.with(lifetime),
      durability: durability)
    return try await finish(write, of: key, began)
  }

  /// Changes the value of a key without losing concurrent changes. `change` runs in the caller's
  /// isolation.
  @discardableResult
  public nonisolated(nonsending) func update(
    forKey key: Key, lifetime: Lifetime? = nil, options: EntryOptions = .standard,
    durability: Durability? = nil, _ change: (_ value: Value?) throws -> Value?
  ) async throws -> (value: Value, version: UInt64)? {
    while true {
      let present = try present(key)
      guard let value = try change(present?.value) else {
        guard let version = present?.info.version else { return nil }
        if try await compareAndRemove(forKey: key, expecting: version, durability: durability) {
          return nil
        }
        continue
      }
      let result = try await compareAndSet(
        value, forKey: key, expecting: present?.info.version,
        options: try stored(
          options.with(lifetime).keeping(present?.info, metadata: present?.metadata),
          keeping: present?.tags),
        durability: durability)
      if case .stored(let version) = result { return (value, version) }
    }
  }

  /// Removes the value of a key, from both tiers.
  @discardableResult
  public nonisolated(nonsending) func removeValue(
    forKey key: Key, durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    try await finishing(.removal) { [self] (entered) throws(StoreError) in
      try enterRemovals(ofKeys: [key], durability: durability, &entered) > 0
    }
  }

  /// Removes the value of a key if its version is the expected one.
  public nonisolated(nonsending) func compareAndRemove(
    forKey key: Key, expecting version: UInt64, durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    try await finishing(.removal) { [self] (entered) throws(StoreError) in
      try enterRemoval(ofKey: key, expecting: version, durability: durability, &entered)
    }
  }

  /// Removes the value of a key and returns it.
  public nonisolated(nonsending) func takeValue(
    forKey key: Key
  ) async throws(StoreError) -> Value? {
    try await finishing(.removal) { [self] (entered) throws(StoreError) in
      try enterTaking(ofKey: key, &entered)
    }
  }

  /// Reads and changes several keys, as if no other call used the cache meanwhile. `body` runs in the
  /// caller's isolation. One of the cache's own threads encodes, checks and writes.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task is cancelled when another attempt is
  ///   due; nothing was then written.
  @discardableResult
  public nonisolated(nonsending) func write<Result>(
    durability: Durability? = nil, _ body: (inout DiskBatch<Key, Value>) throws -> Result
  ) async throws -> Result {
    var attempts = BatchAttempts()
    while true {
      var batch = DiskBatch(for: self)
      let result = Swift.Result { try body(&batch) }
      let reads = batch.contents.reads
      do throws(StoreError) {
        try await commit(batch.end(isFailed: result.isFailure), durability: durability)
      } catch {
        let pause = try attempts.pause(after: error, result) { reads[$0] != nil }
        do { try await Task.sleep(for: pause) } catch { throw StoreError.cancelled }
        continue
      }
      return try result.get()
    }
  }

  /// Sets the values of many keys as one atomic batch.
  public nonisolated(nonsending) func setValues(
    _ pairs: some Sequence<(key: Key, value: Value)>, lifetime: Lifetime? = nil,
    options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) {
    var batch = DiskBatch(for: self)
    let options = options.with(lifetime)
    for (key, value) in pairs { try batch.setValue(value, forKey: key, options: options) }
    try await commit(batch.contents, durability: durability)
  }

  private nonisolated(nonsending) func commit(
    _ batch: DiskBatch<Key, Value>.Contents, durability: Durability?
  ) async throws(StoreError) {
    try await finishing(.batch) { [self] (entered) throws(StoreError) in
      try enterBatch(batch, durability: durability, &entered)
    }
  }

  /// Removes the values of many keys. Each removal is a separate write, and one sync covers all of
  /// them.
  @discardableResult
  public nonisolated(nonsending) func removeValues(
    forKeys keys: some Sequence<Key>, durability: Durability? = nil
  ) async throws(StoreError) -> Int {
    let keys = Array(keys)
    return try await finishing(.removal) { [self] (entered) throws(StoreError) in
      try enterRemovals(ofKeys: keys, durability: durability, &entered)
    }
  }

  /// Makes a value's lifetime longer or shorter.
  @discardableResult
  public nonisolated(nonsending) func setLifetime(
    _ lifetime: Lifetime, forKey key: Key, durability: Durability? = nil
  ) async throws(StoreError) -> Bool {
    try await finishing(.write) { [self] (entered) throws(StoreError) in
      try setLifetime(lifetime, of: key, durability: durability, &entered) { true } != nil
    }
  }

  /// Removes every entry.
  public nonisolated(nonsending) func removeAll() async throws(StoreError) {
    try await removeAll { _ in }
  }

  /// Removes every entry.
  ///
  /// - Parameter progress: called after each file is removed, on the thread that does the work.
  /// - Throws: see the synchronous form. `cancelled` if the task was cancelled before the work
  ///   began. Nothing was removed then.
  public nonisolated(nonsending) func removeAll(
    progress: @escaping @Sendable (WorkProgress) -> Void
  ) async throws(StoreError) {
    let began = callStart()
    try await perform { (cache) throws(StoreError) in
      try cache.removeAll(began, progress: progress)
    }
  }

  /// Makes every write acknowledged before the call durable.
  public nonisolated(nonsending) func sync() async throws(StoreError) {
    try await store.sync()
  }

  // MARK: Two steps

  /// Encodes a value and starts its write.
  @inlinable
  func started(
    _ value: Value, forKey key: Key, expecting version: UInt64??, options: EntryOptions,
    durability: Durability?
  ) throws(StoreError) -> StartedWrite<CompareAndSetResult, StoreError> {
    let tierKey = held == nil ? nil : try tierKey(key)
    var write: StartedWrite<CompareAndSetResult, StoreError>?
    try encode(value, forKey: key) { (bytes, encoded) throws(StoreError) in
      write = try start(
        encoded, bytes, of: key, expecting: version, options: options, durability: durability
      ) { [self] in if let tierKey { take($0, of: value, forKey: tierKey, options) } }
    }
    guard let write else { preconditionFailure("a coder calls its body once or throws") }
    return write
  }

  /// Makes a write of one value if that requires no wait. Otherwise returns a closure that makes
  /// the write on another thread.
  @usableFromInline
  func start(
    _ encoded: RawSpan, _ bytes: RawSpan, of key: Key, expecting version: UInt64??,
    options: EntryOptions, durability: Durability?, _ tier: @escaping @Sendable (TierStep) -> Void
  ) throws(StoreError) -> StartedWrite<CompareAndSetResult, StoreError> {
    try noteWrite(bytes)
    let options = try stored(options)
    // An entry that a mark hides must be removed first, which may have to wait.
    let mayBeHidden = version != nil && marks.isUsed
    if !mayBeHidden {
      let (result, pending) = try enter(
        encoded, bytes, of: key, tier, atOnce: true, ifWanted: { version == nil }
      ) { (removals: inout [RemovalEvent]) throws(StoreError) in
        defer { noteWritten(bytes) }
        return try store.enterAtOnce(
          encoded, forKey: bytes, expecting: version, options: options, durability: durability,
          removals: &removals)
      }
      if !pending.isLeft { return .entered(result, pending) }
    }
    let copies = (key: [UInt8](copying: bytes), value: [UInt8](copying: encoded))
    return .left { [self] () throws(StoreError) in
      let (bytes, encoded) = (copies.key.rawSpan, copies.value.rawSpan)
      // A load may have begun since, and must not keep its value.
      try noteWrite(bytes)
      while true {
        let guarded = try version.map { (version) throws(StoreError) in
          try guardedTags(bytes, of: version)
        }
        let (result, pending) = try enter(
          encoded, bytes, of: key, tier, ifWanted: { version == nil }
        ) { (removals: inout [RemovalEvent]) throws(StoreError) in
          defer { noteWritten(bytes) }
          guard let version else {
            return try store.enter(
              encoded, forKey: bytes, options: options, durability: durability,
              removals: &removals)
          }
          return try enter(
            encoded, forKey: bytes, expecting: version, guarded ?? [], options: options,
            durability: durability, removals: &removals)
        }
        if let version, waits(for: guarded ?? [], after: result, expecting: version) {
          continue
        }
        return (result, store.slowed(pending))
      }
    }
  }

  /// Finishes a started write, with all the waiting that it requires.
  @usableFromInline
  nonisolated(nonsending) func finish(
    _ write: StartedWrite<CompareAndSetResult, StoreError>, of key: Key, _ began: CallStart
  ) async throws(StoreError) -> CompareAndSetResult {
    defer { note(.write, since: began) }
    let result: CompareAndSetResult
    let pending: PendingWrite
    switch write {
    case .entered(let entered, let rest): (result, pending) = (entered, rest)
    case .left(let enter): (result, pending) = try await store.entering.performUncancelled(enter)
    }
    try await store.finish(pending)
    return result
  }
}
