/// Writes from async code. They run at once if they need not wait, otherwise on another thread.
extension Engine {
  /// The largest value that is appended on a task's thread.
  private static var atOnceByteLimit: Int { 64 << 10 }

  @usableFromInline
  func start(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?
  ) throws(StoreError) -> StartedWrite<CompareAndSetResult, StoreError> {
    try start(
      value, forKey: key, options: options, durability: durability, expecting: .anything)
  }

  @usableFromInline
  func start(
    _ value: RawSpan, forKey key: RawSpan, expecting version: SequenceNumber?,
    options: EntryOptions, durability: Durability?
  ) throws(StoreError) -> StartedWrite<CompareAndSetResult, StoreError> {
    try start(
      value, forKey: key, options: options, durability: durability,
      expecting: version.map { .version($0) } ?? .absent)
  }

  private func start(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    expecting expectation: Expectation
  ) throws(StoreError) -> StartedWrite<CompareAndSetResult, StoreError> {
    try session.checkWritable()
    let (result, pending) = try tellingRemovals(ofWriteTo: key) { (removals) throws(StoreError) in
      try enterAtOnce(
        value, forKey: key, options: options, durability: durability, expecting: expectation,
        removals: &removals)
    }
    if !pending.isLeft { return .entered(result, pending) }
    let (key, value) = (key.copied(), value.copied())
    return .left { [self] () throws(StoreError) in
      try tellingRemovals(ofWriteTo: key.rawSpan) { (removals) throws(StoreError) in
        let (result, pending) = try put(
          value.rawSpan, forKey: key.rawSpan, options: options, durability: durability,
          expecting: expectation, &removals)
        return (result, slowed(pending))
      }
    }
  }

  /// Writes the value of a key if the write need not wait for a long hold of the log's lock, for
  /// growth of the log, or for an eviction. Otherwise does nothing and sets `pending.isLeft`. As
  /// with a read, the first lookup in a shard loads the shard from the checkpoint.
  func enterAtOnce(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    expecting expectation: Expectation, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    // Checking and copying a large value takes long, so another thread does it.
    if value.byteCount > Self.atOnceByteLimit || evictor.mustEvict(adding: 1) {
      return (.mismatch(current: nil), .left)
    }
    return try put(
      value, forKey: key, options: options, durability: durability, expecting: expectation,
      &removals, atOnce: true)
  }

  /// Waits for compaction if the write must. Meanwhile, the current thread makes no other write.
  func slowed(_ pending: PendingWrite) -> PendingWrite {
    if pending.slowedByteCount > 0 {
      writer.pressure.waitForCompaction(afterMakingDead: pending.slowedByteCount)
    }
    var pending = pending
    pending.slowedByteCount = 0
    return pending
  }

  /// - Parameter version: the version that the key must have, or `nil` for any version or none.
  @usableFromInline
  func startRemoval(
    ofKey key: RawSpan, expecting version: SequenceNumber?, durability: Durability?
  ) throws(StoreError) -> StartedWrite<Bool, StoreError> {
    let expectation = version.map { Expectation.version($0) } ?? .anything
    try session.checkWritable()
    _ = try session.limits.tombstoneHeader(key: key)
    // A removal that finds no key writes nothing. It waits only if its durability class requests a
    // sync.
    if session.durability(durability) == .process || version != nil,
      try !lookup.index.find(lookup.hash.hash(key), touch: false, { _ in })
    {
      return .entered(false, PendingWrite())
    }
    let key = key.copied()
    return .left { [self] () throws(StoreError) in
      var pending = PendingWrite()
      let isRemoved = try enterRemoval(
        ofKey: key.rawSpan, expecting: expectation, durability: durability, &pending)
      return (isRemoved, pending)
    }
  }

  @usableFromInline
  func start(
    _ batch: consuming BatchRecords, durability: Durability?
  ) -> StartedWrite<SequenceNumber, StoreError> {
    // An escaping closure cannot consume what it captures.
    let unwritten = Lock(Optional(batch))
    return .left { [self] () throws(StoreError) in
      var batch = unwritten.withLock { $0.take() }
      return try tellingRemovals { (removals) throws(StoreError) in
        guard let batch = batch.take() else { preconditionFailure("a batch is written once") }
        let (first, pending) = try enter(batch, durability: durability, removals: &removals)
        return (first, slowed(pending))
      }
    }
  }
}
