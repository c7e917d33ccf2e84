/// Copies into new segments the records that a round of compaction keeps.
///
/// System calls read the inputs, and every copied byte is checked. A damaged value is copied as it
/// is, with its checksum, so reads find the damage in the copy too. A damaged head ends the round,
/// and the inputs stay unchanged, unless no entry needs the record.
struct CompactionCopier: ~Copyable {
  /// The newest sequence number when the round began.
  let began: SequenceNumber
  /// Which tombstones may be dropped.
  private let barriers: TombstoneBarriers
  /// The tombstones that earlier rounds kept for damaged segments.
  private let held: HeldTombstones
  private let compactor: Compactor
  private let inputs: [Segment]
  private let pace: CompactionPace?
  /// The size at which an output is full.
  private let segmentByteCount: Int

  /// The segment being written.
  private var output: CompactionOutput?
  /// Complete output segments.
  private(set) var finished: [Finished] = []
  private(set) var moves: [Move] = []
  /// The files of ended segments that are not on disk yet. They are synced at the same time, but not
  /// all: each takes a descriptor.
  private var unsynced: [File] = []
  private static let unsyncedLimit = 8
  private(set) var droppedTombstoneCount = 0
  /// The copied values that do not match their checksums, by the number of the output.
  private var damagedValues: [(key: [UInt8], output: Int, record: Int, offset: Int)] = []
  /// The tombstones that only damaged segments need, by the number of the output.
  private var heldCopies: [(output: Int, key: [UInt8]?, sequence: SequenceNumber, byteCount: Int)] =
    []
  private var recordsSinceBreath = 0
  /// How often a record could not follow the previous one because of its number or time, and how
  /// often this may happen beyond four times per input.
  private var farCount = 0
  private static let farLimit = 64

