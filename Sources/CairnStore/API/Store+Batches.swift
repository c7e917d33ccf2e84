extension Store {
  /// Reads and writes several keys, as if no other call used the store meanwhile: a transaction.
  /// After a crash, the store has all of the writes or none.
  ///
  ///     try store.write { batch in
  ///       guard let job = try batch.value(forKey: "pending/7") else { return }
  ///       try batch.removeValue(forKey: "pending/7")
  ///       try batch.setValue(job, forKey: "running/7")
  ///     }
  ///
  /// `body` runs outside all locks. When it returns, the call checks that every key it has read
  /// through the batch still has the same version, or is still absent, and writes everything as one
  /// atomic batch. Nothing can come between the check and the writes. If a key has changed, nothing
  /// is written and `body` runs again, so it must have no side effects. If `body` throws after a key
  /// that it has read has changed, it also runs again: the error may be wrong.
  ///
  /// Batches are serializable for the keys that they read by `batch.value(forKey:)`. Other reads from
  /// `body`, such as a count or an iteration, are not checked, and writes that do not go through the
  /// batch take effect at once. `body` may see values of different moments: let it throw, not trap or
  /// loop, at what seems impossible. A batch that writes nothing checks its reads too, so what it
  /// returns is from one moment. A batch that reads nothing overwrites what others have written. A
  /// store that is open for reading has no batches: use a snapshot.
  ///
  /// To remove several keys atomically, use a batch: `removeValues(forKeys:)` removes them one by
  /// one. Reads of single keys may see the writes one by one. A snapshot sees all of a batch or none
  /// of it. While a batch of 8,192 writes or more is written, other writes continue. A batch that
  /// changes nothing writes nothing, but still waits until the state that it found has the requested
  /// durability.
  ///
  /// - Parameters:
  ///   - durability: `nil` for the configured class.
  ///   - body: reads and writes through the batch.
  /// - Returns: the result of `body`.
  /// - Throws: any error of `body`, unchanged; `tooLarge`; `conflict` if other calls changed keys
  ///   that `body` had read, 100 times in a row, or if a key has not the version that the batch
  ///   requires. Nothing is then written. Otherwise see `setValue`.
  /// - Complexity: O(keys read + bytes written); other writes wait for the check.
  @discardableResult
  public func write<Result>(
    durability: Durability? = nil, _ body: (inout Batch) throws -> Result
  ) throws -> Result {
    var attempts = BatchAttempts()
    while true {
      var batch = try makeBatch()
      let result = Swift.Result { try body(&batch) }
      let read = batch.read
      do throws(StoreError) {
        try engine.commit(
          batch.end(isFailed: result.isFailure),
          durability: result.isFailure ? .process : durability)
      } catch {
        pause(try attempts.pause(after: error, result) { read[$0] != nil })
        continue
      }
      return try result.get()
    }
  }

  /// Reads and writes several keys, as if no other call used the store meanwhile. `body` runs in the
  /// caller's isolation. One of the store's own threads checks and writes.
  ///
  /// - Throws: see the synchronous form. `cancelled` if the task is cancelled when another attempt is
  ///   due; nothing was then written.
  @discardableResult
  public nonisolated(nonsending) func write<Result>(
    durability: Durability? = nil, _ body: (inout Batch) throws -> Result
  ) async throws -> Result {
    var attempts = BatchAttempts()
    while true {
      var batch = try makeBatch()
      let result = Swift.Result { try body(&batch) }
      let read = batch.read
      do throws(StoreError) {
        let records = try batch.end(isFailed: result.isFailure)
        _ = try await finish(
          engine.start(records, durability: result.isFailure ? .process : durability))
      } catch {
        let pause = try attempts.pause(after: error, result) { read[$0] != nil }
        do { try await Task.sleep(for: pause) } catch { throw StoreError.cancelled }
        continue
      }
      return try result.get()
    }
  }

  /// Sets the values of many keys as one atomic batch.
  ///
  /// - Parameters: see `setValue`. The options apply to each value.
  /// - Throws: see `write`. Nothing was written, except after `durabilityUnknown`.
  @inlinable
  public func setValues(
    _ pairs: some Sequence<(key: some ByteSource, value: some ByteSource)>,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) {
    var batch = try makeBatch()
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, lifetime: lifetime, options: options)
    }
    try engine.commit(batch.records, durability: durability)
  }

  /// Sets the values of many keys as one atomic batch.
  @inlinable
  public nonisolated(nonsending) func setValues(
    _ pairs: some Sequence<(key: some ByteSource, value: some ByteSource)>,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) async throws(StoreError) {
    var batch = try makeBatch()
    for (key, value) in pairs {
      try batch.setValue(value, forKey: key, lifetime: lifetime, options: options)
    }
    _ = try await finish(engine.start(batch.records, durability: durability))
  }

  package func pause(_ duration: Duration) { engine.session.environment.pause(duration) }
}

extension Result {
  package var isFailure: Bool { if case .failure = self { true } else { false } }
}

/// How often a batch is tried.
package struct BatchAttempts {
  private static let limit = 100
  private static let longestPause = Duration.milliseconds(10)
  private var count = 0

  package init() {}

  /// How long to wait before the next attempt: a random time, and longer after each conflict, so
  /// that batches get out of each other's way.
  ///
  /// - Parameter hasRead: whether the batch has read a key.
  /// - Throws: the error of `body`; or `error`, if another attempt is useless.
  package mutating func pause<Success>(
    after error: StoreError, _ result: Result<Success, any Error>, _ hasRead: ([UInt8]) -> Bool
  ) throws -> Duration {
    count += 1
    guard case .conflict(_, let key) = error, hasRead(key), count < Self.limit else {
      _ = try result.get()
      throw error
    }
    let longest = min(Self.longestPause, .microseconds(20) * (1 << min(count, 10)))
    return longest * Double.random(in: 0..<1)
  }
}
