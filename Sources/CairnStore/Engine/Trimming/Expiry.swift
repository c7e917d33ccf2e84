/// An entry whose deadline has passed but is not exact, so it is unknown whether the entry has
/// expired.
private struct UnsettledEntry {
  var entry: IndexEntry
  var shard: Int
  var segment: Segment

  var hash: UInt64 { entry.hash(inShard: shard) }
}

/// Finds expired entries by the deadlines in the index.
///
/// A record is read once its entry's deadline has passed, if the deadline is not exact. A deadline
/// is not exact if the entry has an idle limit, or if the open found only when the first lifetime in
/// its segment ends. Reading the record makes the deadline exact, or later.
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

  /// How many records are checked together, in disk order.
  private static let unsettledLimit = 1 << 18

  /// - Parameter present: the present, or `nil` for `now`.
  func look(at now: Timestamp, present: Timestamp? = nil) -> ExpiryLook {
    let segments = index.isLoaded ? [] : log.segments
    return ExpiryLook(
      now: now, present: present ?? now, times: index.recency.times, segments: segments)
  }

  /// Calls `body` under the shard's lock with each entry whose deadline has passed.
  ///
  /// - Parameter visitsPassed: whether to include entries that have certainly expired.
  /// - Returns: the number of entries in the shard that have not certainly expired.
  @inline(__always)
  func forEachDue(
    inShard shard: Int, _ look: ExpiryLook, visitsPassed: Bool = false,
    _ body: (IndexEntry, Deadline.State) -> Void
  ) throws(StoreError) -> Int {
    try index.forEachDue(
      inShard: shard, by: look.now, present: look.present, loads: look.loads,
      visitsPassed: visitsPassed,
      earliest: { [table] entry in
        table.segment(at: entry.location)?.usage
          .earliestExpiry { look.times.time(of: entry.tick) } ?? .min
      }, body)
  }

  /// Reads the heads of all records whose entries' deadlines have passed and are not exact.
  ///
  /// A deadline stays unchanged if the head cannot be read or the entry changes in the meantime.
  ///
  /// - Returns: the number of unexpired entries, or `nil` if the deadlines alone do not show it.
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
    // After an open, these may be nearly all entries. Proceed segment by segment, so that each
    // segment is read once.
    for granules in granulesOfSegmentGroups {
      entries.removeAll(keepingCapacity: true)
      _ = try findUnsettled(look) { unsettled in
        if granules.contains(unsettled.entry.location.granule) { entries.append(unsettled) }
      }
      try settle(entries, look.now)
    }
    return nil
  }

  /// Calls `body` with each entry whose deadline has passed and is not exact.
  ///
  /// - Returns: the number of unexpired entries, or `nil` if the deadlines alone do not show it.
  private func findUnsettled(
    _ look: ExpiryLook, _ body: (UnsettledEntry) -> Void
  ) throws(StoreError) -> Int? {
    var count = 0
    var isKnown = true
    for shard in 0..<HashIndex.shardCount {
      try session.checkUsable()
      count += try forEachDue(inShard: shard, look) { [table] entry, state in
        isKnown = false
        guard state == .inexact, let segment = table.segment(at: entry.location) else { return }
        body(UnsettledEntry(entry: entry, shard: shard, segment: segment))
      }
    }
    return isKnown ? count : nil
  }

  /// The granules of the segments, in groups with about as many entries as are checked together.
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
      let accessed = times.time(of: unsettled.entry.tick)
      guard var deadline = header.deadline(accessed: { accessed }) else { return }
      if header.hasExpired(accessed: { accessed }, now: now) { deadline.isExact = true }
      index.settleDeadline(deadline, of: unsettled.hash, unsettled.entry, by: now)
    } damaged: { (_, _, error) throws(StoreError) in
      guard error.isLoss else { throw error }
    }
  }

  /// The number of keys that a read would find, including those with unreadable records.
  func count() throws(StoreError) -> Int {
    try session.checkUsable()
    if index.expirableCount == 0 { return index.count }
    let look = look(at: session.clock.now())
    if let count = try settleDeadlines(look) { return count }
    var passedOver = PassedOver()
    var count = 0
    var unsettled: [UnsettledEntry] = []
    for shard in 0..<HashIndex.shardCount {
      // Expired entries may be removed in the meantime, so find all entries of a shard at one
      // moment.
      count += try forEachDue(inShard: shard, look) { [table] entry, _ in
        guard let segment = table.segment(at: entry.location) else { return }
        unsettled.append(UnsettledEntry(entry: entry, shard: shard, segment: segment))
      }
      for unsettled in unsettled {
        let offset = unsettled.segment.offset(of: unsettled.entry.location)
        do throws(StoreError) {
          let header = try Record(in: unsettled.segment, at: offset, part: .head).header
          if lookup.hasExpired(header, tick: unsettled.entry.tick, now: look.now) { count -= 1 }
        } catch { try passedOver.note(error) }
      }
      unsettled.removeAll(keepingCapacity: true)
    }
    return count
  }

  /// Updates the earliest end of a lifetime in each segment, for the next checkpoint. The next
  /// session then reads no records of segments without expired entries.
  ///
  /// - Complexity: O(keys), without reading records.
  func updateEarliestExpiries() {
    let now = session.clock.now().millisecondsSinceEpoch
    // While a compaction moves entries or a batch is being published, segments get entries without
    // an append.
    let segments = log.withLock { appender in
      (appender.isConsistent ? appender.segments : [])
        .filter { $0.usage.earliestExpiry <= now }.map { (segment: $0, end: $0.usage.end) }
    }
    if segments.isEmpty { return }
    // The earliest end in each granule. Other segments keep the lowest value.
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
      // Only appends add entries to a segment.
      for (segment, end) in segments where segment.usage.end == end {
        let first = segment.granules.reduce(Int64.max) { min($0, earliest[$1]) }
        if first > segment.usage.earliestExpiry { segment.usage.setEarliestExpiry(first) }
      }
    }
  }
}
