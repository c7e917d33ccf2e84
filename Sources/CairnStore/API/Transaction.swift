/// Reads, and writes that depend on them. The writes are made only if nothing that was read has
/// changed in the meantime.
///
/// The closure passed to `Store.transact` fills the transaction. This is optimistic concurrency
/// control (Kung and Robinson, 1981): no lock is held while the closure runs.
public struct Transaction: ~Copyable {
  package let store: Store
  @usableFromInline var batch: Batch
  /// The versions that it has read, by key: `nil` for an absent key.
  private var read: [[UInt8]: UInt64?] = [:]
  /// What it has written, by key: `nil` for a removal.
  private var written: [[UInt8]: Found?] = [:]

  /// Why a read failed. The transaction then cannot commit, even if its closure ignores the error.
  private var failure: StoreError?

  /// What a transaction finds for a key.
  package struct Found {
    package var value: [UInt8]
    package var metadata: [UInt8]
    /// 0 for a value that the transaction itself has written.
    package var version: UInt64
  }

  /// - Parameter batch: an empty batch of the store.
  init(on store: Store, _ batch: consuming Batch) {
    self.store = store
    self.batch = batch
  }

  /// The value of a key: what this transaction has written, or else what the store has. Remembers
  /// the version, or that the key is absent.
  ///
  /// Two keys may be read at different moments. If that matters, the transaction cannot commit, and
  /// the closure runs again.
  ///
  /// - Throws: see `Store.value(forKey:)`. `conflict` if the value has changed since this
  ///   transaction read it: let the closure throw it.
  /// - Complexity: O(key + value). Counts as an access.
  public mutating func value(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> [UInt8]? {
    try found(forKey: key)?.value
  }

  package mutating func found(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Found? {
    do throws(StoreError) {
      return try key.withBytes { (key) throws(StoreError) in try find(key) }
    } catch {
      failure = failure ?? error
      throw error
    }
  }

  private mutating func find(_ key: RawSpan) throws(StoreError) -> Found? {
    let bytes = key.copied()
    if let found = written[bytes] { return found }
    let entry = try store.currentReader.entry(forKey: key)
    if let version = read[bytes] {
      if version != entry?.version { throw .conflict(path: store.path, key: bytes) }
    } else {
      try batch.records.require(entry?.version, ofKey: key)
      read[bytes] = .some(entry?.version)
    }
    return entry.map { Found(value: $0.value, metadata: $0.metadata, version: $0.version) }
  }

  /// Sets the value of a key when the transaction commits. See `Batch.setValue`.
  public mutating func setValue(
    _ value: borrowing some ByteSource & ~Copyable & ~Escapable,
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try value.withBytes { (value) throws(StoreError) in
        let copy = value.copied()
        try batch.setValue(copy, forKey: key, lifetime: lifetime, options: options)
        written[key.copied()] = .some(
          Found(value: copy, metadata: options.metadataBytes, version: 0))
      }
    }
  }

  /// Removes the value of a key, if it has one, when the transaction commits.
  public mutating func removeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) {
    try key.withBytes { (key) throws(StoreError) in
      try batch.removeValue(forKey: key)
      written[key.copied()] = .some(nil)
    }
  }

  /// What to commit: everything, or only the checks of the reads if the closure failed.
  consuming func end(isFailed: Bool) throws(StoreError) -> BatchRecords {
    if let failure { throw failure }
    if !isFailed { return batch.records }
    var reads = try store.makeBatch()
    for (key, version) in read {
      try key.withBytes { (key) throws(StoreError) in
        try reads.records.require(version, ofKey: key)
      }
    }
    return reads.records
  }
}

extension Store {
  /// Reads and writes several keys, as if no other call used the store meanwhile.
  ///
  ///     try store.transact { transaction in
  ///       let pending = try transaction.value(forKey: "pending/7")
  ///       guard let pending else { return }
  ///       try transaction.removeValue(forKey: "pending/7")
  ///       try transaction.setValue(pending, forKey: "running/7")
  ///     }
  ///
  /// `body` runs outside all locks, and may see values of different moments: let it throw, not trap
  /// or loop, at what seems impossible. When it returns, the call checks that every key it has read
  /// still has the same version, or is still absent, and writes all changes as one atomic batch.
  /// Nothing can come between the check and the writes. If a key has changed, nothing is written and
  /// `body` runs again, so it must have no side effects. If `body` throws after a key that it has
  /// read has changed, it also runs again: the error may be wrong.
  ///
  /// Transactions are serializable for the keys that they read by `value(forKey:)`. Other reads
  /// from `body`, such as a count or an iteration, are not checked, and writes that do not go through
  /// the transaction take effect at once. A transaction that writes nothing checks its reads too, so
  /// what it returns is from one moment. A store that is open for reading has none: use a snapshot.
  ///
  /// The transaction keeps the keys that it has read, and keeps values that it has written twice.
  ///
  /// - Parameters:
  ///   - durability: `nil` for the configured class.
  ///   - body: reads and writes through the transaction.
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, unchanged; nothing is then written. `conflict` if other calls
  ///   changed keys that `body` had read, 100 times in a row. Otherwise see `write`.
  /// - Complexity: a commit takes O(keys read + bytes written); other writes wait for its check.
  @discardableResult
  public func transact<Result>(
    durability: Durability? = nil, _ body: (inout Transaction) throws -> Result
  ) throws -> Result {
    var attempts = TransactionAttempts()
    while true {
      var transaction = Transaction(on: self, try makeBatch())
      let result = Swift.Result { try body(&transaction) }
      var conflict: StoreError?
      do throws(StoreError) {
        try engine.commit(
          transaction.end(isFailed: result.isFailure),
          durability: result.isFailure ? .process : durability)
      } catch { conflict = error }
      guard let conflict else { return try result.get() }
      engine.session.environment.pause(try attempts.pause(after: conflict, result))
    }
  }

  /// Reads and writes several keys, as if no other call used the store meanwhile. `body` runs in the
  /// caller's isolation. One of the store's own threads checks and writes.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task is cancelled when another attempt is
  ///   due; nothing was then written.
  @discardableResult
  public nonisolated(nonsending) func transact<Result>(
    durability: Durability? = nil, _ body: (inout Transaction) throws -> Result
  ) async throws -> Result {
    var attempts = TransactionAttempts()
    while true {
      var transaction = Transaction(on: self, try makeBatch())
      let result = Swift.Result { try body(&transaction) }
      var conflict: StoreError?
      do throws(StoreError) {
        let records = try transaction.end(isFailed: result.isFailure)
        _ = try await finish(
          engine.start(records, durability: result.isFailure ? .process : durability))
      } catch { conflict = error }
      guard let conflict else { return try result.get() }
      let pause = try attempts.pause(after: conflict, result)
      do { try await Task.sleep(for: pause) } catch { throw StoreError.cancelled }
    }
  }
}

extension Result {
  fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}

/// How often a transaction is tried.
private struct TransactionAttempts {
  private static let limit = 100
  private static let longestPause = Duration.milliseconds(10)
  private var count = 0

  /// How long to wait before the next attempt: a random time, and longer after each conflict, so
  /// that transactions get out of each other's way.
  ///
  /// - Throws: the error of `body`; or `error`, if another attempt is useless.
  mutating func pause<Success>(
    after error: StoreError, _ result: Result<Success, any Error>
  ) throws -> Duration {
    count += 1
    guard case .conflict = error, count < Self.limit else {
      _ = try result.get()
      throw error
    }
    let longest = min(Self.longestPause, .microseconds(20) * (1 << min(count, 10)))
    return longest * Double.random(in: 0..<1)
  }
}
