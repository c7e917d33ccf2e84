extension Engine {
  @usableFromInline
  func makeRecords() throws(StoreError) -> BatchRecords {
    // Whether the store can be written to is checked later: the caller first does what a failed
    // write needs.
    try session.checkUsable()
    return BatchRecords(limits: session.limits, hash: lookup.hash, now: lookup.clock.now())
  }

  /// Writes a batch.
  ///
  /// - Returns: the version of the first operation, or 0 if the batch is empty. The other versions
  ///   follow in order.
  @usableFromInline
  @discardableResult
  func commit(
    _ batch: consuming BatchRecords, durability: Durability?
  ) throws(StoreError) -> SequenceNumber {
    var unwritten = Optional(batch)
    let (first, pending) = try tellingRemovals { (removals) throws(StoreError) in
      guard let batch = unwritten.take() else { preconditionFailure("a batch is written once") }
      return try enter(batch, durability: durability, removals: &removals)
    }
    try finish(pending)
    return first
  }

  /// Enters a batch, as `enter(_:forKey:)` enters a value.
  func enter(
    _ batch: consuming BatchRecords, durability: Durability?, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (first: SequenceNumber, pending: PendingWrite) {
    try session.checkWritable()
    let durability = session.durability(durability)
    // Spares a hopeless batch the lock, and brings the records into memory before it.
    try writer.checkRequirements(of: batch)
    if batch.operations.isEmpty {
      if !batch.requirements.isEmpty {
        try log.withLock { (appender) throws(StoreError) in
          try writer.checkRequirements(of: batch, &appender)
        }
      }
      return (0, PendingWrite(sequence: log.lastSequence, durability: durability))
    }
    let isRemoval = batch.isRemoval
    if !isRemoval { try evictor.retryFailedEviction(&removals) }
    let now = lookup.clock.now()
    lookup.noteTimeIfNeeded(now)
    var batch = batch
    var deadByteCount = 0
    for operation in batch.operations { try lookup.index.load(shardOf: operation.hash) }
    if writer.isLarge(batch) {
      if !isRemoval { try evictor.makeRoom(forByteCount: batch.byteCount, &removals) }
      let large = UnpublishedBatch(batch, now: now)
      let first = try writer.appendAside(large, forSync: durability == .durable)
      removals += large.takeEvents()
      evictor.enforceLimits(&removals)
      let last = first + UInt64(large.batch.operations.count) - 1
      return (first, PendingWrite(sequence: last, durability: durability))
    }
    let turn = try writer.takeTurn(byteCount: batch.byteCount, isRemoval: isRemoval)
    if turn.appender.unpublished != nil {
      for operation in batch.operations {
        try writer.publishPending(operation.hash, &turn.appender)
      }
    }
    try writer.checkRequirements(of: batch, &turn.appender)
    try lookup.index.makeRoom(
      for: batch.operations.lazy.filter(\.isPut).map(\.hash))
    let (segment, start, first) = try turn.appender.append(
      &batch, written: now, forSync: durability == .durable)
    for number in batch.operations.indices {
      if number % Self.groupOperationCount == 0 { prefetch(batch, from: number) }
      let operation = batch.operations[number]
      // The batch is in the log, so nothing may throw now. Lookups in loaded shards do not.
      try batch.withKey(of: operation) { (key) throws(StoreError) in
        let existing = try lookup.locate(operation.hash, key: key, now: now)
        if operation.isPut {
          writer.publish(
            operation.hash, at: segment.location(at: start + operation.offset),
            deadline: batch.deadline(of: operation, accessed: now), replacing: existing)
          deadByteCount += existing?.byteCount ?? 0
        } else if let existing {
          writer.unpublish(existing)
        }
        let cause: RemovalCause = operation.isPut ? .replaced : .removed
        if let event = writer.removalEvent(existing, key: key, cause: cause) {
          removals.append(event)
        }
      }
    }
    var isSlowed = false
    if deadByteCount > 0 { isSlowed = turn.appender.allowance.spend(deadByteCount) }
    _ = consume turn
    evictor.enforceLimits(&removals)
    return (
      first,
      PendingWrite(
        sequence: first + UInt64(batch.operations.count) - 1, durability: durability,
        slowedByteCount: isSlowed ? deadByteCount : 0)
    )
  }

  /// How many operations of a batch have their entries and records prefetched together.
  private static var groupOperationCount: Int { 16 }

  /// Prefetches the entries and then the records of the next operations, so that the waits for them
  /// overlap.
  private func prefetch(_ batch: borrowing BatchRecords, from start: Int) {
    let end = min(start + Self.groupOperationCount, batch.operations.count)
    for number in start..<end { lookup.index.prefetch(batch.operations[number].hash) }
    for number in start..<end { lookup.prefetchRecord(ofHash: batch.operations[number].hash) }
  }
}
