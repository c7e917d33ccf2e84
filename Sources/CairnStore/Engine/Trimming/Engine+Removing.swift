/// Removing many entries, a few at a time: the way that all trims go.
///
/// Victims are chosen with no lock but that of one shard at a time, and looked at once more when
/// their turn comes. Each gets a tombstone of its own, so what a crash leaves has lost the first
/// some of them.
extension Engine {
  // MARK: By name

  @usableFromInline
  package func makeKeyRemoval() throws(StoreError) -> KeyRemoval {
    try checkWritable()
    return KeyRemoval()
  }

  /// Removes a key, as one write; `finish` waits for all of them.
  @usableFromInline
  package func remove(_ key: RawSpan, in removal: inout KeyRemoval) throws(StoreError) {
    if let sequence = try remove(key, expecting: .anything, forSync: false) {
      removal.noteRemoved(sequence: sequence)
    } else {
      removal.noteAbsent()
    }
  }

  @usableFromInline
  package func finish(
    _ removal: KeyRemoval, durability: Durability?
  ) throws(StoreError) -> Int {
    // What was absent may have been removed after the last of these: all there is vouches for it.
    let last = removal.foundAbsent ? 0 : removal.lastSequence
    // A store may have been opened with a lower limit than it had.
    if removal.count > 0 { keepLimits() }
    try commit(removalThrough: last, durability)
    return removal.count
  }

  private func commit(
    removalThrough sequence: SequenceNumber, _ durability: Durability?
  ) throws(StoreError) {
    let durability = durability ?? configuration.durability
    if sequence == 0 { try commitAbsence(durability) } else { try commit(sequence, durability) }
  }

  // MARK: By choice

  func beginRemoval(_ cause: RemovalCause, sparesRead: Bool) throws(StoreError) -> Removal {
    try checkWritable()
    let now = clock.now()
    if index.recency.needs(now) { noteTime(now) }
    return Removal(cause, now: now, sparesRead: sparesRead)
  }

  /// Gives what was removed the durability it was promised, and says what it was.
  func finish(_ removal: Removal, _ durability: Durability?) throws(StoreError) -> RemovalSummary {
    if removal.summary.count > 0 { wakeHousekeeping() }
    try commit(removalThrough: removal.lastSequence, durability)
    return removal.summary
  }

  /// Removes entries in the order given, as long as they are what they were, until `byteTarget`
  /// bytes of records have gone.
  ///
  /// - Returns: how many of the candidates were looked at.
  @discardableResult
  func remove(
    _ candidates: [RemovalCandidate], byteTarget: Int = .max, in removal: inout Removal
  ) throws(StoreError) -> Int {
    var group = VictimGroup()
    let start = removal.summary.byteCount
    var next = 0
    while next < candidates.count {
      group.removeAll()
      while next < candidates.count, !group.isFull {
        let gone = removal.summary.byteCount - start + group.recordByteCount
        if gone >= byteTarget { break }
        try prepare(candidates[next], for: &group, in: &removal)
        next += 1
      }
      if group.victims.isEmpty { break }
      do throws(StoreError) { try take(group.victims[...], keys: group.keys, in: &removal) } catch {
        // What is kept on a full disk for a removal may not be enough for many.
        guard case .noSpace = error, group.victims.count > 1 else { throw error }
        for victim in group.victims {
          try take([victim], keys: group.keys, in: &removal)
        }
      }
    }
    return next
  }

  /// Reads what the tombstone of an entry needs, with no lock held: the record may have to come
  /// from the disk.
  private func prepare(
    _ candidate: RemovalCandidate, for group: inout VictimGroup, in removal: inout Removal
  ) throws(StoreError) {
    var found: Place?
    var end = Int64.min
    _ = index.find(candidate.hash, at: candidate.entry.location, extendedTo: &end) {
      if let segment = table.segment(at: $0.location) { found = Place(entry: $0, segment: segment) }
    }
    found?.end = end
    if found == nil {
      // It may have been moved by a compaction, which keeps tick and version.
      found = try firstPlace(of: candidate.hash) { (place) throws(StoreError) in
        if candidate.sequence == 0 { return place.entry.tick == candidate.entry.tick }
        return try head(in: place.segment, at: place.entry.location, in: &removal)?.sequence
          == candidate.sequence
      }
    }
    guard let found, !removal.sparesRead || found.entry.tick == candidate.entry.tick,
      let record = try head(in: found.segment, at: found.entry.location, in: &removal),
      candidate.sequence == 0 || candidate.sequence == record.sequence
    else { return }
    let tick = found.entry.tick
    let header = record.header.extended(to: found.end)
    let hasExpired =
      candidate.entry.flags.contains(.canExpire)
      && hasExpired(header, tick: tick, now: removal.now)
    if removal.asksForUse, let isInUse = configuration.isInUse, isInUse(record.key) {
      index.touch(candidate.hash, found.entry)
      return
    }
    // Extended since it was chosen.
    if case .expired = removal.cause, !hasExpired { return }
    group.add(
      candidate, record, at: found.entry.location, end: header.end,
      extensionByteCount: extensionByteCount(of: found, candidate.hash), hasExpired: hasExpired)
  }

  /// The bytes of the record that extends an entry's lifetime, which die with it.
  private func extensionByteCount(of place: Place, _ hash: UInt64) -> Int {
    if place.end == .min { return 0 }
    return index.lifetimeExtension(hash, at: place.entry.location)?.byteCount ?? 0
  }

  /// An entry of the index, the segment that its record lies in, and to when its lifetime was extended,
  /// all of one moment: a compaction that moves the record may put the end into the copy.
  struct Place {
    var entry: IndexEntry
    var segment: Segment
    var end = Int64.min
  }

