import CairnStore

/// Compares a checkpoint with the log: an open through the checkpoint must find the same as a read
/// of all records.
///
/// The records are indexed as in an open without a checkpoint. Then each entry of the checkpoint
/// must be the put that the log has for its key, or a put that a record after the checkpoint
/// replaced. An open through the checkpoint does not read every record: each put that it would skip
/// must have an entry. The audit uses as much memory as the index of the open store.
final class CheckpointAudit {
  private let file: CheckpointFile
  private let places: SegmentPlaces
  private let covered: [SegmentID: Checkpoint.CoveredSegment]
  private let files: SegmentFiles
  private let hash: SipHash
  private let floor: SequenceNumber
  private let index: HashIndex
  private var replay: Replay
  /// Whether a covered record is newer than the checkpoint, or an uncovered record is older.
  private var hasWrongEnd = false
  /// The covered records of each segment, counted from the log.
  private var counted: [SegmentID: SegmentUsage] = [:]
  /// The number of entries in each segment of the table, or `nil` if a shard is damaged.
  private var entryCounts: [Int]?

  /// - Parameter files: the store's files, with an empty table.
  init(_ file: CheckpointFile, _ places: SegmentPlaces, files: SegmentFiles, manifest: Manifest) {
    self.file = file
    self.places = places
    covered = Dictionary(file.header.segments.map { ($0.id, $0) }) { first, _ in first }
    entryCounts = file.header.segments.map { _ in 0 }
    self.files = files
    hash = SipHash(secret: manifest.hashSecret)
    floor = manifest.floorSequence
    index = HashIndex(recency: RecencyClock(now: manifest.lastTime))
    replay = Replay(index: index, hash: hash, table: files.table, floor: floor)
    // Segments that the checkpoint does not list are placed after all the segments that it lists,
    // even if those are gone.
    files.table.beginPlacing(
      below: file.header.segments.reduce(1) { max($0, $1.granules.upperBound) })
  }

  /// Opens a segment at the place that the checkpoint gives it.
  ///
  /// - Throws: `corrupt` if the segment does not fit there, or if there is no room beside the
  ///   checkpoint's segments.
  func open(
    id: SegmentID, salt: UInt64, byteCount: Int
  ) throws(StoreError) -> Segment {
    let noRoom = Corruption(
      file: file.name, offset: Checkpoint.fixedByteCount, cause: .badLength)
    if let covered = covered[id], byteCount > covered.capacity { throw .corrupt(noRoom) }
    do throws(StoreError) {
      return try files.open(
        id: id, salt: salt, byteCount: byteCount, capacity: nil, readOnly: true,
        at: covered[id]?.granule)
    } catch {
      // The location space is full.
      guard case .system(let failure) = error, failure.call == SegmentTable.callName else {
        throw error
      }
      throw .corrupt(noRoom)
    }
  }

  /// Adds a sound record of the log, rolls included.
  func add(
    _ header: RecordHeader, at offset: Int, in segment: Segment,
    scanner: inout SegmentScanner
  ) throws(StoreError) {
    let sequence = segment.sequence(of: header)
    if let covered = covered[segment.id] {
      if offset < covered.end {
        let usage = counted[segment.id] ?? SegmentUsage(total: UsageTotal())
        counted[segment.id] = usage
        usage.add(header, sequence: sequence, end: offset + header.byteCount, isLive: false)
      }
      if header.kind != .roll, (sequence <= file.header.lastSequence) != (offset < covered.end) {
        hasWrongEnd = true
      }
    }
    if header.kind == .roll { return }
    try replay.apply(header, at: offset, in: segment, scanner: &scanner)
  }

