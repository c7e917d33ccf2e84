/// Large batches: other writers continue while a batch is written and added to the index.
extension Writer {
  /// Whether other writers would have to wait too long for a batch.
  func isLarge(_ batch: borrowing BatchRecords) -> Bool {
    batch.operations.count >= session.configuration.asideOperationCount
      || batch.byteCount >= session.limits.asideByteCount
  }

  /// Writes a batch outside the log, appends it, and publishes it a few operations at a time.
  ///
  /// - Returns: the number of its first operation.
  func appendAside(
    _ batch: UnpublishedBatch, forSync: Bool
  ) throws(StoreError) -> SequenceNumber {
    let (byteCount, isRemoval) = (batch.batch.byteCount, batch.batch.isRemoval)
    let first = try writingAside(byteCount: byteCount, isRemoval: isRemoval) {
      () throws(StoreError) in
      let first: SequenceNumber
      do throws(StoreError) { first = try write(batch, forSync: forSync) } catch {
        let end = SegmentHeader.byteCount + batch.batch.byteCount + RecordHeader.rollByteCount
        guard case .noSpace = error, batch.batch.isRemoval,
          end <= session.configuration.segmentByteLimit
        else { throw error }
        // On a full disk, the active segment has room for a removal.
        let turn = try takeTurn(byteCount: byteCount, isRemoval: true)
        try checkRequirements(of: batch.batch, &turn.appender)
        let (segment, start, number) = try turn.appender.append(
          &batch.batch, written: batch.now, forSync: forSync)
        place(batch, in: segment, at: start, &turn.appender)
        first = number
      }
      do throws(StoreError) { try publish(batch) } catch {
        if case .poisoned(let cause) = error { log.poison(cause) }
        throw error
      }
      return first
    }
    // If the segment was rolled in the meantime, this batch kept it from being sealed.
    session.wakeHousekeeping()
    return first
  }

  private func write(
    _ batch: UnpublishedBatch, forSync: Bool
  ) throws(StoreError) -> SequenceNumber {
    let start = SegmentHeader.byteCount
    let byteCount = batch.batch.byteCount
    return try appendAside(
      byteCount: byteCount, isRemoval: batch.batch.isRemoval, forSync: forSync, isBatch: true
    ) { (segment, first) throws(StoreError) in
      try batch.forEachShard { (hashes) throws(StoreError) in try lookup.index.makeRoom(for: hashes)
      }
      batch.batch.seal(
        at: start, in: segment.header, firstSequence: first, written: batch.now, syncMark: 0)
      batch.batch.count(in: segment.usage, at: start, firstSequence: first, isLive: false)
      try batch.batch.forEachChunk { (offset, bytes) throws(StoreError) in
        try segment.write(bytes, at: start + offset, byCalls: true)
      }
    } unless: { (appender) throws(StoreError) in
      try checkRequirements(of: batch.batch, &appender)
      return nil
    } _: { (appender, first) throws(StoreError) in
      guard let segment = appender.active else { preconditionFailure("no segment was entered") }
      appender.nextSequence = first + UInt64(batch.batch.operations.count)
      appender.start(in: segment, at: start + byteCount)
      place(batch, in: segment, at: start, &appender)
      return first
    }
  }

  /// Marks a batch as being in the log, with none of it in the index.
  private func place(
    _ batch: UnpublishedBatch, in segment: Segment, at start: Int, _ appender: inout Appender
  ) {
    let firstTick = lookup.index.recency.advance(by: batch.batch.operations.count)
    batch.place(in: segment, at: start, firstTick: firstTick)
    appender.unpublished = batch
  }

  /// Throws `conflict` unless every key has what a batch requires. Called under the log's
  /// lock, right before the batch is appended.
  func checkRequirements(
    of batch: borrowing BatchRecords, _ appender: inout Appender
  ) throws(StoreError) {
    if appender.unpublished != nil {
      for requirement in batch.requirements { try publishPending(requirement.hash, &appender) }
    }
    try checkRequirements(of: batch)
  }

  /// The same check without the lock, so it may be stale by the time it returns.
  func checkRequirements(of batch: borrowing BatchRecords) throws(StoreError) {
    let now = lookup.clock.now()
    for requirement in batch.requirements {
      try lookup.index.load(shardOf: requirement.hash)
      let existing = try lookup.locate(
        requirement.hash, key: requirement.key.rawSpan, now: now, for: requirement.expectation)
      if existing.mismatch(requirement.expectation) != nil {
        throw .conflict(path: session.path, key: requirement.key)
      }
    }
  }

  // MARK: Publishing

  /// Publishes a batch.
  private func publish(_ batch: UnpublishedBatch) throws(StoreError) {
    defer { log.wakeAll() }
    let count = min(64, max(1, session.configuration.asideOperationCount / 2))
    var pieceCount = 0
    while true {
      let isDone = try log.withLock { (appender) throws(StoreError) in
        guard appender.unpublished === batch else {
          // Either `removeAll` took the batch, or another write failed to publish it.
          if let failure = appender.failure { throw StoreError.poisoned(cause: failure) }
          return true
        }
        let hashes = batch.nextHashes(count)
        for hash in hashes { lookup.index.prefetch(hash) }
        for hash in hashes { lookup.prefetchRecord(ofHash: hash) }
        for _ in 0..<count {
          guard let number = batch.takeNext() else {
            appender.unpublished = nil
            appender.allowance.spendAside(batch.deadByteCount)
            return true
          }
          try publish(number, of: batch, &appender)
        }
        return false
      }
      if isDone { return }
      pieceCount += 1
      // Let threads that wait for the lock take it.
      if pieceCount % 32 == 0 { session.environment.pause(.microseconds(50)) }
    }
  }

  /// Publishes a pending batch's operations on a key, before a write looks up the key.
  func publishPending(_ hash: UInt64, _ appender: inout Appender) throws(StoreError) {
    guard let batch = appender.unpublished else { return }
    for number in batch.take(hash) { try publish(number, of: batch, &appender) }
  }

  private func publish(
    _ number: Int, of batch: UnpublishedBatch, _ appender: inout Appender
  ) throws(StoreError) {
    let operation = batch.batch.operations[number]
    // Room was made before, but other writes may have taken it.
    if operation.isPut {
      do throws(StoreError) { try lookup.index.makeRoom(operation.hash) } catch {
        // The batch is in the log, but cannot be added to the index.
        appender.failure = error.asFailure
        appender.unpublished = nil
        throw StoreError.poisoned(cause: error.asFailure)
      }
    }
    try batch.batch.withKey(of: operation) { (key) throws(StoreError) in
      // This does not throw, because the shard was loaded before.
      let existing = try lookup.locate(operation.hash, key: key, now: batch.now)
      if operation.isPut {
        publish(
          operation.hash, at: batch.location(of: operation),
          deadline: batch.batch.deadline(of: operation, accessed: batch.now), replacing: existing,
          tick: batch.tick(of: number))
        batch.deadByteCount += existing?.byteCount ?? 0
        batch.segment?.usage.revive(byteCount: operation.byteCount)
      } else if let existing {
        unpublish(existing)
      }
      if let event = removalEvent(existing, key: key, cause: operation.isPut ? .replaced : .removed)
      {
        batch.note(event, of: number)
      }
    }
  }
}
