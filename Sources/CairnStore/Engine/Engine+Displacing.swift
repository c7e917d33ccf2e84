/// Removing a value whose replacement is kept outside the store.
extension Engine {
  /// Removes the key's value, fresh or expired, if it is as expected, and calls `place`.
  ///
  /// - Parameter place: called under the log's lock, with the newest version. Every later write is
  ///   newer. Until `displace` returns, a read finds either the old value or the placed one.
  /// - Returns: the write for `finish` to complete, or `nil` if the value was not as expected. In
  ///   that case, nothing was done.
  func displace(
    _ key: RawSpan, expecting expectation: Expectation, durability: Durability?,
    _ place: (_ version: SequenceNumber) -> Void
  ) throws(StoreError) -> PendingWrite? {
    try session.checkWritable()
    let durability = session.durability(durability)
    let template = try session.limits.tombstoneHeader(key: key)
    let now = lookup.clock.now()
    let hash = lookup.hash.hash(key)
    try lookup.index.load(shardOf: hash)
    // Most keys are absent. For those, no record is needed and no session begins.
    var isExpected = true
    let isPlaced = try log.withLock { (appender) throws(StoreError) -> Bool in
      // After a close or a failure, nothing may be placed, because memory would keep it.
      try appender.checkWritable(path: session.path)
      if appender.unpublished != nil { try writer.publishPending(hash, &appender) }
      let existing = try lookup.locate(hash, key: key, now: now, for: expectation)
      isExpected = existing.mismatch(expectation) == nil
      guard isExpected, existing == nil else { return false }
      place(appender.nextSequence - 1)
      return true
    }
    if isPlaced { return pendingAbsence(expectation, durability) }
    if !isExpected { return nil }
    var event: RemovalEvent?
    let sequence = try writer.withRoom(
      byteCount: template.byteCount + RecordHeader.syncMarkByteCount, isRemoval: true
    ) { (appender: inout Appender) throws(StoreError) -> SequenceNumber? in
      if appender.unpublished != nil { try writer.publishPending(hash, &appender) }
      let existing = try lookup.locate(hash, key: key, now: now, for: expectation)
      if existing.mismatch(expectation) != nil { return nil }
      if existing != nil {
        var header = template
        _ = try appender.append(
          &header, key: key, metadata: RawSpan(), value: RawSpan(), written: now,
          forSync: durability == .durable)
      }
      place(appender.nextSequence - 1)
      if let existing { writer.unpublish(existing) }
      event = writer.removalEvent(existing, key: key, cause: .removed)
      if existing?.byteCount == nil, event != nil {
        // The version of a damaged record is unknown, but it is lower than its tombstone's.
        event = .entry(key: key.copied(), version: appender.nextSequence - 2, cause: .removed)
      }
      return appender.nextSequence - 1
    }
    if let event { writer.removalObserver?(event) }
    guard let sequence else { return nil }
    // The store may have been opened with a lower limit than before.
    evictor.keepLimits()
    return PendingWrite(sequence: sequence, durability: durability)
  }
}