  /// The segments of the table whose end is inside a record, or whose counts differ from the log or
  /// the entries. Compactions rely on the counts: a wrong one can make them drop a tombstone too
  /// early.
  private func wrongSegments() -> [Corruption] {
    let table = file.header.segments
    return table.indices.filter { number in
      let known = table[number]
      var found = known
      if segment(at: Location(granule: known.granule, offset: 0))?.id == known.id {
        let usage = counted[known.id] ?? SegmentUsage(total: UsageTotal())
        usage.save(to: &found)
        found.end = usage.end
        // Live records are counted by entries. The others are not compared.
        found.liveByteCount = known.liveByteCount
        (found.earliestExpiry, found.shortestIdleLimit) =
          (known.earliestExpiry, known.shortestIdleLimit)
      }
      found.livePutCount = entryCounts?[number] ?? known.livePutCount
      return found != known
    }.map {
      Corruption(file: file.name, offset: file.header.offset(ofSegment: $0), cause: .differsFromLog)
    }
  }

  /// The differences between checkpoint and log: the last sequence number if it is wrong;
  /// otherwise each wrong segment of the table and, for each shard, the first wrong entry and the
  /// first missing one. Call once, after adding all records.
  func differences() throws(StoreError) -> [Corruption] {
    if hasWrongEnd {
      return [
        Corruption(
          file: file.name, offset: Checkpoint.lastSequenceOffset, cause: .differsFromLog)
      ]
    }
    try replay.finish(keepsTombstones: true)
    var differences = Differences()
    var inLog: [IndexEntry] = []
    for number in 0..<Checkpoint.shardCount {
      let entries: [IndexEntry]
      do throws(StoreError) { entries = try file.entries(ofShard: number, in: places) } catch {
        // The damage has already been reported.
        guard case .corrupt = error else { throw error }
        entryCounts = nil
        continue
      }
      try index.copyEntries(ofShard: number, into: &inLog)
      compare(entries, with: inLog, shard: number, &differences)
    }
    try check(differences.suspects, &differences)
    return wrongSegments()
      + differences.sorted.map { number, shard in
        let offset = file.header.shards[shard].offset + number * Checkpoint.entryByteCount
        return Corruption(file: file.name, offset: offset, cause: .differsFromLog)
      }
  }

  /// A record whose head shows whether the checkpoint is right.
  private struct Suspect {
    enum Claim {
      /// The entry is of this put, and a record after the checkpoint replaced it.
      case replacedPut(IndexEntry)
      /// It is newer than the checkpoint: a put in a segment that the table does not list, if no
      /// omitted entry has its hash, or a tombstone with the hash of an omitted entry.
      case newer
    }

    var location: Location
    /// The entry that is wrong if the claim is, or `nil` if an entry is missing then.
    var number: Int?
    var shard: Int
    var claim: Claim
  }

  /// The first difference of each kind, by shard.
  private struct Differences {
    /// The number of the first entry that contradicts the log.
    private var wrong: [Int: Int] = [:]
    private var missing: Set<Int> = []
    var suspects: [Suspect] = []

    /// - Parameter number: the wrong entry, or `nil` if one is missing.
    mutating func note(wrong number: Int?, shard: Int) {
      if let number {
        wrong[shard] = min(wrong[shard] ?? .max, number)
      } else {
        missing.insert(shard)
      }
    }

    /// Missing entries are reported at the start of their shard.
    var sorted: [(number: Int, shard: Int)] {
      var places = wrong.map { (number: $0.value, shard: $0.key) }
      places += missing.filter { wrong[$0] != 0 }.map { (number: 0, shard: $0) }
      return places.sorted { ($0.shard, $0.number) < ($1.shard, $1.number) }
    }
  }

  private func segment(at location: Location) -> Segment? { files.table.segment(at: location) }

  /// Whether a record is in the part of a segment that the checkpoint covers.
  private func covers(_ location: Location) -> Bool { places.number(of: location) != nil }