  /// A segment that is complete.
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
    compactor: Compactor, inputs: [Segment], began: SequenceNumber, barriers: TombstoneBarriers,
    held: HeldTombstones, pace: CompactionPace?
  ) {
    self.compactor = compactor
    self.inputs = inputs
    segmentByteCount = compactor.log.updateSegmentSize()
    self.began = began
    self.barriers = barriers
    self.held = held
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

  /// - Parameter holes: bytes without a record that an entry needs, or `nil` if the segment is not
  ///   known to be damaged.
  mutating func copy(_ index: Int, passing holes: [Range<Int>]? = nil) throws(StoreError) {
    let segment = inputs[index]
    let end = segment.usage.end
    var scanner = try SegmentScanner(
      segment, end: end, passesUnreadable: holes != nil, skipsValues: true)
    var offset = SegmentHeader.byteCount
    while offset < end {
      guard let header = try scanner.header(at: offset) else {
        guard let hole = holes?.first(where: { $0.lowerBound == offset }) else {
          throw segment.corruption(at: offset, .badRecordHeader)
        }
        offset = hole.upperBound
        continue
      }
      switch header.kind {
      case .roll: break
      case .tombstone:
        try copyTombstone(header, at: offset, from: index, scanner: &scanner)
      case .put:
        let hash = try scanner.withKey(of: header, at: offset) { compactor.lookup.hash.hash($0) }
        if compactor.lookup.isLive(hash, at: offset, in: segment) {
          moves.append(try append(header, at: offset, from: index, hash: hash, scanner: &scanner))
        }
      }
      offset += header.byteCount
      recordsSinceBreath += 1
      if recordsSinceBreath >= 4096 {
        recordsSinceBreath = 0
        try breathe()
      }
    }
  }

  /// Who needs a tombstone.
  private enum Need {
    /// A segment that was read may have an older put of the key.
    case sound
    /// Only damaged segments may. The key is `nil` if a newer tombstone of it changes nothing.
    case damaged(key: [UInt8]?)
  }

  /// Copies a tombstone if it must be kept.
  private mutating func copyTombstone(
    _ header: RecordHeader, at offset: Int, from index: Int, scanner: inout SegmentScanner
  ) throws(StoreError) {
    let sequence = inputs[index].sequence(of: header)
    guard let need = try need(of: header, sequence, at: offset, scanner: &scanner) else {
      droppedTombstoneCount += 1
      return
    }
    let move = try append(header, at: offset, from: index, hash: 0, scanner: &scanner)
    if case .damaged(let key) = need {
      heldCopies.append((Int(move.output), key, sequence, move.newByteCount))
    }
  }

  /// `nil` if the key has a newer record, or if no segment that stays may have an older put of it.
  private func need(
    of header: RecordHeader, _ sequence: SequenceNumber, at offset: Int,
    scanner: inout SegmentScanner
  ) throws(StoreError) -> Need? {
    let damaged = barriers.damaged.filter { $0.barrier <= sequence }.map(\.damage)
    if damaged.contains(where: { $0.keepsAll(sequence) }) { return .damaged(key: nil) }
    let isSound = sequence < barriers.sound
    if isSound, damaged.isEmpty { return nil }
    let (lookup, held) = (compactor.lookup, held)
    return try scanner.withKey(of: header, at: offset) { (key) throws(StoreError) -> Need? in
      if isSound {
        let hash = lookup.hash.hash(key)
        guard damaged.contains(where: { $0.keepsNewest(hash) }),
          !held.hasNewer(than: sequence, of: key.copied())
        else { return nil }
      }
      // A live put of the key is newer than its tombstone, because the tombstone removed everything
      // before it. The put now keeps the older puts dead. When the put is dropped, another, still
      // newer record of the key has replaced it. The sync before the switch ensures that the put is
      // on disk before the tombstone is dropped.
      if try lookup.hasLivePut(of: key) { return nil }
      return isSound ? .damaged(key: key.copied()) : .sound
    }
  }

  /// Notes the copied tombstones that only damaged segments need.
  func noteHeld(in held: inout HeldTombstones) {
    for copy in heldCopies {
      held.add(
        copy.key, copy.sequence, byteCount: copy.byteCount, in: finished[copy.output].header.id)
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
    if try !copyValue(of: header, at: offset, in: segment, to: output, scanner: &scanner) {
      damagedValues.append(
        (Array(head[header.keyRange]), finished.count, place, place + copy.headByteCount))
    }
    try output.endRecord(copy, sequence: sequence)
    return Move(
      hash: hash, oldOffset: UInt32(offset >> 3), newOffset: UInt32(place >> 3),
      newSize: UInt32(copy.byteCount >> 3), input: UInt16(index), output: UInt16(finished.count),
      shrinkage: UInt8(header.byteCount - copy.byteCount))
  }

  /// Copies a value. A damaged one keeps its checksum, but bytes that the disk cannot read now may
  /// be sound later.
  ///
  /// - Returns: whether the value is sound.
  private mutating func copyValue(
    of header: RecordHeader, at offset: Int, in segment: Segment, to output: CompactionOutput,
    scanner: inout SegmentScanner
  ) throws(StoreError) -> Bool {
    let start = offset + header.headByteCount
    let end = start + header.valueByteCount
    var checksum = CRC32C()
    var position = start
    while position < end {
      let count = try output.appendValue(byteCount: end - position) {
        (buffer, range) throws(StoreError) in
        try scanner.copy(
          from: position, isLarge: header.valueByteCount >= SegmentScanner.skippedByteCount,
          into: &buffer, range, &checksum)
      }
      guard count > 0 else { throw segment.corruption(at: start, .fileTooShort) }
      position += count
      if count >= CompactionOutput.pieceByteCount / 2 { try breathe() }
    }
    if checksum.value == header.valueChecksum { return true }
    if scanner.hasUnreadable(in: start..<end) {
      throw segment.corruption(at: start, .unreadable)
    }
    return false
  }

  /// Reports the damaged values that are still live, in the segments that have taken the inputs'
  /// places.
  func tellOfDamage(in outputs: [Segment]) {
    for value in damagedValues {
      let (segment, hash) = (outputs[value.output], compactor.lookup.hash)
      guard
        compactor.lookup.isLive(hash.hash(value.key.rawSpan), at: value.record, in: segment)
      else { continue }
      compactor.session.tell(
        Damage(
          place: Corruption(file: segment.name, offset: value.offset, cause: .badValue),
          keys: [value.key], keyCount: 1))
    }
  }

  /// The segment for a record of this many bytes.
  private mutating func outputWithRoom(
    for byteCount: Int, of input: Segment, sequence: SequenceNumber, writtenAt second: Int64
  ) throws(StoreError) -> CompactionOutput {
    if let output {
      let fits =
        output.isEmpty
        || output.offset + byteCount <= segmentByteCount
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
    let (header, file) = try createOutput(base, baseTime)
    ids.append(header.id)
    let output = CompactionOutput(header: header, file: file, total: compactor.lookup.table.total)
    self.output = output
    return output
  }

  private mutating func createOutput(
    _ base: SequenceNumber, _ baseTime: Int64
  ) throws(StoreError) -> (SegmentHeader, File) {
    do throws(StoreError) {
      return try compactor.catalog.createOutput(baseSequence: base, baseTime: baseTime)
    } catch {
      // The process may lack a descriptor.
      if unsynced.isEmpty { throw error }
      try synchronize()
      return try compactor.catalog.createOutput(baseSequence: base, baseTime: baseTime)
    }
  }

  /// Removes the segments.
  mutating func abandon() {
    // An open file would keep its blocks.
    unsynced = []
    output = nil
    compactor.catalog.abandon(ids)
  }

  /// Makes the ended segments durable.
  mutating func synchronize() throws(StoreError) {
    try compactor.log.threads.forEach(unsynced) { (file) throws(StoreError) in
      // DURABILITY: the copies are on disk before the manifest lists them and drops the segments
      // that they were copied from.
      try file.synchronize()
    }
    unsynced = []
  }

  /// Ends the segment being written.
  mutating func finishOutput() throws(StoreError) {
    guard let output else { return }
    self.output = nil
    try breathe()
    try output.flush()
    finished.append(Finished(header: output.header, usage: output.usage))
    unsynced.append(output.file)
    if unsynced.count == Self.unsyncedLimit { try synchronize() }
  }
}
