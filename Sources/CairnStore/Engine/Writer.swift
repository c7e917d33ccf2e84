/// Writes: makes room if there is none, appends records, and publishes them in the index.
///
/// 1. A record is published after it is in the log, and before the log's lock is released. The
///    exception is a batch that was written outside the log: it is published in steps.
/// 2. A replaced record counts as dead from the moment the new one is published.
/// 3. Before a write looks up a key, it publishes a pending batch's operations on this key.
struct Writer: Sendable {
  let session: Session
  let lookup: Lookup
  let supply: SegmentSupply
  let compactor: Compactor
  let pressure: BackPressure
  let log: LogWriter
  let alarm: HousekeepingAlarm
  let removalObserver: (@Sendable (RemovalEvent) -> Void)?

  init(_ compactor: Compactor) {
    session = compactor.session
    lookup = compactor.lookup
    supply = compactor.supply
    self.compactor = compactor
    pressure = compactor.pressure
    log = supply.log
    alarm = session.alarm
    removalObserver = session.configuration.removalObserver
  }

  // MARK: Room

  /// Runs `body` under the log's lock with room for `byteCount` bytes of records.
  ///
  /// - Parameter atOnce: whether to give up rather than wait.
  /// - Returns: the result of `body`, or `nil` if it was not run.
  @inline(__always)
  func withRoom<Value>(
    byteCount: Int, isRemoval: Bool, atOnce: Bool,
    _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    if atOnce { return try withRoomAtOnce(byteCount: byteCount, body) }
    return try withRoom(byteCount: byteCount, isRemoval: isRemoval, body)
  }

  /// Runs `body` under the log's lock with room for `byteCount` bytes of records. Compacts if the
  /// disk has no room.
  @inline(__always)
  func withRoom<Value>(
    byteCount: Int, isRemoval: Bool, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var chores: Appender.Chores?
    let value = try log.withLock { (appender) throws(StoreError) -> Value? in
      try session.checkPlace()
      try appender.checkWritable(path: session.path)
      guard appender.hasRoom(byteCount: byteCount, reserve: log.reserve) else { return nil }
      let value = try body(&appender)
      chores = appender.takeChores(prefaulting: supply.prefaults)
      return value
    }
    guard let value else {
      return try makingRoom(byteCount: byteCount, isRemoval: isRemoval, body)
    }
    if let chores { supply.run(chores) }
    alarm.startTiming()
    return value
  }

  /// Makes room, and runs `body` as soon as there is some.
  @inline(never)
  private func makingRoom<Value>(
    byteCount: Int, isRemoval: Bool, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var search = RoomSearch(byteCount: byteCount)
    while true {
      var room = Appender.Room.ready
      var chores: Appender.Chores?
      let value = try log.withLock { (appender) throws(StoreError) -> Value? in
        try session.checkPlace()
        room = try log.room(forByteCount: byteCount, isRemoval: isRemoval, in: &appender)
        guard case .ready = room else { return nil }
        let value = try body(&appender)
        chores = appender.takeChores(prefaulting: supply.prefaults)
        return value
      }
      if let value {
        if let chores { supply.run(chores) }
        alarm.startTiming()
        return value
      }
      if let value = try make(
        room, byteCount: byteCount, isRemoval: isRemoval, &search, body)
      {
        return value
      }
    }
  }

  /// Runs `body` under the log's lock if the lock is free and there is room. Waits for nothing.
  ///
  /// - Returns: the result of `body`, or `nil` if it was not run.
  @inline(__always)
  func withRoomAtOnce<Value>(
    byteCount: Int, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    var chores: Appender.Chores?
    let value = try log.withLockIfFree { (appender) throws(StoreError) -> Value? in
      try session.checkPlace()
      try appender.checkWritable(path: session.path)
      guard appender.unpublished == nil, appender.allowance.byteCount >= 0,
        appender.hasRoom(byteCount: byteCount, reserve: log.reserve)
      else { return nil }
      let value = try body(&appender)
      chores = appender.takeChores(prefaulting: supply.prefaults)
      return value
    }
    if let chores { supply.run(chores) }
    if value != nil { alarm.startTiming() }
    return value
  }

