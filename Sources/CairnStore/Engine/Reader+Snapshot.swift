/// The contents of a snapshot.
final class SnapshotState: Sendable {
  let index: IndexSnapshot
  /// The segments of the snapshot, each with the end of its records, in the order of the log.
  let segments: [(segment: Segment, end: Int)]
  /// The same segments, in the form that a checkpoint needs.
  let covered: [Checkpoint.CoveredSegment]
  let lastSequence: SequenceNumber
  let now: Timestamp
  /// Converts ticks to times.
  let times: RecencyTimes
  /// Segments by granule. The live table may have reassigned a granule since the snapshot.
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

extension SnapshotState: EntryView {
  func places(inShard shard: Int) throws(StoreError) -> [Lookup.Place] {
    try index.entries(inShard: shard).compactMap { entry in
      segment(at: entry.location).map { Lookup.Place(entry: entry, segment: $0) }
    }
  }

  func hasExpired(_ header: RecordHeader, tick: UInt64) -> Bool {
    header.hasExpired(accessed: { times.time(of: tick) }, now: now)
  }
}

extension Reader {
  /// A snapshot of the current store.
  func takeSnapshot() throws(StoreError) -> SnapshotState {
    try session.checkUsable()
    let now = session.clock.now()
    lookup.noteTimeIfNeeded(now)
    // Under the log's lock, no batch is half applied, and the index names only these segments.
    return log.waitUntil { appender -> SnapshotState? in
      // While a compaction moves entries, each copied record exists twice. For some keys the old
      // record is live, for others the new one, so a replay of the log may differ from the index. A
      // backup must not copy this state. The moves take a fraction of a second. While a batch is
      // being published, the index has only part of it.
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
      guard let segment = snapshot.segment(at: entry.location) else { continue }
      let found = try record(at: Lookup.Place(entry: entry, segment: segment), part: part)
      guard found.record.hasKey(key) else { continue }
      if snapshot.hasExpired(entry, found.header) { return nil }
      return found
    }
    return nil
  }

  func count(in snapshot: SnapshotState) throws(StoreError) -> Int {
    try session.checkProcess()
    if snapshot.index.expirableCount == 0 { return snapshot.index.count }
    var passedOver = PassedOver()
    var expired = 0
    for shard in 0..<HashIndex.shardCount {
      for place in try snapshot.places(inShard: shard)
      where place.entry.flags.contains(.canExpire) {
        do throws(StoreError) {
          let header = try record(at: place, part: .head).header
          if snapshot.hasExpired(place.entry, header) { expired += 1 }
        } catch { try passedOver.note(error) }
      }
    }
    return snapshot.index.count - expired
  }
}