  private func compare(
    _ entries: [IndexEntry], with inLog: [IndexEntry], shard: Int,
    _ differences: inout Differences
  ) {
    var known: [Location: IndexEntry] = [:]
    known.reserveCapacity(inLog.count)
    for entry in inLog where !entry.flags.contains(.tombstone) { known[entry.location] = entry }
    var leftOut: [UInt64: Int] = [:]
    func add(_ location: Location, _ number: Int?, _ claim: Suspect.Claim) {
      differences.suspects.append(
        Suspect(location: location, number: number, shard: shard, claim: claim))
    }
    for (number, entry) in entries.enumerated() {
      if let place = places.number(of: entry.location) { entryCounts?[place] += 1 }
      if segment(at: entry.location) == nil {
        leftOut[entry.hash] = number
      } else if let found = known.removeValue(forKey: entry.location) {
        if found.hash != entry.hash
          || found.flags.contains(.canExpire) != entry.flags.contains(.canExpire)
        {
          differences.note(wrong: number, shard: shard)
        }
      } else {
        add(entry.location, number, .replacedPut(entry))
      }
    }
    for (location, entry) in known {
      if covers(location) {
        differences.note(wrong: nil, shard: shard)
      } else if isCopy(location), leftOut[entry.hash] == nil {
        add(location, nil, .newer)
      }
    }
    if leftOut.isEmpty { return }
    for entry in inLog where entry.flags.contains(.tombstone) {
      // An open would take an older put in a segment outside the table for the entry's record.
      guard let number = leftOut[entry.hash] else { continue }
      add(entry.location, number, .newer)
    }
  }

  /// Whether a compaction may have copied the record since the checkpoint.
  private func isCopy(_ location: Location) -> Bool {
    guard let segment = segment(at: location), covered[segment.id] == nil else { return false }
    return segment.header.baseSequence <= file.header.lastSequence
  }

  /// Reads the heads of all suspects, and notes the wrong ones.
  private func check(_ suspects: [Suspect], _ differences: inout Differences) throws(StoreError) {
    let suspects = suspects.sorted { $0.location.rawValue < $1.location.rawValue }
    var wrong: [Int] = []
    var puts: [(number: Int, hash: UInt64)] = []
    let table = files.table
    var reader = HeadReader()
    let (hash, floor, last) = (hash, floor, file.header.lastSequence)
    try reader.read(count: suspects.count) {
      suspects[$0].location
    } segment: {
      table.segment(at: suspects[$0].location)
    } _: { number, segment, header, head in
      let keyHash = hash.hash(head.extracting(header.keyRange))
      let sequence = segment.sequence(of: header)
      let isRight =
        switch suspects[number].claim {
        case .replacedPut(let entry):
          header.kind == .put && HashIndex.stored(keyHash) == entry.hash
            && HashIndex.shard(of: keyHash) == suspects[number].shard
            && (floor + 1...max(floor + 1, last)).contains(sequence)
        case .newer: sequence > last
        }
      if !isRight {
        wrong.append(number)
      } else if case .replacedPut = suspects[number].claim {
        puts.append((number, keyHash))
      }
    } damaged: { number, _, error throws(StoreError) in
      // An error of the disk is no difference.
      guard case .corrupt = error else { throw error }
      wrong.append(number)
    }
    for (number, keyHash) in puts
    where try !isReplaced(at: suspects[number].location, keyHash) { wrong.append(number) }
    for suspect in wrong.map({ suspects[$0] }) {
      differences.note(wrong: suspect.number, shard: suspect.shard)
    }
  }

  /// Whether the newest record of a put's key is newer than the checkpoint.
  private func isReplaced(at put: Location, _ hash: UInt64) throws(StoreError) -> Bool {
    func record(at location: Location) throws(StoreError) -> Record? {
      guard let segment = segment(at: location) else { return nil }
      return try Record(
        in: segment, at: segment.offset(of: location), part: .head, byCalls: true)
    }
    guard let old = try record(at: put) else { return false }
    var location = Location.none
    while try index.find(hash, after: location, touch: false, { location = $0.location }) {
      guard let newest = try record(at: location), newest.hasKey(old.key) else { continue }
      return newest.sequence > file.header.lastSequence
    }
    return false
  }
}
