/// Removes many entries, a few at a time, for all trims.
///
/// Victims are chosen under at most one shard's lock at a time, and checked again when their turn
/// comes. Each victim gets its own tombstone, so a crash may leave only the first of them removed.
final class Remover: Sendable {
  let session: Session
  let lookup: Lookup
  let writer: Writer
  let committer: Committer

  init(_ writer: Writer, _ committer: Committer) {
    session = writer.session
    lookup = writer.lookup
    self.writer = writer
    self.committer = committer
  }

  // MARK: Removing candidates

  func begin(_ cause: RemovalCause, sparesRead: Bool) throws(StoreError) -> Removal {
    try session.checkWritable()
    let now = session.clock.now()
    lookup.noteTimeIfNeeded(now)
    return Removal(cause, now: now, sparesRead: sparesRead)
  }

  /// Ends a removal that waits for no sync, and returns a summary of the removed entries.
  @discardableResult
  func end(_ removal: Removal) -> RemovalSummary {
    if removal.summary.count > 0 { session.wakeHousekeeping() }
    return removal.summary
  }

  /// Ends a removal, and adds what it waits for.
  func end(
    _ removal: Removal, _ durability: Durability?, _ pending: inout PendingWrite
  ) -> RemovalSummary {
    let durability = session.durability(durability)
    pending.add(
      removal.lastSequence == 0
        ? committer.absence(durability)
        : PendingWrite(sequence: removal.lastSequence, durability: durability))
    return end(removal)
  }

  /// Removes entries in the given order, if they are unchanged, until `byteTarget` bytes of records
  /// are gone.
  ///
  /// - Returns: the number of candidates checked.
  @discardableResult
  func remove(
    _ candidates: [RemovalCandidate], byteTarget: Int = .max, in removal: inout Removal
  ) throws(StoreError) -> Int {
    var group = VictimGroup()
    let start = removal.summary.cost
    var next = 0
    while next < candidates.count {
      group.removeAll()
      while next < candidates.count, !group.isFull {
        let gone = removal.summary.cost - start + group.recordByteCount
        if gone >= byteTarget { break }
        try prepare(candidates[next], for: &group, in: &removal)
        next += 1
      }
      if group.victims.isEmpty { break }
      do throws(StoreError) { try take(group.victims[...], keys: group.keys, in: &removal) } catch {
        // On a full disk, the room kept for a removal may not be enough for many.
        guard case .noSpace = error, group.victims.count > 1 else { throw error }
        for victim in group.victims {
          try take([victim], keys: group.keys, in: &removal)
        }
      }
    }
    return next
  }

  /// Reads the data for an entry's tombstone. No lock is held, because the record may have to come
  /// from the disk.
  private func prepare(
    _ candidate: RemovalCandidate, for group: inout VictimGroup, in removal: inout Removal
  ) throws(StoreError) {
    var found: Lookup.Place?
    _ = lookup.index.find(candidate.hash, at: candidate.entry.location) {
      if let segment = lookup.table.segment(at: $0.location) {
        found = Lookup.Place(entry: $0, segment: segment)
      }
    }
    if found == nil {
      // A compaction may have moved the record, which changes neither the entry's tick nor its
      // version.
      found = try lookup.firstPlace(of: candidate.hash) { (place) throws(StoreError) in
        if candidate.sequence == 0 { return place.entry.tick == candidate.entry.tick }
        return try head(in: place.segment, at: place.entry.location, in: &removal)?.sequence
          == candidate.sequence
      }
    }
    guard let found, !removal.sparesRead || found.entry.tick == candidate.entry.tick,
      let record = try head(in: found.segment, at: found.entry.location, in: &removal),
      candidate.sequence == 0 || candidate.sequence == record.sequence
    else { return }
    let hasExpired =
      candidate.entry.flags.contains(.canExpire)
      && lookup.hasExpired(record.header, tick: found.entry.tick, now: removal.now)
    if let reserved = session.configuration.reservedKey,
      record.key.byteCount == reserved.count, reserved.withBytes({ $0.equals(record.key) })
    {
      lookup.index.touch(candidate.hash, found.entry)
      return
    }
    // Spare an entry that has been read since it was chosen, if that postpones its end.
    if case .expired = removal.cause, !hasExpired { return }
    group.add(candidate, record, at: found.entry.location, hasExpired: hasExpired)
  }

  /// The head of a record. If the head is damaged or unreadable, counts it and returns `nil`.
  func head(
    in segment: Segment, at location: Location, in removal: inout Removal
  ) throws(StoreError) -> Record? {
    do {
      return try Record.put(in: segment, at: location, part: .head)
    } catch {
      guard error.isLoss else { throw error }
      removal.noteDamaged(location, isUnreadable: error.isOfMedium)
      return nil
    }
  }

