/// Writes of async code: they are entered at once where nothing has to be waited for, else on another thread.
extension Engine {
  /// The longest value that is appended on a thread that tasks run on.
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
    let (result, pending) = try tellingRemovals { (removals) throws(StoreError) in
      try enterAtOnce(
        value, forKey: key, options: options, durability: durability, expecting: expectation,
        removals: &removals)
    }
    if !pending.isLeft { return .entered(result, pending) }
    let (key, value) = ([UInt8](copying: key), [UInt8](copying: value))
    return .left { [self] () throws(StoreError) in
      try tellingRemovals { (removals: inout [RemovalEvent]) throws(StoreError) in
        try key.withBytes { (key) throws(StoreError) in
          try value.withBytes { (value) throws(StoreError) in
            let (result, pending) = try put(
              value, forKey: key, options: options, durability: durability,
              expecting: expectation, &removals)
            return (result, slowed(pending))
          }
        }
      }
    }
  }

  /// Enters the value of a key if nothing has to be waited for: no lock that another thread holds, no growth of the log,
  /// no eviction. Else nothing is done, and `pending.isLeft`.
  func enterAtOnce(
    _ value: RawSpan, forKey key: RawSpan, options: EntryOptions, durability: Durability?,
    expecting expectation: Expectation, removals: inout [RemovalEvent]
  ) throws(StoreError) -> (result: CompareAndSetResult, pending: PendingWrite) {
    // What takes long to check and to copy into the log is written elsewhere.
    if value.byteCount > Self.atOnceByteLimit || evictor.isAsked(adding: 1) {
      return (.mismatch(current: nil), .left)
    }
    return try put(
      value, forKey: key, options: options, durability: durability, expecting: expectation,
      &removals, atOnce: true)
  }

  /// Lets a write wait for compaction, on a thread where it may. One after the other: what more than these threads enter
  /// at once would not be slowed.
  func slowed(_ pending: PendingWrite) -> PendingWrite {
    if pending.slowedByteCount > 0 {
      writer.pressure.waitForCompaction(afterMakingDead: pending.slowedByteCount)
    }
    var pending = pending
    pending.slowedByteCount = 0
    return pending
  }

  /// - Parameter version: `nil`: whatever is there.
  @usableFromInline
  func startRemoval(
    ofKey key: RawSpan, expecting version: SequenceNumber?, durability: Durability?
  ) throws(StoreError) -> StartedWrite<Bool, StoreError> {
    let expectation = version.map { Expectation.version($0) } ?? .anything
    try session.checkWritable()
    _ = try session.limits.tombstoneHeader(key: key)
    // Nothing is done for a key that is not there; nor waited for, where no class asks for it.
    if session.durability(durability) == .process || version != nil,
      try !lookup.index.find(lookup.hash.hash(key), touch: .no, { _ in })
    {
      return .entered(false, PendingWrite())
    }
    let key = [UInt8](copying: key)
    return .left { [self] () throws(StoreError) in
      try key.withBytes { (key) throws(StoreError) in
        try enterRemoval(ofKey: key, expecting: expectation, durability: durability)
      }
    }
  }

  @usableFromInline
  func start(
    _ batch: consuming Batch, durability: Durability?
  ) -> StartedWrite<SequenceNumber, StoreError> {
    // A closure that is kept cannot give up what it holds.
    let unwritten = Lock(Optional(batch))
    return .left { [self] () throws(StoreError) in
      var batch = unwritten.withLock { $0.take() }
      return try tellingRemovals { (removals) throws(StoreError) in
        guard let batch = batch.take() else { preconditionFailure("it is written once") }
        let (first, pending) = try enter(batch, durability: durability, removals: &removals)
        return (first, slowed(pending))
      }
    }
  }
}