  /// The first of the entries with this hash that `isSought` accepts, wherever it is by now.
  func firstPlace(
    of hash: UInt64, where isSought: (Place) throws(StoreError) -> Bool
  ) throws(StoreError) -> Place? {
    var entry = IndexEntry.empty
    while true {
      var segment: Segment?
      var end = Int64.min
      let isFound = try index.find(hash, after: entry.location, touch: .no, extendedTo: &end) {
        entry = $0
        segment = table.segment(at: $0.location)
      }
      guard isFound else { return nil }
      guard let segment else { continue }
      let place = Place(entry: entry, segment: segment, end: end)
      if try isSought(place) { return place }
    }
  }

  /// The head of a record, or `nil` where it is damaged or the medium does not give it, which is noted.
  func head(
    in segment: Segment, at location: Location, in removal: inout Removal
  ) throws(StoreError) -> Record? {
    do {
      return try Record(in: segment, at: segment.offset(of: location), part: .head)
    } catch {
      guard error.isLoss else { throw error }
      removal.noteDamaged(location)
      return nil
    }
  }

  /// Appends the tombstones of those victims that are still what they were.
  private func take(
    _ victims: ArraySlice<VictimGroup.Victim>, keys: [UInt8], in removal: inout Removal
  ) throws(StoreError) {
    defer { if !removal.holdsEvents { tell(&removal) } }
    let byteCount = victims.reduce(0) { $0 + $1.header.byteCount + RecordHeader.syncMarkByteCount }
    try withRoom(byteCount: byteCount, isRemoval: true) {
      (appender: inout Appender) throws(StoreError) in
      for victim in victims {
        if appender.unpublished != nil {
          try publishPending(victim.candidate.hash, &appender)
        }
        guard let place = unchanged(victim, in: removal) else { continue }
        var header = victim.header
        let sequence = try keys.withSpan { (keys) throws(StoreError) in
          // Where these are to be durable, one sync follows all of them.
          try appender.append(
            &header, key: keys.extracting(victim.key), metadata: RawSpan(), value: RawSpan(),
            written: removal.now, forSync: false
          ).sequence
        }
        _ = index.remove(victim.candidate.hash, location: place.location)
        place.segment.usage.kill(byteCount: place.byteCount)
        removal.noteRemoved(
          byteCount: place.byteCount + place.extensionByteCount, sequence: sequence)
        if removalObserver != nil {
          removal.note(
            .entry(
              key: Array(keys[victim.key]), version: victim.sequence,
              cause: victim.hasExpired ? .expired : removal.cause))
        }
      }
    }
  }

  /// Tells the observer what went; under no lock.
  func tell(_ removal: inout Removal) {
    for event in removal.takeEvents() { removalObserver?(event) }
  }

  /// Where the record lies that a victim's entry names, if it is still the same record; only writers
  /// change that, and they are kept out by the appender's lock.
  private func unchanged(
    _ victim: VictimGroup.Victim, in removal: borrowing Removal
  ) -> (location: Location, segment: Segment, byteCount: Int, extensionByteCount: Int)? {
    var found: Place?
    var end = Int64.min
    _ = index.find(victim.candidate.hash, at: victim.location, extendedTo: &end) { entry in
      // After a removal of all, another segment may lie at the same place.
      if let segment = table.segment(at: victim.location), segment.id == victim.segmentID {
        found = Place(entry: entry, segment: segment)
      }
    }
    found?.end = end
    var byteCount = victim.recordByteCount
    if found == nil {
      // A compaction may have moved it since, and made it shorter.
      found = try? firstPlace(of: victim.candidate.hash) { (place) throws(StoreError) in
        let record = try Record(
          in: place.segment, at: place.segment.offset(of: place.entry.location), part: .head)
        byteCount = record.header.byteCount
        // The copy has the end that there was by then.
        end = max(record.header.end, place.end)
        return record.sequence == victim.sequence
      }
    }
    guard let found, !removal.sparesRead || found.entry.tick == victim.candidate.entry.tick else {
      return nil
    }
    // An extension in between that found it alive by an earlier time keeps it alive.
    if victim.hasExpired, end > victim.end { return nil }
    return (
      found.entry.location, found.segment, byteCount,
      extensionByteCount(of: found, victim.candidate.hash)
    )
  }

  // MARK: Looking for victims

  /// Calls `body` with each entry of a shard whose segment `mayMatter` lets through, and the head of its
  /// record; under no lock.
  func forEachHead(
    inShard shard: Int, in removal: inout Removal,
    where mayMatter: (Segment) -> Bool = { _ in true },
    _ body: (IndexEntry, borrowing FoundRecord) -> Void
  ) throws(StoreError) {
    try checkUsable()
    let entries = try index.entries(inShard: shard) { table.segment(at: $0) }
    for (entry, segment, end) in entries {
      guard let segment, mayMatter(segment) else { continue }
      guard let record = try head(in: segment, at: entry.location, in: &removal) else { continue }
      body(entry, FoundRecord(record: record, tick: entry.tick, end: end))
    }
  }

  /// Removes those entries of each shard, one shard after the other, that `choose` picks, the
  /// lowest ranks first.
  func removeShardByShard(
    in removal: inout Removal,
    _ choose: (_ shard: Int, inout Removal) throws(StoreError) -> [RemovalCandidate]
  ) throws(StoreError) {
    for shard in 0..<HashIndex.shardCount {
      try checkUsable()
      let candidates = try choose(shard, &removal)
      try remove(candidates.sorted { $0.goesBefore($1) }, in: &removal)
    }
  }
}
