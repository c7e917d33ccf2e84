extension Engine {
  // MARK: Single writes

  @usableFromInline
  package func setValue(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?
  ) throws(StoreError) -> SequenceNumber {
    let (result, pending) = try tellingRemovals(ofWriteTo: key) { (removals) throws(StoreError) in
      try put(
        value, forKey: key, options: options, durability: durability, expecting: .anything,
        &removals)
    }
    try finish(pending)
    return result.version
  }

  @usableFromInline
  package func compareAndSet(
    _ value: RawSpan, forKey key: RawSpan, expecting version: SequenceNumber?,
    options: EntryOptions, durability: Durability?
  ) throws(StoreError) -> CompareAndSetResult {
    let (result, pending) = try tellingRemovals(ofWriteTo: key) { (removals) throws(StoreError) in
      try put(
        value, forKey: key, options: options, durability: durability,
        expecting: version.map { .version($0) } ?? .absent, &removals)
    }
    try finish(pending)
    return result
  }

  /// Writes one value, and reports the replaced value and other removals to the observer.
  @inline(__always)
  func tellingRemovals(
    ofWriteTo key: RawSpan,
    _ write: (inout [RemovalEvent]) throws(StoreError) -> (CompareAndSetResult, PendingWrite)
  ) throws(StoreError) -> (CompareAndSetResult, PendingWrite) {
    try tellingRemovals { (removals: inout [RemovalEvent]) throws(StoreError) in
      let (result, pending) = try write(&removals)
      pending.replaced?.add(to: &removals, ofKey: key)
      return (result, pending)
    }
  }

  /// Performs a write, and reports its removals to the observer.
  @inline(__always)
  func tellingRemovals<Result>(
    _ write: (inout [RemovalEvent]) throws(StoreError) -> (Result, PendingWrite)
  ) throws(StoreError) -> (Result, PendingWrite) {
    var removals: [RemovalEvent] = []
    let result: Result
    let pending: PendingWrite
    do throws(StoreError) { (result, pending) = try write(&removals) } catch {
      trimmer.remover.tell(removals)
      throw error
    }
    if !removals.isEmpty { trimmer.remover.tell(removals) }
    return (result, pending)
  }

  // MARK: Two steps

  // A write is entered, then finished. In between, the caller reports the write's removals.
  // `removals` gets them even if the write throws.

  /// Enters the value of a key if the key's version is as expected.
  ///
  /// - Parameter removals: receives what the limits evict. The replaced value is in the returned
  ///   write.
  func enter(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    expecting expectation: Expectation, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    try put(
      value, forKey: key, options: options, durability: durability, expecting: expectation,
      &removals)
  }

  /// Gives an entered write its promised durability, and makes it wait for compaction if it must.
  @inline(__always)
  func finish(_ pending: PendingWrite) throws(StoreError) {
    if pending.sequence > 0 { try committer.commit(pending.sequence, pending.durability) }
    // The wait is proportional to the replaced bytes, which are about as many as the written ones.
    if pending.slowedByteCount > 0 {
      writer.pressure.waitForCompaction(afterMakingDead: pending.slowedByteCount)
    }
  }

  /// Enters writes by calling `body`, and finishes them.
  func finishing<Result>(
    _ body: (inout PendingWrite) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    var pending = PendingWrite()
    let result = try body(&pending)
    try finish(pending)
    return result
  }

  /// Checks, appends and publishes one value. Syncs nothing: see `finish`.
  ///
  /// - Parameters:
  ///   - removals: receives what the limits evict. The replaced value is in the returned write.
  ///   - atOnce: whether to leave the write (`PendingWrite.left`) rather than wait. The caller then
  ///     enforces the limits.
  @inline(__always)
  func put(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    expecting expectation: Expectation, _ removals: inout [RemovalEvent], atOnce: Bool = false
  ) throws(StoreError) -> (CompareAndSetResult, PendingWrite) {
    try session.checkWritable()
    // Frees what reads without a lock no longer use, also if the turn does not come.
    defer { Reclamation.reclaimIfDue() }
    // Throws if an earlier write left the store over its limits, and still nothing can be evicted.
    if !atOnce { try evictor.retryFailedEviction(&removals) }
    let durability = session.durability(durability)
    let forSync = durability == .durable
    let hash = lookup.hash.hash(key)
    lookup.index.prefetch(hash)
    let now = lookup.clock.now()
    lookup.noteTimeIfNeeded(now)
    // Throws if the key, the value or the metadata is too large.
    var header = try limits.putHeader(key: key, value: value, options: options, now: now)
    let byteCount = header.byteCount
    let isConditional = if case .anything = expectation { false } else { true }
    if isConditional {
      // Spares a hopeless write the lock. Checked again under it.
      let existing = try lookup.locate(hash, key: key, now: now, for: expectation)
      if let mismatch = existing.mismatch(expectation) { return (mismatch, PendingWrite()) }
    } else {
      // Shards stay loaded, and a lookup in a loaded shard does not throw. So whatever is appended
      // below is also published.
      try lookup.index.load(shardOf: hash)
    }
    let metadata = options.metadataBytes.rawSpan
    if !atOnce, byteCount >= limits.asideByteCount {
      try evictor.makeRoom(forByteCount: byteCount, &removals)
      // Appended outside the log's lock, then checked and published under it.
      let put = try writer.putAside(
        value, forKey: key, metadata: metadata, header: header, hash: hash, written: now,
        expecting: expectation, forSync: forSync)
      return entered(
        put.result, replacing: put.replaced, durability: durability, slowedByteCount: 0, &removals,
        atOnce: false)
    }

    let version: SequenceNumber
    let existing: Existing?
    var isSlowed = false
    let place: RecordPlace
    do {
      // The log is locked until `turn` ends, with this block.
      let turn = try writer.takeTurn(
        byteCount: byteCount + RecordHeader.syncMarkByteCount, isRemoval: false, atOnce: atOnce)
      // The result means nothing: the caller looks at `isLeft` first.
      guard let turn else { return (.mismatch(current: nil), .left) }
      // If a batch that was appended before holds this key, that part is published first.
      if turn.appender.unpublished != nil { try writer.publishPending(hash, &turn.appender) }
      let location: Location
      if isConditional {
        // The old value must be known before the new one is appended.
        existing = try lookup.locate(hash, key: key, now: now, for: expectation)
        if let mismatch = existing.mismatch(expectation) { return (mismatch, PendingWrite()) }
        if existing == nil { try lookup.index.makeRoom(hash) }
        (location, version) = try turn.appender.append(
          &header, key: key, metadata: metadata, value: value, written: now, forSync: forSync)
      } else {
        // While the new record is appended, the processor fetches the record it replaces.
        let seen = lookup.prefetchRecord(ofHash: hash)
        try writer.makeIndexRoom(hash, key: key, now: now)
        (location, version) = try turn.appender.append(
          &header, key: key, metadata: metadata, value: value, written: now, forSync: forSync)
        existing = try lookup.locate(hash, seen: seen, key: key, now: now)
      }
      writer.publish(hash, at: location, deadline: header.deadline { now }, replacing: existing)
      // For a memory tier, which may use the value as long as the index names this place. Only the
      // record can tell whether an entry has expired.
      place = header.canExpire ? .unknown : turn.appender.place(of: location)
      // The replaced bytes are dead now.
      if let existing { isSlowed = turn.appender.allowance.spend(existing.byteCount ?? 0) }
    }
    return entered(
      .stored(version: version), replacing: writer.replacement(existing), durability: durability,
      slowedByteCount: isSlowed ? byteCount : 0, &removals, atOnce: atOnce, place)
  }

  /// Enforces the limits after a put, unless it may not wait. Returns what the put still has to wait
  /// for: nothing after a mismatch.
  @inline(__always)
  private func entered(
    _ result: CompareAndSetResult, replacing replaced: PendingWrite.Replacement?,
    durability: Durability, slowedByteCount: Int, _ removals: inout [RemovalEvent], atOnce: Bool,
    _ place: RecordPlace = .unknown
  ) -> (CompareAndSetResult, PendingWrite) {
    guard case .stored(let version) = result else { return (result, PendingWrite()) }
    var pending = PendingWrite(
      sequence: version, durability: durability, slowedByteCount: slowedByteCount)
    pending.place = place
    pending.replaced = replaced
    pending.replaced?.index = removals.count
    if atOnce {
      pending.mustEnforceLimits = evictor.mustEvict(adding: 0)
    } else {
      evictor.enforceLimits(&removals)
    }
    return (result, pending)
  }

  /// Removes the key's value if it is as expected, and returns whether it removed one.
  @usableFromInline
  package func removeValue(
    forKey key: RawSpan, expecting version: SequenceNumber?, durability: Durability?
  ) throws(StoreError) -> Bool {
    try removeValue(
      forKey: key, expecting: version.map { .version($0) } ?? .anything, durability: durability)
  }

  func removeValue(
    forKey key: RawSpan, expecting expectation: Expectation, durability: Durability?
  ) throws(StoreError) -> Bool {
    try finishing { (pending) throws(StoreError) in
      try enterRemoval(ofKey: key, expecting: expectation, durability: durability, &pending)
    }
  }

  /// Removes the key's value if it is as expected, and tells the observer.
  ///
  /// - Parameter isOneOfMany: whether one sync follows many removals.
  /// - Returns: whether a value was removed.
  func enterRemoval(
    ofKey key: RawSpan, expecting expectation: Expectation, durability: Durability?,
    isOneOfMany: Bool = false, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    let durability = session.durability(durability)
    let sequence = try remove(
      key, expecting: expectation, forSync: durability == .durable && !isOneOfMany)
    guard let sequence else {
      pending.add(pendingAbsence(expectation, durability))
      return false
    }
    // The store may have been opened with a lower limit than before.
    evictor.enforceLimits()
    pending.add(PendingWrite(sequence: sequence, durability: durability))
    return true
  }

  func pendingAbsence(_ expectation: Expectation, _ durability: Durability) -> PendingWrite {
    guard case .anything = expectation else { return PendingWrite() }
    return committer.absence(durability)
  }

  /// Removes the key's value if it is as expected, and returns the tombstone's version.
  ///
  /// - Parameter expired: whether to remove only an expired value.
  func remove(
    _ key: RawSpan, expecting expectation: Expectation, forSync: Bool, expired: Bool = false
  ) throws(StoreError) -> SequenceNumber? {
    try session.checkWritable()
    defer { Reclamation.reclaimIfDue() }
    var header = try session.limits.tombstoneHeader(key: key)
    let now = lookup.clock.now()
    let hash = lookup.hash.hash(key)
    @inline(__always)
    func found() throws(StoreError) -> Existing? {
      let existing = try lookup.locate(hash, key: key, now: now, for: expectation)
      guard existing?.hasExpired == expired, existing.mismatch(expectation) == nil else {
        return nil
      }
      return existing
    }
    // Removing an absent key writes nothing and begins no session. An entry with this hash almost
    // certainly belongs to the key. While the log is locked, the processor fetches the record.
    switch (lookup.prefetchRecord(ofHash: hash), expectation) {
    case (.some(.none), _): return nil
    case (.entry(let seen), .anything) where !seen.entry.flags.contains(.canExpire):
      if expired { return nil }
    default:
      if try found() == nil { return nil }
    }
    let turn = try writer.takeTurn(
      byteCount: header.byteCount + RecordHeader.syncMarkByteCount, isRemoval: true)
    if turn.appender.unpublished != nil { try writer.publishPending(hash, &turn.appender) }
    guard let existing = try found() else { return nil }
    let (_, sequence) = try turn.appender.append(
      &header, key: key, metadata: RawSpan(), value: RawSpan(), written: now, forSync: forSync)
    writer.unpublish(existing)
    _ = consume turn
    if let event = writer.removalEvent(existing, key: key, cause: .removed) {
      writer.removalObserver?(event)
    }
    return sequence
  }

  /// Removes the key's value if it is damaged, and returns whether it was. A value written in the
  /// meantime stays.
  package func removeDamagedValue(
    forKey key: RawSpan, _ pending: inout PendingWrite
  ) throws(StoreError) -> Bool {
    defer { Reclamation.reclaimIfDue() }
    var damage: StoreError?
    let existing = try lookup.locate(
      lookup.hash.hash(key), key: key, now: lookup.clock.now(), damage: &damage)
    guard let existing else { return false }
    if let damage {
      guard case .corrupt = damage else { throw damage }
      return try enterRemoval(
        ofKey: key, expecting: .damaged(at: existing.location), durability: nil, &pending)
    }
    do throws(StoreError) {
      try lookup.find(key, touch: false) { (found) throws(StoreError) in
        try found.record.checkValue()
      }
      return false
    } catch {
      guard case .corrupt = error else { throw error }
      // If the key still has this version, its value is the damaged one.
      return try enterRemoval(
        ofKey: key, expecting: .version(existing.sequence), durability: nil, &pending)
    }
  }
}
