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
  let removalObserver: (@Sendable (RemovalEvent) -> Void)?

  init(_ compactor: Compactor) {
    session = compactor.session
    lookup = compactor.lookup
    supply = compactor.supply
    self.compactor = compactor
    pressure = compactor.pressure
    log = supply.log
    removalObserver = session.configuration.removalObserver
  }

  // MARK: Room

  /// Waits for a write's turn. Compacts if the disk has no room for its records.
  @inline(__always)
  func takeTurn(byteCount: Int, isRemoval: Bool) throws(StoreError) -> WriteTurn {
    let turn = WriteTurn(log.hold(), supply)
    try checkWritable(turn)
    if turn.appender.hasRoom(byteCount: byteCount, reserve: log.reserve) { return turn }
    _ = consume turn
    return try makeRoom(byteCount: byteCount, isRemoval: isRemoval)
  }

  /// Takes a write's turn. If it must not wait for it and would have to, returns `nil`.
  @inline(__always)
  func takeTurn(
    byteCount: Int, isRemoval: Bool, atOnce: Bool
  ) throws(StoreError) -> WriteTurn? {
    if !atOnce { return try takeTurn(byteCount: byteCount, isRemoval: isRemoval) }
    guard let hold = log.holdIfFree() else { return nil }
    let turn = WriteTurn(hold, supply)
    try checkWritable(turn)
    guard turn.appender.unpublished == nil, turn.appender.allowance.byteCount >= 0,
      turn.appender.hasRoom(byteCount: byteCount, reserve: log.reserve)
    else { return nil }
    return turn
  }

  @inline(__always)
  private func checkWritable(_ turn: borrowing WriteTurn) throws(StoreError) {
    try session.checkPlace()
    try turn.appender.checkWritable(path: session.path)
  }

  /// Makes what the log lacks: the next segment, or room on the disk.
  @inline(never)
  private func makeRoom(byteCount: Int, isRemoval: Bool) throws(StoreError) -> WriteTurn {
    var search = RoomSearch(byteCount: byteCount)
    while true {
      let turn = WriteTurn(log.hold(), supply)
      try session.checkPlace()
      let room = try log.room(forByteCount: byteCount, isRemoval: isRemoval, in: &turn.appender)
      if case .ready = room { return turn }
      _ = consume turn
      do throws(StoreError) { try supply.make(room) } catch {
        guard case .noSpace(_, _, let limit) = error, limit != .fileSize,
          try compactor.findRoom(isRemoval: isRemoval, &search)
        else { throw error }
      }
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

  /// Makes room in the index for a key, unless it is there.
  @inline(__always)
  func makeIndexRoom(_ hash: UInt64, key: RawSpan, now: Timestamp) throws(StoreError) {
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
