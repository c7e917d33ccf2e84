/// Copies what a round of a compaction keeps into new segments.
///
/// Inputs are read by system calls and checked in full: a record that is damaged ends the round, and
/// the inputs stay as they are.
struct CompactionCopier: ~Copyable {
  /// The newest number when the round began.
  let began: SequenceNumber
  /// Tombstones below this number may go.
  let barrier: SequenceNumber
  private let compactor: Compactor
  private let inputs: [Segment]
  /// Where the only input is cut in two, what lies before stays where it is; `nil`: nothing stays.
  private let cut: SegmentOutline.Mark?
  private let pace: CompactionPace?

  /// The segment that is written.
  private var output: CompactionOutput?
  /// Those that are complete.
  private(set) var finished: [Finished] = []
  private(set) var moves: [Move] = []
  /// Those of extensions.
  private(set) var extensionMoves: [Move] = []
  /// When the lifetimes of copied puts end that had been extended, by the number of the move.
  private(set) var ends: [Int: Int64] = [:]
  private(set) var droppedTombstoneCount = 0
  private var recordsSinceBreath = 0
  /// How often a record could not follow the one before it for its number or time, and how often that may be for
  /// reasons that are not those of the inputs' borders.
  private var farCount = 0
  private static let farLimit = 64

  /// A segment that is written and on disk.
  struct Finished {
    let header: SegmentHeader
    let usage: SegmentUsage
  }

  /// Where a live record lay, and where its copy does; offsets in units of 8 bytes.
  struct Move {
    let hash: UInt64
    let oldOffset: UInt32
    let newOffset: UInt32
    /// In units of 8 bytes.
    let newSize: UInt32
    let input: UInt16
    let output: UInt16
    /// By how much the copy is shorter than what it was copied from.
    let shrinkage: UInt8

    var newByteCount: Int { Int(newSize) << 3 }
    var oldByteCount: Int { newByteCount + Int(shrinkage) }
  }

  init(
    compactor: Compactor, inputs: [Segment], cut: SegmentOutline.Mark? = nil, began: SequenceNumber,
    barrier: SequenceNumber, pace: CompactionPace?
  ) {
    self.compactor = compactor
    self.inputs = inputs
    self.cut = cut
    self.began = began
    self.barrier = barrier
    self.pace = pace
  }

  /// Ids of all segments that were begun.
  private(set) var ids: [SegmentID] = []

  /// Why a round ends early: a removal of all took its segments.
  private(set) var isOvertaken = false

  /// Between pieces: ends the round where the store was closed or emptied, and lets others get on.
  private mutating func breathe() throws(StoreError) {
    try compactor.session.checkWritable()
    if inputs.contains(where: \.isRetired) {
      // What it reads and writes takes space that others count on.
      isOvertaken = true
      throw .closed(path: compactor.session.path)
    }
    pace?.rest()
  }

  mutating func copy(_ index: Int) throws(StoreError) {
    let segment = inputs[index]
    let end = segment.usage.end
    var scanner = try SegmentScanner(segment, end: end)
    var offset = cut?.offset ?? SegmentHeader.byteCount
    while offset < end {
      guard let header = try scanner.header(at: offset) else {
        throw segment.corruption(at: offset, .badRecordHeader)
      }
      switch header.kind {
      case .roll: break
      case .tombstone:
        if try isNeeded(header, at: offset, in: segment, scanner: &scanner) {
          _ = try append(header, at: offset, from: index, hash: 0, scanner: &scanner)
        } else {
          droppedTombstoneCount += 1
        }
      case .put:
        let hash = try scanner.withKey(of: header, at: offset) { compactor.lookup.hash.hash($0) }
        let location = segment.location(at: offset)
        if isLive(hash, at: location, in: segment) {
          try copyPut(
            header, at: offset, from: index, hash: hash, scanner: &scanner,
            end: compactor.lookup.index.lifetimeExtension(hash, at: location)?.expires)
        }
      case .extension:
        let hash = try scanner.withKey(of: header, at: offset) { compactor.lookup.hash.hash($0) }
        if isNeeded(extensionAt: segment.location(at: offset), hash) {
          extensionMoves.append(
            try append(header, at: offset, from: index, hash: hash, scanner: &scanner))
        }
      }
      offset += header.byteCount
      try breatheSometimes()
    }
  }

  private mutating func breatheSometimes() throws(StoreError) {
    recordsSinceBreath += 1
    if recordsSinceBreath >= 4096 {
      recordsSinceBreath = 0
      try breathe()
    }
  }

  /// Adds the records of the only input up to `end` to an outline.
  mutating func outline(
    _ outline: inout SegmentOutline, to end: Int
  ) throws(StoreError) {
    let segment = inputs[0]
    var scanner = try SegmentScanner(segment, end: end)
    var offset = outline.end.offset
    while offset < end {
      guard let header = try scanner.header(at: offset) else {
        throw segment.corruption(at: offset, .badRecordHeader)
      }
      var isNeeded = header.kind != .roll
      if header.kind == .put {
        let hash = try scanner.withKey(of: header, at: offset) { compactor.lookup.hash.hash($0) }
        isNeeded = isLive(hash, at: segment.location(at: offset), in: segment)
      }
      let sequence = segment.sequence(of: header)
      guard outline.add(header, sequence: sequence, isNeeded: isNeeded) else {
        throw segment.corruption(at: offset, .incompleteBatch)
      }
      offset += header.byteCount
      try breatheSometimes()
    }
    outline.finish()
  }

