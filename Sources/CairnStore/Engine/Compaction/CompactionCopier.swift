/// Copies into new segments the records that a round of compaction keeps.
///
/// System calls read the inputs, and every byte is checked. A damaged record ends the round, and
/// the inputs stay unchanged.
struct CompactionCopier: ~Copyable {
  /// The newest sequence number when the round began.
  let began: SequenceNumber
  /// Tombstones below this number may be dropped.
  let barrier: SequenceNumber
  private let compactor: Compactor
  private let inputs: [Segment]
  /// If the only input is cut in two, the part before the cut stays in place. `nil` means that
  /// nothing stays.
  private let cut: SegmentOutline.Mark?
  private let pace: CompactionPace?

  /// The segment being written.
  private var output: CompactionOutput?
  /// Complete output segments.
  private(set) var finished: [Finished] = []
  private(set) var moves: [Move] = []
  /// The moves of extensions.
  private(set) var extensionMoves: [Move] = []
  /// The extended ends of copied puts' lifetimes, by the number of the move.
  private(set) var ends: [Int: Int64] = [:]
  private(set) var droppedTombstoneCount = 0
  private var recordsSinceBreath = 0
  /// How often a record could not follow the previous one because of its number or time, and how
  /// often this may happen beyond four times per input.
  private var farCount = 0
  private static let farLimit = 64

  /// A segment that is complete and on disk.
  struct Finished {
    let header: SegmentHeader
    let usage: SegmentUsage
  }

  /// The old place of a live record and the place of its copy, as offsets in units of 8 bytes.
  struct Move {
    let hash: UInt64
    let oldOffset: UInt32
    let newOffset: UInt32
    /// In units of 8 bytes.
    let newSize: UInt32
    let input: UInt16
    let output: UInt16
    /// How much shorter the copy is than its source.
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

  /// The ids of all segments that were begun.
  private(set) var ids: [SegmentID] = []

  /// Whether the round ends early because `removeAll` took its segments.
  private(set) var isOvertaken = false

  /// Called between pieces. Ends the round if the store has been closed or emptied, and lets other
  /// threads continue.
  private mutating func breathe() throws(StoreError) {
    try compactor.session.checkWritable()
    if inputs.contains(where: \.isRetired) {
      // Copying retired segments takes space that other writes count on.
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
        if try mustKeepTombstone(header, at: offset, in: segment, scanner: &scanner) {
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
        if mustKeepExtension(at: segment.location(at: offset), hash) {
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

  /// Copies a put, with its extended end of lifetime if it has one.
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

  /// Whether an extension must be kept: it is in force, and its put stays in place. A copied put
  /// already has the extended end. If the extension is not in force, a later extension or another
  /// record of the key replaced it. The replacement is on disk before the extension is dropped,
  /// because the sync before the switch covers it too.
  private func mustKeepExtension(at location: Location, _ hash: UInt64) -> Bool {
    var owner: Segment?
    let put = compactor.lookup.index.location(hash, extendedBy: location) {
      owner = compactor.lookup.table.segment(at: $0)
    }
    guard let put else { return false }
    guard let input = inputs.first(where: { $0 === owner }) else { return true }
    // The part before the cut stays.
    guard let cut else { return false }
    return input.offset(of: put) < cut.offset
  }

  /// Whether the index names this very record. A record that is not live now is never live again.
  private func isLive(_ hash: UInt64, at location: Location, in segment: Segment) -> Bool {
    var isSame = false
    _ = compactor.lookup.index.find(hash, at: location) { _ in
      isSame = compactor.lookup.table.segment(at: location) === segment
    }
    return isSame
  }

  /// Whether a tombstone must be kept: its key has no newer record, and an older put of the key may
  /// be in a segment that stays.
  private func mustKeepTombstone(
    _ header: RecordHeader, at offset: Int, in segment: Segment, scanner: inout SegmentScanner
  ) throws(StoreError) -> Bool {
    if segment.sequence(of: header) < barrier { return false }
    // A live put of the key is newer than its tombstone, because the tombstone removed everything
    // before it. The put now keeps the older puts dead. When the put is dropped, another, still
    // newer record of the key has replaced it. The sync before the switch ensures that the put is
    // on disk before the tombstone is dropped.
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

  /// The segment for a record of this many bytes.
  private mutating func outputWithRoom(
    for byteCount: Int, of input: Segment, sequence: SequenceNumber, writtenAt second: Int64
  ) throws(StoreError) -> CompactionOutput {
    if let output {
      let fits =
        output.isEmpty
        || output.offset + byteCount <= compactor.session.configuration.segmentByteLimit
      let isInReach = output.reaches(sequence, writtenAt: second)
      if fits && isInReach { return output }
      // In a log, neighbouring records have similar numbers and times. Without this limit, forged
      // ones could force a new segment for each record.
      if !isInReach { farCount += 1 }
      if farCount > Self.farLimit + 4 * inputs.count {
        throw input.corruption(at: SegmentHeader.byteCount, .badHeader)
      }
    }
    try finishOutput()
    // Choose a base that is low enough for every record to come. If this record is too far above
    // that base, choose a base that puts it in the middle of the range.
    let reach = UInt64(1) << 31
    // A segment without numbered records has the lowest number 0.
    var base = inputs.lazy.map(\.usage.lowestSequence).filter { $0 > 0 }.min() ?? sequence
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

  /// Ends the segment being written.
  mutating func finishOutput() throws(StoreError) {
    guard let output else { return }
    self.output = nil
    try breathe()
    try output.finish()
    finished.append(Finished(header: output.header, usage: output.usage))
  }
}
