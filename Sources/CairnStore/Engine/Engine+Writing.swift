extension Engine {
  /// What a write found in the place it wrote to.
  struct Existing {
    var hash: UInt64
    var location: Location
    var segment: Segment
    /// The record's size, or `nil` where it cannot be read and its size is unknown.
    var byteCount: Int?
    /// Why it cannot be read.
    var damage: StoreError?
    var sequence: SequenceNumber
    var hasExpired: Bool
    /// When its lifetime ends, in milliseconds; `nil` where it has no end.
    var expires: Int64?
  }

  /// The version that a write may depend on.
  enum Expectation: Sendable {
    case anything
    case absent
    case version(SequenceNumber)
    /// Absent, and still wanted, which is asked under the appender's lock.
    case absentAndWanted(@Sendable () -> Bool)
    /// A record whose head is damaged, where it was found.
    case damaged(at: Location)
  }

  // MARK: Single writes

  @usableFromInline
  package func setValue(
    _ value: RawSpan, forKey key: RawSpan, attributes: EntryAttributes, durability: Durability?
  ) throws(StoreError) -> SequenceNumber {
    let result = try put(
      value, forKey: key, attributes: attributes, durability: durability, expecting: .anything)
    guard case .stored(let version) = result else {
      preconditionFailure("nothing was expected, so nothing can differ")
    }
    return version
  }

  @usableFromInline
  package func compareAndSet(
    _ value: RawSpan, forKey key: RawSpan, expecting version: SequenceNumber?,
    attributes: EntryAttributes, durability: Durability?
  ) throws(StoreError) -> CompareAndSetResult {
    try put(
      value, forKey: key, attributes: attributes, durability: durability,
      expecting: version.map { .version($0) } ?? .absent)
  }

  /// Sets the value of a key that has none, unless it is not wanted any more: `isWanted` is asked under the
  /// appender's lock, and must do no more than look.
  package func setAbsentValue(
    _ value: RawSpan, forKey key: RawSpan, attributes: EntryAttributes, durability: Durability?,
    ifWanted isWanted: @escaping @Sendable () -> Bool
  ) throws(StoreError) -> CompareAndSetResult {
    try put(
      value, forKey: key, attributes: attributes, durability: durability,
      expecting: .absentAndWanted(isWanted))
  }

  /// Waits until the writes are in the log and in the index that are just being entered.
  package func passWriters() { appender.withLock { _ in } }

  @inline(__always)
  private func put(
    _ value: RawSpan, forKey key: RawSpan, attributes: EntryAttributes, durability: Durability?,
    expecting expectation: Expectation
  ) throws(StoreError) -> CompareAndSetResult {
    try checkWritable()
    try checkLimits()
    let durability = durability ?? configuration.durability
    let hash = hash.hash(key)
    index.prefetch(hash)
    let now = clock.now()
    if index.recency.needs(now) { noteTime(now) }
    let template = try limits.putHeader(key: key, value: value, attributes: attributes, now: now)
    let keepsEnd = attributes.keepsEnd
    var looksFirst = keepsEnd
    if case .anything = expectation {
    } else {
      looksFirst = true
      if let mismatch = try locate(hash, key: key, now: now).mismatch(expectation) {
        return mismatch
      }
    }
    // A look into a shard that is loaded does not throw: what is appended is published.
    if !looksFirst { try index.load(shardOf: hash) }
    var event: RemovalEvent?
    var isSlowed = false
    // The attributes are taken apart before, so that the body holds no reference to them.
    let result = try attributes.metadata.withSpan {
      (metadata) throws(StoreError) -> CompareAndSetResult in
      if template.byteCount >= limits.asideByteCount {
        let put = try putAside(
          value, forKey: key, metadata: metadata, header: template, hash: hash, written: now,
          keepsEnd: keepsEnd, expecting: expectation, forSync: durability == .durable)
        event = put.event
        return put.result
      }
      return try withRoom(
        byteCount: template.byteCount + RecordHeader.syncMarkByteCount, isRemoval: false
      ) { (appender: inout Appender) throws(StoreError) -> CompareAndSetResult in
        if appender.unpublished != nil { try publishPending(hash, &appender) }
        var header = template
        let location: Location
        let version: SequenceNumber
        let existing: Existing?
        if looksFirst {
          existing = try locate(hash, key: key, now: now)
          if let mismatch = try existing.mismatch(expectation) { return mismatch }
          if existing == nil { try index.makeRoom(hash) }
          if keepsEnd, let end = existing?.expires, header.expires < end,
            header.flags.contains(.expiry)
          {
            header.expires = end
          }
          (location, version) = try appender.append(
            &header, key: key, metadata: metadata, value: value, written: now,
            forSync: durability == .durable)
        } else {
          // While the new record is appended, the processor fetches the one that it replaces.
          try makeRoom(hash, key: key, now: now)
          (location, version) = try appender.append(
            &header, key: key, metadata: metadata, value: value, written: now,
            forSync: durability == .durable)
          existing = try locate(hash, key: key, now: now)
        }
        publish(hash, at: location, deadline: header.deadline { now }, replacing: existing)
        if let existing { isSlowed = appender.allowance.spend(existing.byteCount ?? 0) }
        if removalObserver != nil { event = removalEvent(existing, key: key, cause: .replaced) }
        return .stored(version: version)
      }
    }
    if let event { removalObserver?(event) }
    if case .stored(let version) = result {
      keepLimits()
      try commit(version, durability)
      // In proportion to what it has replaced, which is about as long as what it has written.
      if isSlowed { waitForCompaction(afterMakingDead: template.byteCount) }
    }
    return result
  }

  /// Removes the key's value if it is as expected, and returns whether there was one.
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
    let durability = durability ?? configuration.durability
    let sequence = try remove(key, expecting: expectation, forSync: durability == .durable)
    guard let sequence else {
      if case .anything = expectation { try commitAbsence(durability) }
      return false
    }
    // A store may have been opened with a lower limit than it had.
    keepLimits()
    try commit(sequence, durability)
    return true
  }

  /// Removes the key's value if it is as expected, and returns the tombstone's version.
  func remove(
    _ key: RawSpan, expecting expectation: Expectation, forSync: Bool
  ) throws(StoreError) -> SequenceNumber? {
    try checkWritable()
    let template = try limits.tombstoneHeader(key: key)
    let now = clock.now()
    let hash = hash.hash(key)
    @inline(__always)
    func isThere(_ existing: Existing?) throws(StoreError) -> Bool {
      guard let existing, !existing.hasExpired else { return false }
      return try Optional(existing).mismatch(expectation) == nil
    }
    // Removing what is not there writes nothing, and does not begin a session either. Where there is an
    // entry with this hash it is as good as certain that there is something to remove, unless it has expired;
    // the processor fetches the record meanwhile.
    var canExpire = false
    let isFound = try index.find(hash, touch: .no) { [table] entry in
      canExpire = entry.flags.contains(.canExpire)
      table.prefetch(entry.location, count: Self.prefetchByteCount)
    }
    guard isFound else { return nil }
    if case .anything = expectation, !canExpire {
    } else {
      guard try isThere(locate(hash, key: key, now: now)) else { return nil }
    }
    var event: RemovalEvent?
    let removed = try withRoom(
      byteCount: template.byteCount + RecordHeader.syncMarkByteCount, isRemoval: true
    ) { (appender: inout Appender) throws(StoreError) -> SequenceNumber? in
      if appender.unpublished != nil { try publishPending(hash, &appender) }
      guard let existing = try locate(hash, key: key, now: now), try isThere(existing) else {
        return nil
      }
      var header = template
      let (_, sequence) = try appender.append(
        &header, key: key, metadata: RawSpan(), value: RawSpan(), written: now, forSync: forSync)
      unpublish(existing)
      event = removalEvent(existing, key: key, cause: .removed)
      return sequence
    }
    if let event { removalObserver?(event) }
    return removed
  }

  /// Removes the key's value if it is damaged, and returns whether it was. What is written meanwhile stays.
  package func removeDamagedValue(forKey key: RawSpan) throws(StoreError) -> Bool {
    guard let existing = try locate(hash.hash(key), key: key, now: clock.now()) else {
      return false
    }
    if let damage = existing.damage {
      guard case .corrupt = damage else { throw damage }
      return try removeValue(
        forKey: key, expecting: .damaged(at: existing.location), durability: nil)
    }
    do throws(StoreError) {
      try find(key, touch: .no) { (found) throws(StoreError) in try found.record.checkValue() }
      return false
    } catch {
      guard case .corrupt = error else { throw error }
      // What is still of that version was of it when its value was read.
      return try removeValue(
        forKey: key, expecting: .version(existing.sequence), durability: nil)
    }
  }

  /// Makes room in the index for a key, and asks the processor for the record that a write replaces.
  @inline(__always)
  private func makeRoom(_ hash: UInt64, key: RawSpan, now: Timestamp) throws(StoreError) {
    do {
      try index.makeRoom(hash) { [table] in
        table.prefetch($0.location, count: Self.prefetchByteCount)
      }
    } catch {
      // A key that is there needs none.
      if try locate(hash, key: key, now: now) == nil { throw error }
    }
  }

  // MARK: Batches

  @usableFromInline
  package func makeBatch() throws(StoreError) -> Batch {
    try checkWritable()
    return Batch(limits: limits, hash: hash, now: clock.now())
  }

  /// Writes a batch.
  ///
  /// - Returns: the version of its first operation; the others follow in order. 0 where it is empty.
  @usableFromInline
  @discardableResult
  package func commit(
    _ batch: consuming Batch, durability: Durability?
  ) throws(StoreError) -> SequenceNumber {
    try checkWritable()
    let durability = durability ?? configuration.durability
    if batch.operations.isEmpty {
      try commitAbsence(durability)
      return 0
    }
    let isRemoval = batch.isRemoval
    if !isRemoval { try checkLimits() }
    let now = clock.now()
    if index.recency.needs(now) { noteTime(now) }
    var batch = batch
    var events: [RemovalEvent] = []
    var deadByteCount = 0
    var isSlowed = false
    for operation in batch.operations { try index.load(shardOf: operation.hash) }
    if isLarge(batch) {
      let large = UnpublishedBatch(batch, now: now)
      let first = try appendAside(large, forSync: durability == .durable)
      keepLimits()
      try commit(first + UInt64(large.batch.operations.count) - 1, durability)
      return first
    }
    let first = try withRoom(byteCount: batch.byteCount, isRemoval: isRemoval) {
      (appender: inout Appender) throws(StoreError) -> SequenceNumber in
      try index.makeRoom(
        for: batch.operations.lazy.filter { $0.header.kind == .put }.map(\.hash))
      let (segment, start, first) = try appender.append(
        &batch, written: now, forSync: durability == .durable)
      for (number, operation) in batch.operations.enumerated() {
        if number % Self.groupOperationCount == 0 { prefetch(batch, from: number) }
        let offset = start + operation.offset
        let keyStart = operation.offset + operation.header.keyRange.lowerBound
        try batch.bytes.withSpan { (bytes) throws(StoreError) in
          let key = bytes.extracting(keyStart..<(keyStart + operation.header.keyByteCount))
          // Nothing may throw from here on: the batch is in the log. Looks into shards that are
          // loaded do not.
          if appender.unpublished != nil { try publishPending(operation.hash, &appender) }
          let existing = try locate(operation.hash, key: key, now: now)
          if operation.header.kind == .put {
            publish(
              operation.hash, at: segment.location(at: offset),
              deadline: operation.header.deadline { now }, replacing: existing)
            deadByteCount += existing?.byteCount ?? 0
          } else if let existing {
            unpublish(existing)
          }
          let cause: RemovalCause = operation.header.kind == .put ? .replaced : .removed
          if let event = removalEvent(existing, key: key, cause: cause) { events.append(event) }
        }
      }
      if deadByteCount > 0 { isSlowed = appender.allowance.spend(deadByteCount) }
      return first
    }
    for event in events { removalObserver?(event) }
    keepLimits()
    try commit(first + UInt64(batch.operations.count) - 1, durability)
    if isSlowed { waitForCompaction(afterMakingDead: deadByteCount) }
    return first
  }

  /// How many operations of a batch have their entries and records asked for together.
  private static var groupOperationCount: Int { 16 }

  /// Asks for the entries and then the records of the next operations, so that they are waited for together.
  private func prefetch(_ batch: borrowing Batch, from start: Int) {
    let end = min(start + Self.groupOperationCount, batch.operations.count)
    for number in start..<end { index.prefetch(batch.operations[number].hash) }
    for number in start..<end { prefetchRecord(ofHash: batch.operations[number].hash) }
  }

  // MARK: Under the appender's lock

  /// The index entry of a key. A record with the key's hash that cannot be read counts as the
  /// key's: a write then heals it. (That it is another key's, the hash being of 48 bits, is a chance
  /// of one in 10¹⁴ a key.)
  ///
  /// Called under the appender's lock, or without it where a stale answer does no harm.
  @inline(__always)
  func locate(
    _ hash: UInt64, key: RawSpan, now: Timestamp
  ) throws(StoreError) -> Existing? {
    var entry = IndexEntry.empty
    while true {
      var segment: Segment?
      var end = Int64.min
      let isFound = try index.find(hash, after: entry.location, touch: .no, extendedTo: &end) {
        [table] in
        entry = $0
        segment = table.segment(at: $0.location)
      }
      guard isFound else { return nil }
      guard let segment else { continue }
      var damage: StoreError?
      guard let record = readable(segment, at: segment.offset(of: entry.location), &damage) else {
        return Existing(
          hash: hash, location: entry.location, segment: segment, byteCount: nil, damage: damage,
          sequence: 0, hasExpired: false)
      }
      guard record.hasKey(key) else { continue }
      var existing = Existing(
        hash: hash, location: entry.location, segment: segment,
        byteCount: record.header.byteCount, damage: nil, sequence: record.sequence,
        hasExpired: false)
      if entry.flags.contains(.canExpire) {
        let header = record.header.extended(to: end)
        existing.hasExpired = hasExpired(header, tick: entry.tick, now: now)
        if header.flags.contains(.expiry) { existing.expires = header.expires }
      }
      return existing
    }
  }

  /// The record at an offset, or `nil` and the reason where it cannot be read.
  @inline(__always)
  private func readable(
    _ segment: Segment, at offset: Int, _ damage: inout StoreError?
  ) -> Record? {
    do { return try Record(in: segment, at: offset, part: .head) } catch {
      damage = error
      return nil
    }
  }

  /// Makes a record the one that reads of its key find.
  ///
  /// - Parameters:
  ///   - deadline: `nil` where it cannot expire.
  ///   - tick: when it was last accessed; `nil`: now.
  @inline(__always)
  func publish(
    _ hash: UInt64, at location: Location, deadline: Deadline?, replacing existing: Existing?,
    tick: UInt64? = nil
  ) {
    let flags: IndexEntry.Flags = deadline == nil ? [] : .canExpire
    guard let existing else {
      index.insert(hash, location: location, flags: flags, tick: tick, deadline: deadline)
      return
    }
    if !index.replace(
      hash, old: existing.location, new: location, flags: flags, tick: tick, deadline: deadline)
    {
      index.insert(hash, location: location, flags: flags, tick: tick, deadline: deadline)
    }
    existing.segment.usage.kill(byteCount: existing.byteCount ?? 0)
  }

  /// Makes reads of a key find nothing.
  func unpublish(_ existing: Existing) {
    _ = index.remove(existing.hash, location: existing.location)
    existing.segment.usage.kill(byteCount: existing.byteCount ?? 0)
  }

  func removalEvent(
    _ existing: Existing?, key: RawSpan, cause: RemovalCause
  ) -> RemovalEvent? {
    guard removalObserver != nil, let existing else { return nil }
    return .entry(
      key: key.copied(), version: existing.sequence,
      cause: existing.hasExpired ? .expired : cause)
  }
}
