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
      for slot in 0..<SegmentTable.granuleCount(capacity: segment.capacity) {
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

extension Engine {
  /// The store as it is now.
  func takeSnapshot() throws(StoreError) -> SnapshotState {
    try checkUsable()
    let now = clock.now()
    if index.recency.needs(now) { noteTime(now) }
    // Under the lock of all changes: no batch is half applied, and the segments are those that the
    // index names.
    return appender.waitUntil { appender -> SnapshotState? in
      // While a compaction moves entries there are two records with one number, the one live in some
      // keys' case, the other in others': a log that replay takes for another than the index does. A
      // backup must not be made of it. The moves take a fraction of a second.
      // And while a batch comes into the index, a part of it is there.
      if !appender.isConsistent { return nil }
      return SnapshotState(
        index: index.snapshot(), segments: appender.segments.map { ($0, $0.usage.end) },
        covered: appender.segments.map(\.covered), lastSequence: appender.nextSequence - 1,
        now: now, times: index.recency.times)
    }
  }

  func find(
    _ key: RawSpan, in snapshot: SnapshotState, part: Record.Part
  ) throws(StoreError) -> FoundRecord? {
    if processMark.isForeign { throw .usedAfterFork(path: path) }
    try limits.checkKey(key)
    let hash = hash.hash(key)
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
}
