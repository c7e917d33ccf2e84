import CairnStore

/// Writes the segments of a new store from front to back.
struct SalvageWriter: ~Copyable {
  private static let bufferByteCount = 1 << 20

  private var copy: StoreCopy
  private let segmentByteLimit: Int
  private let baseTime: Int64
  private let storeIdentifier: [UInt8]
  private var sealed: [Manifest.SealedSegment] = []
  private var segment: (file: File, header: SegmentHeader)?
  /// The offset of the next record.
  private var offset = 0
  private var lowest: SequenceNumber = 0
  private var highest: SequenceNumber = 0
  /// Records before `offset` that are not written yet.
  private var buffer: [UInt8] = []

  /// - Parameter baseTime: the earliest time of a write, in seconds.
  init(
    _ copy: consuming StoreCopy, segmentByteLimit: Int, baseTime: Int64, storeIdentifier: [UInt8]
  ) {
    self.copy = copy
    self.segmentByteLimit = segmentByteLimit
    self.baseTime = baseTime
    self.storeIdentifier = storeIdentifier
  }

  /// Appends a record that was read elsewhere, with a sequence number above all earlier ones.
  ///
  /// - Parameters:
  ///   - head: the head as it was read.
  ///   - value: delivers the value piece by piece, and returns whether it was sound. If it was not,
  ///     nothing is appended.
  mutating func append(
    _ source: RecordHeader, head: [UInt8], sequence: SequenceNumber, written: Int64,
    value: ((RawSpan) throws(StoreError) -> Void) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    var header = source
    // Both flags refer to the record's old place in the log.
    header.flags.subtract([.batch, .syncMark])
    if header.metadataByteCount == 0 { header.flags.remove(.metadata) }
    try makeRoom(for: header, sequence: sequence)
    guard let (file, segmentHeader) = segment else { preconditionFailure("room was made") }
    header.sequenceDelta = UInt32(sequence - segmentHeader.baseSequence)
    header.writtenDelta = UInt32(clamping: written - segmentHeader.baseTime)
    let start = offset
    if header.byteCount > Self.bufferByteCount { try flush(to: file) }
    let isBuffered = header.byteCount <= Self.bufferByteCount
    let bufferStart = buffer.count
    // Reserve room for the fields, the key and the metadata; the value follows.
    buffer.append(contentsOf: repeatElement(0, count: header.headByteCount))
    var done = header.headByteCount
    let isSound = try value { (piece) throws(StoreError) in
      if isBuffered {
        buffer.append(contentsOf: piece.copied())
      } else {
        try file.write(piece, at: start + done)
      }
      done += piece.byteCount
    }
    guard isSound, done == header.headByteCount + header.valueByteCount else {
      buffer.removeLast(buffer.count - bufferStart)
      return false
    }
    let keyAndMetadata = source.keyRange.lowerBound..<source.headByteCount
    let seed = segmentHeader.recordSeed
    buffer.withMutableSpan(in: bufferStart..<(bufferStart + header.headByteCount)) { record in
      header.encodeFields(into: &record)
      record.copy(head.rawSpan.extracting(keyAndMetadata), to: header.fieldByteCount)
      header.seal(&record, at: start, seed: seed)
    }
    let padding = header.byteCount - done
    if isBuffered {
      buffer.append(contentsOf: repeatElement(0, count: padding))
      offset = start + header.byteCount
      if buffer.count >= Self.bufferByteCount { try flush(to: file) }
    } else {
      try file.write([UInt8](repeating: 0, count: padding).rawSpan, at: start + done)
      try file.write(buffer.rawSpan, at: start)
      buffer = []
      offset = start + header.byteCount
    }
    if lowest == 0 { lowest = sequence }
    highest = sequence
    return true
  }

  private mutating func flush(to file: File) throws(StoreError) {
    let start = offset - buffer.count
    try file.write(buffer.rawSpan, at: start)
    buffer.removeAll(keepingCapacity: true)
  }

  /// Continues in a new segment if the record does not fit into the current one.
  private mutating func makeRoom(
    for header: RecordHeader, sequence: SequenceNumber
  ) throws(StoreError) {
    if let (_, segmentHeader) = segment {
      let fits = offset + header.byteCount <= segmentByteLimit || offset == SegmentHeader.byteCount
      if fits && sequence - segmentHeader.baseSequence < 1 << 31 { return }
      try seal()
    }
    let id = SegmentID(rawValue: UInt64(sealed.count) + 1)
    let salt: UInt64
    do {
      let random = try copy.directory.fileSystem.randomBytes(count: 8)
      salt = random.rawSpan.load(UInt64.self, at: 0)
    } catch {
      throw error.storeError(path: copy.directory.path)
    }
    let segmentHeader = SegmentHeader(
      storeIdentifier: storeIdentifier, id: id, salt: salt, baseSequence: sequence,
      baseTime: baseTime)
    let file = try copy.createFile(FileName.segment(id))
    buffer = segmentHeader.encoded()
    offset = buffer.count
    segment = (file, segmentHeader)
    lowest = 0
    highest = 0
  }

  /// Completes the segment that is being written.
  private mutating func seal() throws(StoreError) {
    guard let (file, header) = segment else { return }
    try flush(to: file)
    // A value that turned out to be damaged may have left bytes after the last record.
    try file.truncate(to: offset)
    // DURABILITY: the segment is on disk before the manifest that lists it as sealed.
    try file.synchronize()
    if offset > SegmentHeader.byteCount {
      sealed.append(
        Manifest.SealedSegment(
          id: header.id, salt: header.salt, byteCount: offset, lowestSequence: lowest,
          highestSequence: highest, compactedAt: 0))
    } else {
      try copy.directory.unlink(file.name)
    }
    segment = nil
  }

  /// Completes the last segment, and makes the directory a store, durably.
  mutating func finish(
    lastSequence: SequenceNumber, lastTime: Timestamp, bootIdentifier: [UInt8]
  ) throws(StoreError) {
    try seal()
    let secret: [UInt8]
    do { secret = try copy.directory.fileSystem.randomBytes(count: 16) } catch {
      throw error.storeError(path: copy.directory.path)
    }
    var manifest = Manifest(
      storeIdentifier: storeIdentifier, hashSecret: secret, bootIdentifier: bootIdentifier)
    manifest.nextID = UInt64(sealed.count) + 1
    manifest.lastSequence = lastSequence
    manifest.lastTime = lastTime
    manifest.sealedSegments = sealed
    try copy.finish(manifest)
  }

  /// Removes what was written.
  mutating func discard() {
    segment = nil
    copy.discard()
  }
}