  /// Makes what the log itself has not: makes the next segment or a segment for these records,
  /// or runs a compaction.
  ///
  /// - Returns: the result of `body`, or `nil` if it was not run.
  @inline(never)
  private func make<Value>(
    _ room: Appender.Room, byteCount: Int, isRemoval: Bool, _ search: inout RoomSearch,
    _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    var isInBody = false
    do throws(StoreError) {
      return try supply.make(room, byteCount: byteCount, isRemoval: isRemoval) {
        (appender: inout Appender) throws(StoreError) -> Value in
        isInBody = true
        return try body(&appender)
      }
    } catch {
      guard case .noSpace(_, _, let limit) = error, limit != .fileSize, !isInBody,
        try compactor.findRoom(isRemoval: isRemoval, &search)
      else { throw error }
      return nil
    }
  }

  /// Writes records outside the log, then appends them.
  ///
  /// - Parameters:
  ///   - byteCount: the size of the records.
  ///   - forSync: whether a caller will wait for a sync of them.
  ///   - isBatch: whether the records are a batch. Their numbers are part of the written bytes, and
  ///     are higher than those of other writes.
  ///   - write: writes the records after the segment's header, under no lock that others need. If
  ///     the numbers must be known, they begin at the given one. May be called more than once.
  ///   - check: called first, under the log's lock. If it returns a value, the records are not
  ///     appended.
  ///   - body: called under the log's lock once the log continues in the new segment.
  func appendAside<Value>(
    byteCount: Int, isRemoval: Bool, forSync: Bool, isBatch: Bool,
    writing write: (Segment, SequenceNumber) throws(StoreError) -> Void,
    unless check: (inout Appender) throws(StoreError) -> Value?,
    _ body: (inout Appender, SequenceNumber) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    if !isRemoval { pressure.waitForDebt() }
    var attempt = 0
    while true {
      defer { attempt += 1 }
      let value = try supply.tryAppendingAside(
        attempt: attempt, byteCount: byteCount, isRemoval: isRemoval, forSync: forSync,
        isBatch: isBatch, writing: write, unless: check, body)
      if let value { return value }
    }
  }

  /// Runs `body`, which writes outside the log. Only one thread does so at a time. If the disk has
  /// no room, lets others continue before it looks for room, because the search calls observers of
  /// removals.
  func writingAside<Value>(
    byteCount: Int, isRemoval: Bool, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var search = RoomSearch(byteCount: byteCount)
    while true {
      do throws(StoreError) {
        return try supply.asides.withLock { (_) throws(StoreError) in try body() }
      } catch {
        // On a full disk, a removal has room in the active segment.
        guard case .noSpace(_, _, let limit) = error, limit != .fileSize, !isRemoval,
          try compactor.findRoom(isRemoval: false, &search)
        else { throw error }
      }
    }
  }

  // MARK: Publishing

  /// Makes room in the index for a key.
  @inline(__always)
  func makeRoom(_ hash: UInt64, key: RawSpan, now: Timestamp) throws(StoreError) {
    do { try lookup.index.makeRoom(hash) } catch {
      // If the key exists, no room is needed.
      if try lookup.locate(hash, key: key, now: now) == nil { throw error }
    }
  }

  /// Publishes a record: reads of its key find it from now on.
  ///
  /// - Parameters:
  ///   - deadline: `nil` if the entry cannot expire.
  ///   - tick: the entry's last access, or `nil` for now.
  @inline(__always)
  func publish(
    _ hash: UInt64, at location: Location, deadline: Deadline?, replacing existing: Existing?,
    tick: UInt64? = nil
  ) {
    let flags: IndexEntry.Flags = deadline == nil ? [] : .canExpire
    guard let existing else {
      lookup.index.insert(hash, location: location, flags: flags, tick: tick, deadline: deadline)
      return
    }
    let isReplaced = lookup.index.replace(
      hash, old: existing.location, near: existing.slot, new: location, flags: flags, tick: tick,
      deadline: deadline
    ) { [table = Unretained(lookup.table)] in
      table.withObject { $0.kill(existing.location, byteCount: existing.byteCount ?? 0) }
    }
    if !isReplaced {
      lookup.index.insert(hash, location: location, flags: flags, tick: tick, deadline: deadline)
    }
  }

  /// Makes reads of a key find nothing.
  func unpublish(_ existing: Existing) {
    _ = lookup.index.remove(
      existing.hash, location: existing.location, near: existing.slot
    ) {
      [table = Unretained(lookup.table)] in
      table.withObject { $0.kill(existing.location, byteCount: existing.byteCount ?? 0) }
    }
  }

  /// The value that a write replaces, if removals are observed.
  @inline(__always)
  func replacement(_ existing: Existing?) -> PendingWrite.Replacement? {
    guard removalObserver != nil, let existing else { return nil }
    return PendingWrite.Replacement(
      version: existing.sequence, cause: existing.hasExpired ? .expired : .replaced)
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
