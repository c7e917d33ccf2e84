/// An entry whose deadline has come and does not tell whether it has expired.
private struct UnsettledEntry {
  var entry: IndexEntry
  var shard: Int
  var segment: Segment
  /// To when its lifetime was extended; `Int64.min`: it was not.
  var end: Int64

  var hash: UInt64 { entry.hash << 24 | UInt64(shard) }
}

/// Finding what has expired by the deadlines in the index.
///
/// A record is read once its entry's deadline has come, if that is not exact: since its lifetime was
/// extended, it has an idle limit, or the store was opened and no more is known than when the first
/// lifetime of its segment ends. Then the deadline is exact, or later.
final class Expiry: Sendable {
  private let session: Session
  private let lookup: Lookup
  private let log: LogWriter
  private var index: HashIndex { lookup.index }
  private var table: SegmentTable { lookup.table }

  init(_ lookup: Lookup, _ log: LogWriter) {
    session = lookup.session
    self.lookup = lookup
    self.log = log
  }

  /// So many records are looked at together, in the order in which they lie on disk.
  private static let unsettledLimit = 1 << 18

  func look(at now: Timestamp) -> ExpiryLook {
    let segments = index.isLoaded ? [] : log.segments
    return ExpiryLook(now: now, times: index.recency.times, segments: segments)
  }

  /// Calls `body` under the shard's lock with each entry whose deadline has come.
  ///
  /// - Parameter visitsPassed: whether also with those that have expired for certain.
  /// - Returns: how many entries the shard has, without those.
  @inline(__always)
  func forEachDue(
    inShard shard: Int, _ look: ExpiryLook, visitsPassed: Bool = false,
    _ body: (IndexEntry, Deadline.State, Int64) -> Void
  ) throws(StoreError) -> Int {
    try index.forEachDue(
      inShard: shard, by: look.now, loads: look.loads, visitsPassed: visitsPassed,
      earliest: { [table] entry in
        table.segment(at: entry.location)?.usage
          .earliestExpiry { look.times.time(of: entry.tick) } ?? .min
      }, body)
  }

  /// Reads the heads of all records whose entries' deadlines have come and are not exact.
  ///
  /// A deadline stays as it is where the head cannot be read, or the entry changes meanwhile.
  ///
  /// - Returns: how many entries have not expired; `nil` where deadlines alone do not tell.
  func settleDeadlines(_ look: ExpiryLook) throws(StoreError) -> Int? {
    var entries: [UnsettledEntry] = []
    var isComplete = true
    let count = try findUnsettled(look) { unsettled in
      isComplete = entries.count < Self.unsettledLimit
      if isComplete { entries.append(unsettled) }
    }
    if isComplete {
      try settle(entries, look.now)
      return count
    }
    // After an open it may be nearly all. Segment by segment, so that each is read once.
    for granules in granulesOfSegmentGroups {
      entries.removeAll(keepingCapacity: true)
      _ = try findUnsettled(look) { unsettled in
        if granules.contains(unsettled.entry.location.granule) { entries.append(unsettled) }
      }
      try settle(entries, look.now)
    }
    return nil
  }

  /// Calls `body` with each entry whose deadline has come and is not exact.
  ///
  /// - Returns: how many entries have not expired; `nil` where deadlines alone do not tell.
  private func findUnsettled(
    _ look: ExpiryLook, _ body: (UnsettledEntry) -> Void
  ) throws(StoreError) -> Int? {
    var count = 0
    var isKnown = true
    for shard in 0..<HashIndex.shardCount {
      try session.checkUsable()
      count += try forEachDue(inShard: shard, look) { [table] entry, state, end in
        isKnown = false
        guard state == .inexact, let segment = table.segment(at: entry.location) else { return }
        body(UnsettledEntry(entry: entry, shard: shard, segment: segment, end: end))
      }
    }
    return isKnown ? count : nil
  }

