/// Builds the index from the records of the log. The highest sequence number of a key wins,
/// whatever order the segments are read in; tombstones stay in the index until all are read.
struct Replay: ~Copyable {
  let index: HashIndex
  let hash: SipHash
  let table: SegmentTable
  /// Records with this sequence number or a lower one do not count.
  let floor: SequenceNumber
  /// What the index was made of before, and when its entries were accessed that are left out.
  private let checkpoint: Checkpoint?
  private let source: CheckpointSource?
  /// So many records are looked at before they are entered, or fewer that have so many bytes of heads: it
  /// bounds the memory that takes.
  private static let stretchRecordCount = 1 << 15
  private static let stretchByteCount = 4 << 20
  /// The shards that have tombstones.
  private var hasTombstones = [Bool](repeating: false, count: HashIndex.shardCount)
  private var extensions = ExtensionsByTarget()
  /// The last record whose access is known, and the tick at which those after it begin.
  private let lastKnownSequence: SequenceNumber
  private let firstTick: UInt64
  /// The heads of the records that are next, and of those that they may replace.
  private var heads = HeadCache()
  private(set) var recordCount = 0
  private(set) var highestSequence: SequenceNumber = 0

  init(
    index: HashIndex, hash: SipHash, table: SegmentTable, floor: SequenceNumber,
    segments: [Segment], checkpoint: Checkpoint? = nil, source: CheckpointSource? = nil
  ) {
    self.checkpoint = checkpoint
    self.source = source
    let lowestSequence = segments.map(\.header.baseSequence).min() ?? 1
    lastKnownSequence = checkpoint?.lastSequence ?? (max(1, lowestSequence) - 1)
    firstTick = index.recency.now
    self.index = index
    self.hash = hash
    self.table = table
    self.floor = floor
  }

  /// All records have been read: what is accessed from now on is later.
  func finish() throws(StoreError) {
    for (version, known) in extensions.known { try extend(version, known) }
    if let tick = tick(of: highestSequence) { index.recency.skip(past: tick) }
    for (shard, hasTombstones) in hasTombstones.enumerated() where hasTombstones {
      index.removeTombstones(inShard: shard)
    }
  }

  /// Reads the records of a segment, which must be sound up to `end`: a record that is not is
  /// corruption.
  mutating func replay(
    _ segment: Segment, from start: Int = SegmentHeader.byteCount, to end: Int
  ) throws(StoreError) {
    if start >= end { return }
    var scanner = SegmentScanner(file: segment.file, header: segment.header, end: end)
    var batch = BatchProgress()
    var offset = start
    var knownEnd = start
    while offset < end {
      if offset == knownEnd {
        knownEnd = try lookAhead(in: segment, from: offset, to: end)
      }
      guard let header = try scanner.header(at: offset) else {
        throw segment.corruption(at: offset, .badRecordHeader)
      }
      guard batch.accept(header, at: offset) else {
        throw segment.corruption(at: batch.start ?? offset, .incompleteBatch)
      }
      let next = offset + header.byteCount
      if header.kind == .roll {
        guard next == end else { throw segment.corruption(at: next, .badLength) }
        segment.usage.add(header, sequence: 0, end: next, isLive: false)
        break
      }
      try apply(header, at: offset, in: segment, scanner: &scanner)
      recordCount += 1
      offset = next
    }
    if let start = batch.start, !planted(.batchEndIgnored) {
      throw segment.corruption(at: start, .incompleteBatch)
    }
  }

  /// Reads the heads that a stretch of a segment needs.
  ///
  /// What is wrong with the records is found when it is their turn.
  ///
  /// - Returns: where the stretch ends.
  private mutating func lookAhead(
    in segment: Segment, from start: Int, to end: Int
  ) throws(StoreError) -> Int {
    heads.removeAll()
    var scanner = SegmentScanner(file: segment.file, header: segment.header, end: end)
    var locations: [Location] = []
    var offset = start
    for _ in 0..<Self.stretchRecordCount
    where offset < end && heads.byteCount < Self.stretchByteCount {
      guard let header = try scanner.header(at: offset), header.kind != .roll,
        let head = try scanner.head(of: header, at: offset)
      else { break }
      let hash = head.withSpan { [hash] in hash.hash($0.extracting(header.keyRange)) }
      var location = Location.none
      while try index.find(hash, after: location, touch: .no, { location = $0.location }) {
        locations.append(location)
      }
      // A later record may replace this one.
      heads.add(head, at: segment.location(at: offset))
      offset += header.byteCount
    }
    try heads.read(locations, of: table)
    return offset
  }

  /// The head of a record that is there already.
  private func knownRecord(
    in segment: Segment, at location: Location
  ) throws(StoreError) -> Record {
    if let record = try heads.record(in: segment, at: location) { return record }
    return try Record(
      in: segment, at: segment.offset(of: location), part: .head, byCalls: true)
  }

