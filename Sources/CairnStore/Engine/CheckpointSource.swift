/// Gives the index its shards from a checkpoint; one that is damaged, from the log.
///
/// What it knows ends where the checkpoint does: later records are entered by replay when the store
/// is opened, which loads the shards that they concern. So a shard that is still unloaded has no
/// later records, and no write can have come since: it would have loaded the shard first.
final class CheckpointSource: ShardSource {
  private let file: CheckpointFile
  private let places: SegmentPlaces
  /// By the number in the table; `nil` for those that the store has no more.
  private let segments: [Segment?]
  /// Whether entries are left out because the segment that they name is gone.
  let dropsEntries: Bool
  private let hash: SipHash
  private let floor: SequenceNumber
  private let recency: RecencyClock
  private let log: (@Sendable (String) -> Void)?
  /// When entries that were left out were last accessed, by their hashes.
  private let droppedTicks = Lock<[UInt64: UInt64]>([:])

  init(
    _ file: CheckpointFile, segments: [SegmentID: Segment], hash: SipHash, floor: SequenceNumber,
    recency: RecencyClock, log: (@Sendable (String) -> Void)?
  ) {
    self.file = file
    places = SegmentPlaces(file.header.segments)
    self.segments = file.header.segments.map { segments[$0.id] }
    // One that had neither live puts nor tombstones tells nothing of any entry.
    dropsEntries = zip(file.header.segments, self.segments).contains { covered, segment in
      segment == nil && (covered.livePutCount > 0 || covered.tombstoneCount > 0)
    }
    self.hash = hash
    self.floor = floor
    self.recency = recency
    self.log = log
  }

  func entries(ofShard number: Int) throws(StoreError) -> [IndexEntry] {
    let entries: [IndexEntry]
    do throws(StoreError) { entries = try file.entries(ofShard: number, in: places) } catch {
      // Where entries are left out, the log alone does not tell what the rest amounts to.
      guard case .corrupt(let corruption) = error, !dropsEntries else { throw error }
      log?("\(corruption); what it held is read from the log")
      return try rebuild(number)
    }
    if !dropsEntries || planted(.lostSegmentsKept) { return entries }
    return entries.filter { entry in
      if let place = places.number(of: entry.location), segments[place] != nil { return true }
      droppedTicks.withLock { $0[entry.hash << 24 | UInt64(number)] = entry.tick }
      return false
    }
  }

  /// When an entry that was left out, since its record lies somewhere else now, was last accessed.
  func droppedTick(of hash: UInt64) -> UInt64? {
    droppedTicks.withLock { $0[hash & ~0xFF_FF00] }
  }

  private struct Found {
    var sequence: SequenceNumber
    var location: Location
    /// `nil` for a tombstone.
    var flags: IndexEntry.Flags?
  }

  /// The entries of a shard, from all the records that the checkpoint covers.
  private func rebuild(_ number: Int) throws(StoreError) -> [IndexEntry] {
    var newest: [[UInt8]: Found] = [:]
    for (covered, segment) in zip(file.header.segments, segments) {
      guard let segment else { continue }
      var scanner = SegmentScanner(file: segment.file, header: segment.header, end: covered.end)
      var offset = SegmentHeader.byteCount
      while offset < covered.end {
        guard let header = try scanner.header(at: offset) else {
          throw segment.corruption(at: offset, .badRecordHeader)
        }
        if header.kind == .roll { break }
        let sequence = segment.sequence(of: header)
        if sequence > floor {
          let location = segment.location(at: offset)
          try scanner.withKey(of: header, at: offset) { key in
            guard HashIndex.shard(of: hash.hash(key)) == number else { return }
            let key = key.copied()
            if let known = newest[key], known.sequence >= sequence { return }
            newest[key] = Found(
              sequence: sequence, location: location,
              flags: header.kind == .put ? (header.canExpire ? .canExpire : []) : nil)
          }
        }
        offset += header.byteCount
      }
    }
    // When each was last accessed is lost: as where there is no checkpoint, opening the store counts.
    return newest.sorted { $0.value.sequence < $1.value.sequence }
      .compactMap { key, found in
        found.flags.map {
          IndexEntry(
            hash: HashIndex.stored(key.withSpan { hash.hash($0) }), location: found.location,
            tick: recency.advance(), flags: $0)
        }
      }
      .sorted { $0.hash < $1.hash }
  }
}