  /// Removes the unchanged victims, and tells the observer.
  private func take(
    _ victims: ArraySlice<VictimGroup.Victim>, keys: [UInt8], in removal: inout Removal
  ) throws(StoreError) {
    defer { if !removal.holdsEvents { tell(&removal) } }
    try append(victims, keys: keys, in: &removal)
  }

  /// Appends the tombstones of the unchanged victims.
  private func append(
    _ victims: ArraySlice<VictimGroup.Victim>, keys: [UInt8], in removal: inout Removal
  ) throws(StoreError) {
    let byteCount = victims.reduce(0) { $0 + $1.header.byteCount + RecordHeader.syncMarkByteCount }
    let turn = try writer.takeTurn(byteCount: byteCount, isRemoval: true)
    for victim in victims {
      if turn.appender.unpublished != nil {
        try writer.publishPending(victim.candidate.hash, &turn.appender)
      }
      guard let place = unchanged(victim, in: removal) else { continue }
      var header = victim.header
      // If the tombstones must be durable, one sync follows all of them.
      let sequence = try turn.appender.append(
        &header, key: keys.rawSpan.extracting(victim.key), metadata: RawSpan(),
        value: RawSpan(), written: removal.written, forSync: false
      ).sequence
      _ = lookup.index.remove(victim.candidate.hash, location: place.location)
      place.segment.usage.kill(byteCount: place.byteCount)
      removal.noteRemoved(byteCount: place.byteCount, sequence: sequence)
      if session.configuration.removalObserver != nil {
        removal.note(
          .entry(
            key: Array(keys[victim.key]), version: victim.sequence,
            cause: victim.hasExpired ? .expired : removal.cause))
      }
    }
  }

  /// Reports removals to the observer, with no lock held.
  func tell(_ removal: inout Removal) { tell(removal.takeEvents()) }

  /// Reports a write's removals to the observer, with no lock held.
  func tell(_ removals: [RemovalEvent]) {
    for event in removals { session.configuration.removalObserver?(event) }
  }

  /// The location of the record that a victim's entry names, if that is still the same record. Only
  /// writers change it, and the log's lock keeps them out.
  private func unchanged(
    _ victim: VictimGroup.Victim, in removal: borrowing Removal
  ) -> (location: Location, segment: Segment, byteCount: Int)? {
    var found: Lookup.Place?
    _ = lookup.index.find(victim.candidate.hash, at: victim.location) { entry in
      // After `removeAll`, another segment may be at the same location.
      if let segment = lookup.table.segment(at: victim.location), segment.id == victim.segmentID {
        found = Lookup.Place(entry: entry, segment: segment)
      }
    }
    var byteCount = victim.recordByteCount
    if found == nil {
      // A compaction may have moved the record since, and made it shorter.
      found = try? lookup.firstPlace(of: victim.candidate.hash) { (place) throws(StoreError) in
        let record = try Record(
          in: place.segment, at: place.segment.offset(of: place.entry.location), part: .head)
        byteCount = record.header.byteCount
        return record.sequence == victim.sequence
      }
    }
    guard let found, !removal.sparesRead || found.entry.tick == victim.candidate.entry.tick else {
      return nil
    }
    return (found.entry.location, found.segment, byteCount)
  }

  // MARK: Finding victims

  /// Calls `body` with the entries of a shard and the heads of their records, if `mayMatter`
  /// accepts the record's segment. No lock is held.
  func forEachHead(
    inShard shard: Int, in removal: inout Removal,
    where mayMatter: (Segment) -> Bool = { _ in true },
    _ body: (IndexEntry, borrowing FoundRecord) -> Void
  ) throws(StoreError) {
    try session.checkUsable()
    let entries = try lookup.index.entries(inShard: shard) { lookup.table.segment(at: $0) }
    for (entry, segment) in entries {
      guard let segment, mayMatter(segment) else { continue }
      guard let record = try head(in: segment, at: entry.location, in: &removal) else { continue }
      body(entry, FoundRecord(record: record, tick: entry.tick))
    }
  }

  /// Removes the entries that `choose` picks from each shard, shard by shard, the lowest ranks
  /// first.
  func removeShardByShard(
    in removal: inout Removal,
    _ choose: (_ shard: Int, inout Removal) throws(StoreError) -> [RemovalCandidate]
  ) throws(StoreError) {
    for shard in 0..<HashIndex.shardCount {
      try session.checkUsable()
      let candidates = try choose(shard, &removal)
      try remove(candidates.sorted { $0.goesBefore($1) }, in: &removal)
    }
  }
}
