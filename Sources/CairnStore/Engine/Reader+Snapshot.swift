/// What a snapshot of a store is made of.
final class SnapshotState: Sendable {
  let index: IndexSnapshot
  /// The segments at that moment, each with the end of its records, in the order of the log.
  let segments: [(segment: Segment, end: Int)]
  /// What they amount to.
  let covered: [Checkpoint.CoveredSegment]
  let lastSequence: SequenceNumber
  let now: Timestamp
  /// When ticks were.
  let times: RecencyTimes
  /// By granule; the live table may give one to another segment meanwhile.
  private let places: [Int: Segment]

  init(
    index: IndexSnapshot, segments: [(segment: Segment, end: Int)],
    covered: [Checkpoint.CoveredSegment], lastSequence: SequenceNumber, now: Timestamp,
    times: RecencyTimes
  ) {
    self.index = index
    self.covered = covered
    self.segments = segments
    self.lastSequence = lastSequence
    self.now = now
    self.times = times
    var places: [Int: Segment] = [:]
    for (segment, _) in segments {
      segment.beginSnapshot()
      for slot in 0..<Location.granuleCount(forCapacity: segment.capacity) {
        places[segment.granule + slot] = segment
      }
    }
    self.places = places
  }

  deinit {
    index.end()
    for (segment, _) in segments { segment.endSnapshot() }
  }

  func segment(at location: Location) -> Segment? { places[location.granule] }
}

extension Reader {
  /// The store as it is now.
  func takeSnapshot() throws(StoreError) -> SnapshotState {
    try session.checkUsable()
    let now = session.clock.now()
    lookup.noteTimeIfNeeded(now)
    // Under the lock of all changes: no batch is half applied, and the segments are those that the
    // index names.
    return log.waitUntil { appender -> SnapshotState? in
      // While a compaction moves entries there are two records with one number, the one live in some
      // keys' case, the other in others': a log that replay takes for another than the index does. A
      // backup must not be made of it. The moves take a fraction of a second.
      // And while a batch comes into the index, a part of it is there.
      if !appender.isConsistent { return nil }
      return SnapshotState(
        index: lookup.index.snapshot(), segments: appender.segments.map { ($0, $0.usage.end) },
        covered: appender.segments.map(\.covered), lastSequence: appender.nextSequence - 1,
        now: now, times: lookup.index.recency.times)
    }
  }

  func find(
    _ key: RawSpan, in snapshot: SnapshotState, part: Record.Part
  ) throws(StoreError) -> FoundRecord? {
    try session.checkProcess()
    try session.limits.checkKey(key)
    let hash = lookup.hash.hash(key)
    var entry = IndexEntry.empty
    while try snapshot.index.find(hash, after: entry.location, { entry = $0 }) {
      guard let record = try record(of: entry, in: snapshot, part: part), record.hasKey(key) else {
        continue
      }
      let end = try snapshot.index.end(of: entry, inShard: HashIndex.shard(of: hash))
      if hasExpired(record.header.extended(to: end), entry, in: snapshot) { return nil }
      return FoundRecord(record: record, tick: entry.tick, end: end)
    }
    return nil
  }

  func record(
    of entry: IndexEntry, in snapshot: SnapshotState, part: Record.Part
  ) throws(StoreError) -> Record? {
    guard let segment = snapshot.segment(at: entry.location) else { return nil }
    return try Record(in: segment, at: segment.offset(of: entry.location), part: part)
  }

  func hasExpired(
    _ header: RecordHeader, _ entry: IndexEntry, in snapshot: SnapshotState
  ) -> Bool {
    entry.flags.contains(.canExpire)
      && header.hasExpired(accessed: { snapshot.times.time(of: entry.tick) }, now: snapshot.now)
  }

  // MARK: Iterating

  func forEachKey(
    in snapshot: SnapshotState, prefix: RawSpan, _ body: (RawSpan) throws -> Visit
  ) throws {
    try forEach(in: snapshot, keyPrefix: prefix, part: .head) { found, _ in
      try body(found.record.key)
    }
  }

  func forEachEntry(
    in snapshot: SnapshotState, prefix: RawSpan, _ body: (Entry) throws -> Visit
  ) throws {
    try forEach(in: snapshot, keyPrefix: prefix, part: .all) { try visit($0, &$1, body) }
  }

  private func forEach(
    in snapshot: SnapshotState, keyPrefix prefix: RawSpan, part: Record.Part,
    _ body: (borrowing FoundRecord, inout PassedOver) throws -> Visit
  ) throws {
    var passedOver = PassedOver()
    var entries: [IndexEntry] = []
    for shard in 0..<HashIndex.shardCount {
      try session.checkProcess()
      try snapshot.index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries {
        let end = try snapshot.index.end(of: entry, inShard: shard)
        let found: FoundRecord
        do throws(StoreError) {
          guard let record = try record(of: entry, in: snapshot, part: part),
            record.hasKey(prefix: prefix),
            !hasExpired(record.header.extended(to: end), entry, in: snapshot)
          else { continue }
          found = FoundRecord(record: record, tick: entry.tick, end: end)
        } catch {
          try passedOver.note(error)
          continue
        }
        if try body(found, &passedOver) == .stop { return try passedOver.tell() }
      }
    }
    try passedOver.tell()
  }

  func count(in snapshot: SnapshotState) throws(StoreError) -> Int {
    try session.checkProcess()
    if snapshot.index.expirableCount == 0 { return snapshot.index.count }
    var passedOver = PassedOver()
    var expired = 0
    var entries: [IndexEntry] = []
    for shard in 0..<HashIndex.shardCount {
      try snapshot.index.copyEntries(ofShard: shard, into: &entries)
      for entry in entries where entry.flags.contains(.canExpire) {
        let end = try snapshot.index.end(of: entry, inShard: shard)
        do throws(StoreError) {
          guard let record = try record(of: entry, in: snapshot, part: .head) else { continue }
          if hasExpired(record.header.extended(to: end), entry, in: snapshot) { expired += 1 }
        } catch { try passedOver.note(error) }
      }
    }
    return snapshot.index.count - expired
  }
}