  /// Copies a put; where its lifetime was extended, with the later end.
  private mutating func copyPut(
    _ header: RecordHeader, at offset: Int, from index: Int, hash: UInt64,
    scanner: inout SegmentScanner, end: Int64?
  ) throws(StoreError) {
    var header = header
    if let end {
      header = header.extended(to: end)
      ends[moves.count] = header.expires
    }
    moves.append(try append(header, at: offset, from: index, hash: hash, scanner: &scanner))
  }

  /// Whether an extension has to be kept: where it is in force and its put stays where it is. A put
  /// that is copied takes its end along. What took the place of an extension that is not in force,
  /// a later one or another record of the key, is on disk before this one goes: the sync before the
  /// switch is for that too.
  private func isNeeded(extensionAt location: Location, _ hash: UInt64) -> Bool {
    var owner: Segment?
    let put = compactor.lookup.index.location(hash, extendedBy: location) {
      owner = compactor.lookup.table.segment(at: $0)
    }
    guard let put else { return false }
    guard let input = inputs.first(where: { $0 === owner }) else { return true }
    // What lies before the cut stays.
    guard let cut else { return false }
    return input.offset(of: put) < cut.offset
  }

  /// Whether the index names this very record. A record that is not live now never is again.
  private func isLive(_ hash: UInt64, at location: Location, in segment: Segment) -> Bool {
    var isSame = false
    _ = compactor.lookup.index.find(hash, at: location) { _ in
      isSame = compactor.lookup.table.segment(at: location) === segment
    }
    return isSame
  }

  /// Whether a tombstone has to be kept: where its key has no newer record and an older put of it may
  /// lie in a segment that stays.
  private func isNeeded(
    _ header: RecordHeader, at offset: Int, in segment: Segment, scanner: inout SegmentScanner
  ) throws(StoreError) -> Bool {
    if segment.sequence(of: header) < barrier { return false }
    // A live put of the key is newer than its tombstone, since that took away all that was there
    // before, and keeps the older puts dead in its stead. When the put goes, another record of the
    // key, newer still, has taken its place. That the put is on disk before the tombstone goes is what
    // the sync before the switch is for.
    return try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) in
      try !compactor.lookup.hasLivePut(of: key)
    }
  }

  /// Copies a record with its number and time.
  private mutating func append(
    _ header: RecordHeader, at offset: Int, from index: Int, hash: UInt64,
    scanner: inout SegmentScanner
  ) throws(StoreError) -> Move {
    let segment = inputs[index]
    guard let head = try scanner.head(of: header, at: offset) else {
      throw segment.corruption(at: offset, .fileTooShort)
    }
    let sequence = segment.sequence(of: header)
    let second = segment.header.baseTime + Int64(header.writtenDelta)
    let output = try outputWithRoom(
      for: header.byteCount, of: segment, sequence: sequence, writtenAt: second)
    let place = output.offset
    let copy = output.beginRecord(header, head: head, sequence: sequence, writtenAt: second)
    let isSound = try scanner.readValue(header, at: offset) { (bytes) throws(StoreError) in
      try output.append(bytes)
      if bytes.byteCount > CompactionOutput.pieceByteCount / 2 { try breathe() }
    }
    guard isSound else {
      throw segment.corruption(at: offset + header.headByteCount, .badValue)
    }
    try output.endRecord(copy, sequence: sequence)
    return Move(
      hash: hash, oldOffset: UInt32(offset >> 3), newOffset: UInt32(place >> 3),
      newSize: UInt32(copy.byteCount >> 3), input: UInt16(index), output: UInt16(finished.count),
      shrinkage: UInt8(header.byteCount - copy.byteCount))
  }

  /// The segment that a record of so many bytes goes into.
  private mutating func outputWithRoom(
    for byteCount: Int, of input: Segment, sequence: SequenceNumber, writtenAt second: Int64
  ) throws(StoreError) -> CompactionOutput {
    if let output {
      let fits =
        output.isEmpty
        || output.offset + byteCount <= compactor.session.configuration.segmentByteLimit
      let isInReach = output.reaches(sequence, writtenAt: second)
      if fits && isInReach { return output }
      // In a log the numbers and times of neighbours are near each other. Made-up ones could have it write a
      // segment for each record.
      if !isInReach { farCount += 1 }
      if farCount > Self.farLimit + 4 * inputs.count {
        throw input.corruption(at: SegmentHeader.byteCount, .badHeader)
      }
    }
    try finishOutput()
    // As low as all that comes; where that is too far away, in the middle of what can be reached.
    let reach = UInt64(1) << 31
    var base = inputs.map(\.usage.lowestSequence).min() ?? 1
    if sequence - min(base, sequence) > UInt64(UInt32.max) { base = sequence - reach }
    base = min(base, sequence)
    var baseTime = inputs.map(\.header.baseTime).min() ?? second
    if second - baseTime > Int64(UInt32.max) { baseTime = second - Int64(reach) }
    let (header, file) = try compactor.catalog.createOutput(baseSequence: base, baseTime: baseTime)
    ids.append(header.id)
    let output = CompactionOutput(header: header, file: file, total: compactor.lookup.table.total)
    self.output = output
    return output
  }

  /// Ends the segment that is written.
  mutating func finishOutput() throws(StoreError) {
    guard let output else { return }
    self.output = nil
    try breathe()
    try output.finish()
    finished.append(Finished(header: output.header, usage: output.usage))
  }
}