  /// The places of the segments, in groups that have about as many entries as are looked at together.
  private var granulesOfSegmentGroups: [Range<Int>] {
    let segments = log.segments.sorted { $0.granule < $1.granule }
    var groups: [Range<Int>] = []
    var count = 0
    for segment in segments {
      let granules = segment.granules
      if let last = groups.last, count + segment.usage.livePutCount <= Self.unsettledLimit {
        groups[groups.count - 1] = last.lowerBound..<granules.upperBound
      } else {
        groups.append(granules)
        count = 0
      }
      count += segment.usage.livePutCount
    }
    return groups
  }

  private func settle(_ entries: [UnsettledEntry], _ now: Timestamp) throws(StoreError) {
    if entries.isEmpty { return }
    let entries = entries.sorted { $0.entry.location.rawValue < $1.entry.location.rawValue }
    let times = index.recency.times
    var reader = HeadReader()
    try reader.read(count: entries.count) {
      entries[$0].entry.location
    } segment: {
      entries[$0].segment
    } _: { number, _, header, _ in
      let unsettled = entries[number]
      let header = header.extended(to: unsettled.end)
      let accessed = times.time(of: unsettled.entry.tick)
      guard var deadline = header.deadline(accessed: { accessed }) else { return }
      if header.hasExpired(accessed: { accessed }, now: now) { deadline.isExact = true }
      index.settleDeadline(
        deadline, of: unsettled.hash, unsettled.entry, extendedTo: unsettled.end, by: now)
    } damaged: { (_, _, error) throws(StoreError) in
      guard error.isLoss else { throw error }
    }
  }

  /// How many keys a read would find, those with it whose record cannot be read.
  func count() throws(StoreError) -> Int {
    try session.checkUsable()
    if index.expirableCount == 0 { return index.count }
    let look = look(at: session.clock.now())
    if let count = try settleDeadlines(look) { return count }
    var passedOver = PassedOver()
    var count = 0
    var unsettled: [UnsettledEntry] = []
    for shard in 0..<HashIndex.shardCount {
      // What has expired may be removed meanwhile, so all of a shard is of one moment.
      count += try forEachDue(inShard: shard, look) { [table] entry, _, end in
        guard let segment = table.segment(at: entry.location) else { return }
        unsettled.append(
          UnsettledEntry(entry: entry, shard: shard, segment: segment, end: end))
      }
      for unsettled in unsettled {
        let offset = unsettled.segment.offset(of: unsettled.entry.location)
        do throws(StoreError) {
          let record = try Record(in: unsettled.segment, at: offset, part: .head)
          let header = record.header.extended(to: unsettled.end)
          if lookup.hasExpired(header, tick: unsettled.entry.tick, now: look.now) { count -= 1 }
        } catch { try passedOver.note(error) }
      }
      unsettled.removeAll(keepingCapacity: true)
    }
    return count
  }

  /// Tells segments anew when the first lifetime of their entries ends, for the checkpoint that follows: the
  /// next session then reads no records of those in which nothing has expired by then.
  ///
  /// - Complexity: O(keys), without a read.
  func updateEarliestExpiries() {
    let now = session.clock.now().millisecondsSinceEpoch
    // Entries that a compaction moves just now come into segments that have others already, those of a
    // batch into the one that it lies in.
    let segments = log.withLock { appender in
      (appender.isConsistent ? appender.segments : [])
        .filter { $0.usage.earliestExpiry <= now }.map { (segment: $0, end: $0.usage.end) }
    }
    if segments.isEmpty { return }
    // By granule; those of other segments stay at the lowest.
    let end = segments.map { $0.segment.granule + $0.segment.granuleCount }.max() ?? 0
    var earliest = [Int64](repeating: .min, count: end)
    for (segment, _) in segments {
      for granule in segment.granules { earliest[granule] = .max }
    }
    for shard in 0..<HashIndex.shardCount {
      let isLoaded = index.forEachDeadline(inShard: shard) { entry, time in
        let granule = entry.location.granule
        if granule < end { earliest[granule] = min(earliest[granule], time ?? .min) }
      }
      if !isLoaded { return }
    }
    log.withLock { _ in
      // Nothing else comes into a segment but what is appended.
      for (segment, end) in segments where segment.usage.end == end {
        let first = segment.granules.reduce(Int64.max) { min($0, earliest[$1]) }
        if first > segment.usage.earliestExpiry { segment.usage.setEarliestExpiry(first) }
      }
    }
  }
}
