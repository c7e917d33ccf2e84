/// Builds the index from the records of the log. The highest sequence number of a key wins, in
/// whatever order the segments are read. Tombstones stay in the index until everything is read.
package struct Replay: ~Copyable {
  let index: HashIndex
  let hash: SipHash
  let table: SegmentTable
  /// Records up to this sequence number are ignored.
  let floor: SequenceNumber
  /// The source of the entries of the checkpoint that the index was loaded from.
  private let source: CheckpointSource?
  /// The shards that have tombstones.
  private var hasTombstones = [Bool](repeating: false, count: HashIndex.shardCount)
  /// The last record with a known access, and the tick from which later records count.
  private let lastKnownSequence: SequenceNumber
  private let firstTick: UInt64
  /// Records not yet in the index.
  private var stretch: ReplayStretch
  /// Records with damaged heads that a replayed record replaced.
  private(set) var replacedDamage: [Corruption] = []
  private(set) var recordCount = 0
  private(set) var highestSequence: SequenceNumber = 0

  init(
    index: HashIndex, hash: SipHash, table: SegmentTable, floor: SequenceNumber,
    segments: [Segment], checkpoint: Checkpoint? = nil, source: CheckpointSource? = nil
  ) {
    self.source = source
    let lowestSequence = segments.map(\.header.baseSequence).min() ?? 1
    lastKnownSequence = checkpoint?.lastSequence ?? (max(1, lowestSequence) - 1)
    firstTick = index.recency.now
    self.index = index
    self.hash = hash
    self.table = table
    self.floor = floor
    stretch = ReplayStretch(index: index, table: table)
  }

  /// Without a checkpoint.
  package init(index: HashIndex, hash: SipHash, table: SegmentTable, floor: SequenceNumber) {
    self.init(index: index, hash: hash, table: table, floor: floor, segments: [])
  }

  /// Completes the index. Call after reading all records. Later accesses get later ticks.
  ///
  /// - Parameter keepsTombstones: whether the index keeps an entry for each removed key.
  package mutating func finish(keepsTombstones: Bool = false) throws(StoreError) {
    try enterStretch()
    let tick = Self.tick(of: highestSequence, first: firstTick, after: lastKnownSequence)
    if let tick { index.recency.skip(past: tick) }
    for (shard, hasTombstones) in hasTombstones.enumerated()
    where hasTombstones && !keepsTombstones {
      try index.removeTombstones(inShard: shard)
    }
  }

  /// Reads the records of a segment up to `end`. An unsound record is corruption.
  mutating func replay(
    _ segment: Segment, from start: Int = SegmentHeader.byteCount, to end: Int
  ) throws(StoreError) {
    if start >= end { return }
    var scanner = try SegmentScanner(segment, end: end)
    try scanner.readAll(of: segment, from: start) {
      (scanner, header, offset) throws(StoreError) in
      if header.kind == .roll {
        segment.usage.add(
          header, sequence: 0, end: offset + header.byteCount, isLive: false)
      } else {
        try apply(header, at: offset, in: segment, scanner: &scanner)
        recordCount += 1
      }
    }
  }

  /// Adds all records of a segment, which counts them already.
  mutating func add(_ records: CollectedRecords, of segment: Segment) throws(StoreError) {
    recordCount += records.count
    highestSequence = max(highestSequence, records.highestSequence)
    stretch.add(records.members, keys: records.keys, in: segment.granule)
    if stretch.isFull { try enterStretch() }
  }

  /// Adds a record that is not a roll record.
  package mutating func apply(
    _ header: RecordHeader, at offset: Int, in segment: Segment, scanner: inout SegmentScanner
  ) throws(StoreError) {
    let sequence = segment.sequence(of: header)
    highestSequence = max(highestSequence, sequence)
    let location = segment.location(at: offset)
    if sequence > floor {
      try scanner.withKey(of: header, at: offset) {
        stretch.add(header, key: $0, hash: hash.hash($0), sequence: sequence, at: location)
      }
    }
    // The record counts as live only once it is in the index.
    segment.usage.add(
      header, sequence: sequence, end: offset + header.byteCount, isLive: false)
    if stretch.isFull { try enterStretch() }
  }

  /// Adds the records of the stretch to the index, unless the index has a newer record of the same
  /// key.
  private mutating func enterStretch() throws(StoreError) {
    if stretch.isEmpty { return }
    let (source, lastKnownSequence, firstTick) = (source, lastKnownSequence, firstTick)
    let (index, table) = (index, table)
    var damage: [Corruption] = []
    try stretch.resolve { member, location, corruption in
      // A scan would have found damage elsewhere. Here the checkpoint shows that a record existed.
      guard source?.covers(location) ?? false else { return .refused }
      // A record that a compaction copied either has an entry with its hash, or is ignored.
      if member.sequence <= lastKnownSequence { return .anotherKey }
      damage.append(corruption)
      return .replaced
    }
    replacedDamage += damage
    var hasTombstones = hasTombstones
    var live = LiveRecords(table: table)
    try stretch.enter { member, replacesEntry in
      let isTombstone = member.flags.contains(.tombstone)
      var known: UInt64?
      // A compaction has copied the record since the checkpoint. Such a copy is used only if the
      // checkpoint has an entry for it. A tombstone that the checkpoint covers has removed all
      // other copies, even those made before the tombstone. Of two copies of a key, the newer one
      // replaces the other, and takes its tick.
      if let source, member.sequence <= lastKnownSequence {
        known = source.droppedTick(of: member.hash)
        if known == nil, !replacesEntry { return nil }
      }
      if isTombstone {
        hasTombstones[HashIndex.shard(of: member.hash)] = true
      } else {
        live.add(member)
      }
      return known
        ?? Self.tick(of: member.sequence, first: firstTick, after: lastKnownSequence)
        ?? index.recency.advance()
    }
    live.flush()
    self.hasTombstones = hasTombstones
  }

  /// The tick of a record's entry. Recency follows the order of writes, in whatever order a
  /// compaction left the records. `nil` in a store with more writes than ticks: recency then
  /// follows the order in which records are added.
  private static func tick(
    of sequence: SequenceNumber, first: UInt64, after lastKnown: SequenceNumber
  ) -> UInt64? {
    let tick = first + sequence - min(sequence, lastKnown)
    return tick < IndexEntry.tickLimit / 4 * 3 ? tick : nil
  }
}

/// Counts live records, segment by segment.
private struct LiveRecords {
  let table: SegmentTable
  private var granule = 0
  private var count = 0
  private var byteCount = 0

  init(table: SegmentTable) { self.table = table }

  @inline(__always)
  mutating func add(_ member: ReplayStretch.Member) {
    if member.location.granule != granule {
      flush()
      granule = member.location.granule
    }
    count += 1
    byteCount += member.byteCount
  }

  /// Adds the counts to the segment's usage.
  mutating func flush() {
    if count == 0 { return }
    table.segment(at: Location(granule: granule, offset: 0))?.usage
      .revive(count: count, byteCount: byteCount)
    count = 0
    byteCount = 0
  }
}