  private mutating func apply(
    _ header: RecordHeader, at offset: Int, in segment: Segment, scanner: inout SegmentScanner
  ) throws(StoreError) {
    let sequence = segment.sequence(of: header)
    highestSequence = max(highestSequence, sequence)
    var isNewest = false
    let isIgnored =
      header.kind == .tombstone
      && (planted(.tombstonesIgnored)
        || checkpoint != nil && planted(.tombstonesAfterCheckpointIgnored))
    if header.kind == .extension {
      let location = segment.location(at: offset)
      if sequence > floor, !planted(.extensionsIgnored) {
        try scanner.withKey(of: header, at: offset) {
          extensions.add(
            header, sequence: sequence, hash: hash.hash($0), at: location, floor: floor)
        }
      }
    } else if sequence > floor && !isIgnored {
      isNewest = try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) in
        try publish(header, key: key, sequence: sequence, at: segment.location(at: offset))
      }
    }
    segment.usage.add(
      header, sequence: sequence, end: offset + header.byteCount,
      isLive: isNewest && header.kind == .put)
  }

  /// Enters a record in the index unless it knows a newer one of the same key.
  private mutating func publish(
    _ header: RecordHeader, key: RawSpan, sequence: SequenceNumber, at location: Location
  ) throws(StoreError) -> Bool {
    let hash = hash.hash(key)
    var flags: IndexEntry.Flags = header.canExpire ? .canExpire : []
    if header.kind == .tombstone {
      flags.insert(.tombstone)
      hasTombstones[HashIndex.shard(of: hash)] = true
    }
    var entry = IndexEntry.empty
    let tick = tick(of: sequence)
    var segment: Segment?
    while try index.find(
      hash, after: entry.location, touch: .no,
      {
        entry = $0
        segment = table.segment(at: $0.location)
      })
    {
      guard let segment else { continue }
      let record = try knownRecord(in: segment, at: entry.location)
      guard record.hasKey(key) else { continue }
      if record.sequence >= sequence || planted(.oldestWins) { return false }
      _ = index.replace(hash, old: entry.location, new: location, flags: flags, tick: tick)
      if !entry.flags.contains(.tombstone) {
        segment.usage.kill(byteCount: record.header.byteCount)
      }
      return true
    }
    // What was there when the checkpoint was made has been compacted since. Of what is in none of its
    // segments only that counts whose entry it has: everything else was removed before it was made, by a
    // tombstone that it covers, though the copy may have been made before that.
    var known: UInt64?
    if let source, sequence <= lastKnownSequence {
      known = source.droppedTick(of: hash)
      if known == nil, !planted(.copiesRevive) { return false }
    }
    index.insert(hash, location: location, flags: flags, tick: known ?? tick)
    if sequence <= lastKnownSequence, header.kind == .put, header.flags.contains(.expiry),
      let dropped = source?.droppedExtension(of: hash), dropped.expires > header.expires
    {
      _ = index.extend(hash, at: location, dropped)
      table.segment(at: dropped.location)?.usage.reviveExtension(byteCount: dropped.byteCount)
    }
    return true
  }

  /// Gives a put the end that an extension says, if the put is still its key's newest record.
  private func extend(
    _ version: SequenceNumber, _ known: ExtensionsByTarget.Known
  ) throws(StoreError) {
    var entry = IndexEntry.empty
    var segment: Segment?
    while try index.find(
      known.hash, after: entry.location, touch: .no,
      {
        entry = $0
        segment = table.segment(at: $0.location)
      })
    {
      guard let segment, !entry.flags.contains(.tombstone) else { continue }
      let record = try Record(
        in: segment, at: segment.offset(of: entry.location), part: .head, byCalls: true)
      guard record.sequence == version || planted(.extensionOfAnyVersion),
        record.header.flags.contains(.expiry), known.lifetime.expires > record.header.expires
      else { continue }
      if let other = index.lifetimeExtension(known.hash, at: entry.location),
        // The checkpoint may know the end and not where the record is now.
        other.expires > known.lifetime.expires
          || other.expires == known.lifetime.expires && other.location != .none
      {
        return
      }
      _ = index.extend(known.hash, at: entry.location, known.lifetime)
      table.segment(at: known.lifetime.location)?.usage
        .reviveExtension(byteCount: known.lifetime.byteCount)
      return
    }
  }

  /// The tick of a record's entry: the order of writes is that of recency, in whatever order a
  /// compaction left the records. In a store with more writes than there are ticks it is that of
  /// reading.
  private func tick(of sequence: SequenceNumber) -> UInt64? {
    let tick = firstTick + sequence - min(sequence, lastKnownSequence)
    return tick < IndexEntry.tickLimit / 4 * 3 ? tick : nil
  }

}
