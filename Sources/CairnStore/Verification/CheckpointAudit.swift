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

  /// - Parameter files: the store's files, with an empty table.
  init(_ file: CheckpointFile, _ places: SegmentPlaces, files: SegmentFiles, manifest: Manifest) {
    self.file = file
    self.places = places
    covered = Dictionary(file.header.segments.map { ($0.id, $0) }) { first, _ in first }
    self.files = files
    hash = SipHash(secret: manifest.hashSecret)
    floor = manifest.floorSequence
    index = HashIndex(recency: RecencyClock(now: manifest.lastTime))
    replay = Replay(index: index, hash: hash, table: files.table, floor: floor, segments: [])
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

  /// Adds a sound record of the log.
  func add(
    _ header: RecordHeader, at offset: Int, in segment: Segment,
    scanner: inout SegmentScanner
  ) throws(StoreError) {
    if let covered = covered[segment.id] {
      let isOlder = segment.sequence(of: header) <= file.header.lastSequence
      if isOlder != (offset < covered.end) { hasWrongEnd = true }
    }
    try replay.apply(header, at: offset, in: segment, scanner: &scanner)
  }

  /// The differences between checkpoint and log: the last sequence number if it is wrong;
  /// otherwise, for each shard, the first wrong entry and the first missing one. Call once, after
  /// adding all records.
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
      let contents: ShardContents
      do throws(StoreError) { contents = try file.contents(ofShard: number, in: places) } catch {
        // The damage has already been reported.
        guard error.isLoss else { throw error }
        continue
      }
      try index.copyEntries(ofShard: number, into: &inLog)
      compare(contents, with: inLog, shard: number, &differences)
    }
    try checkStale(&differences)
    try checkExtensions(&differences)
    try checkCopies(&differences)
    return differences.sorted.map { number, shard in
      let offset = file.header.shards[shard].offset + number * Checkpoint.entryByteCount
      return Corruption(file: file.name, offset: offset, cause: .differsFromLog)
    }
  }

  /// The first difference of each kind, by shard.
  private struct Differences {
    /// The number of the first entry that contradicts the log.
    private var wrong: [Int: Int] = [:]
    private var missing: Set<Int> = []
    /// Entries of puts that a later record may have replaced.
    var stale: [(entry: IndexEntry, number: Int, shard: Int)] = []
    /// Puts in segments that the checkpoint does not list, if no omitted entry of the checkpoint
    /// has their hash.
    var copies: [(location: Location, shard: Int)] = []
    /// Records of extensions, each with the entry that it claims to extend.
    var extensions: [(known: LifetimeExtension, hash: UInt64, number: Int, shard: Int)] = []

    mutating func noteWrong(_ number: Int, shard: Int) {
      wrong[shard] = min(wrong[shard] ?? .max, number)
    }

    mutating func noteMissing(shard: Int) { missing.insert(shard) }

    /// Missing entries are reported at the start of their shard.
    var sorted: [(number: Int, shard: Int)] {
      var places = wrong.map { (number: $0.value, shard: $0.key) }
      places += missing.filter { wrong[$0] != 0 }.map { (number: 0, shard: $0) }
      return places.sorted { ($0.shard, $0.number) < ($1.shard, $1.number) }
    }
  }

  private func segment(at location: Location) -> Segment? { files.table.segment(at: location) }

  /// Whether a record is in the part of a segment that the checkpoint covers.
  private func covers(_ location: Location) -> Bool { places.contains(location) }

  private func compare(
    _ contents: ShardContents, with inLog: [IndexEntry], shard: Int,
    _ differences: inout Differences
  ) {
    var known: [Location: IndexEntry] = [:]
    known.reserveCapacity(inLog.count)
    for entry in inLog where !entry.flags.contains(.tombstone) { known[entry.location] = entry }
    var leftOut: Set<UInt64> = []
    for (number, entry) in contents.entries.enumerated() {
      if segment(at: entry.location) == nil {
        leftOut.insert(entry.hash)
      } else if let found = known.removeValue(forKey: entry.location) {
        let hash = entry.hash << 24 | UInt64(shard)
        let end = contents.extensions[entry.location]?.expires ?? .min
        let inForce = index.lifetimeExtension(hash, at: entry.location)
        let isKnownEnd =
          end == inForce?.expires ?? .min
          || inForce.map { end < $0.expires && !covers($0.location) } ?? false
        if found.hash != entry.hash || !isKnownEnd
          || found.flags.contains(.canExpire) != entry.flags.contains(.canExpire)
        {
          differences.noteWrong(number, shard: shard)
        }
        if let known = contents.extensions[entry.location], known.location != .none {
          differences.extensions.append((known, hash, number, shard))
        }
      } else {
        differences.stale.append((entry, number, shard))
      }
    }
    for (location, entry) in known {
      if covers(location) {
        differences.noteMissing(shard: shard)
      } else if isCopy(location), !leftOut.contains(entry.hash) {
        differences.copies.append((location, shard))
      }
    }
  }

  /// Whether a compaction may have copied the record since the checkpoint.
  private func isCopy(_ location: Location) -> Bool {
    guard let segment = segment(at: location), covered[segment.id] == nil else { return false }
    return segment.header.baseSequence <= file.header.lastSequence
  }

  /// Entries that are not in the log's index must be puts of the log that a record after the
  /// checkpoint replaced.
  private func checkStale(_ differences: inout Differences) throws(StoreError) {
    let stale = differences.stale.sorted {
      $0.entry.location.rawValue < $1.entry.location.rawValue
    }
    var wrong: [Int] = []
    var sound: [(number: Int, hash: UInt64)] = []
    let table = files.table
    var reader = HeadReader()
    let (hash, floor, last) = (hash, floor, file.header.lastSequence)
    try reader.read(count: stale.count) {
      stale[$0].entry.location
    } segment: {
      table.segment(at: stale[$0].entry.location)
    } _: { number, segment, header, head in
      let entry = stale[number].entry
      let keyHash = header.kind == .put ? hash.hash(head.extracting(header.keyRange)) : 0
      if header.kind == .put, HashIndex.stored(keyHash) == entry.hash,
        HashIndex.shard(of: keyHash) == stale[number].shard,
        (floor + 1...max(floor + 1, last)).contains(segment.sequence(of: header))
      {
        sound.append((number, keyHash))
      } else {
        wrong.append(number)
      }
    } damaged: { number, _, _ in
      wrong.append(number)
    }
    for (number, keyHash) in sound
    where try !isReplaced(at: stale[number].entry.location, keyHash) { wrong.append(number) }
    for number in wrong { differences.noteWrong(stale[number].number, shard: stale[number].shard) }
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
    while try index.find(hash, after: location, touch: .no, { location = $0.location }) {
      guard let newest = try record(at: location), newest.hasKey(old.key) else { continue }
      return newest.sequence > file.header.lastSequence
    }
    return false
  }

  /// Checks that records of extensions in force are where the checkpoint says.
  private func checkExtensions(_ differences: inout Differences) throws(StoreError) {
    let extensions = differences.extensions.sorted {
      $0.known.location.rawValue < $1.known.location.rawValue
    }
    var wrong: [Int] = []
    let table = files.table
    var reader = HeadReader()
    let hash = hash
    // Skip extensions whose segments are gone: an open searches the log for them.
    try reader.read(count: extensions.count) {
      extensions[$0].known.location
    } segment: {
      table.segment(at: extensions[$0].known.location)
    } _: { number, _, header, head in
      guard header.kind == .extension, header.expires == extensions[number].known.expires,
        header.byteCount == extensions[number].known.byteCount,
        hash.hash(head.extracting(header.keyRange)) & ~0xFF_FF00 == extensions[number].hash
      else {
        wrong.append(number)
        return
      }
    } damaged: { number, _, _ in
      wrong.append(number)
    }
    for number in wrong {
      differences.noteWrong(extensions[number].number, shard: extensions[number].shard)
    }
  }

  /// A put older than the checkpoint is valid only if it is a copy of a put that the checkpoint
  /// has.
  private func checkCopies(_ differences: inout Differences) throws(StoreError) {
    let copies = differences.copies.sorted { $0.location.rawValue < $1.location.rawValue }
    var missing: [Int] = []
    let table = files.table
    var reader = HeadReader()
    let last = file.header.lastSequence
    try reader.read(count: copies.count) {
      copies[$0].location
    } segment: {
      table.segment(at: copies[$0].location)
    } _: { number, segment, header, _ in
      if segment.sequence(of: header) <= last { missing.append(copies[number].shard) }
    } damaged: { _, _, _ in
    }
    for shard in missing { differences.noteMissing(shard: shard) }
  }
}
