/// Writes a new store from front to back: sealed segments, and at the very end the manifest. Until
/// then the directory is no store, and until shortly before a file in it says why.
struct SalvageWriter: ~Copyable {
  private static let bufferByteCount = 1 << 20

  private let directory: Directory
  private let lockFile: File
  private let segmentByteLimit: Int
  private let baseTime: Int64
  private let storeIdentifier: [UInt8]
  private var sealed: [Manifest.SealedSegment] = []
  private var names = [FileName.lock, FileName.unfinishedSalvage]
  private var segment: (file: File, header: SegmentHeader)?
  /// Where the next record goes.
  private var offset = 0
  private var lowest: SequenceNumber = 0
  private var highest: SequenceNumber = 0
  /// Records that belong before `offset` and are not written yet.
  private var buffer: [UInt8] = []

  private init(
    directory: Directory, lockFile: File, segmentByteLimit: Int, baseTime: Int64,
    storeIdentifier: [UInt8]
  ) {
    self.directory = directory
    self.lockFile = lockFile
    self.segmentByteLimit = segmentByteLimit
    self.baseTime = baseTime
    self.storeIdentifier = storeIdentifier
  }

  /// Makes the directory ready, which must be empty.
  ///
  /// - Parameter baseTime: the earliest time of a write, in seconds.
  static func begin(
    in directory: Directory, segmentByteLimit: Int, baseTime: Int64
  ) throws(StoreError) -> SalvageWriter {
    let identifier: [UInt8]
    do { identifier = try directory.fileSystem.randomBytes(count: 16) } catch {
      throw error.storeError(path: directory.path)
    }
    // Whoever makes this file first has the directory, unless a store is made in it at the same
    // moment: then that has the lock.
    let lockFile: File
    do { lockFile = try directory.createFile(FileName.lock) } catch {
      if case .system(let failure) = error, failure.errorNumber == SystemError.exists {
        throw .unusableDestination(path: directory.path, reason: "it is not empty")
      }
      throw error
    }
    var isOurs = false
    do throws(StoreError) {
      guard try lockFile.lock(exclusively: true) else { throw .locked(path: directory.path) }
      guard try directory.names() == [FileName.lock] else {
        throw .unusableDestination(path: directory.path, reason: "it is not empty")
      }
      isOurs = true
      let mark = try directory.createFile(FileName.unfinishedSalvage)
      let text = "A salvage of a store into this directory has not finished. Remove it all.\n"
      try Array(text.utf8).withSpan { (bytes) throws(StoreError) in try mark.write(bytes, at: 0) }
    } catch {
      // Without the lock the file may be that of a store by now.
      if isOurs {
        try? directory.unlink(FileName.unfinishedSalvage)
        try? directory.unlink(FileName.lock)
      }
      lockFile.unlock()
      throw error
    }
    return SalvageWriter(
      directory: directory, lockFile: lockFile, segmentByteLimit: segmentByteLimit,
      baseTime: baseTime, storeIdentifier: identifier)
  }

  /// Appends a record that was read elsewhere, with a number above all before it.
  ///
  /// - Parameters:
  ///   - head: the head as it was read.
  ///   - value: hands the value out piece by piece, and returns whether it was sound. Where it was
  ///     not, nothing has been appended.
  mutating func append(
    _ source: RecordHeader, head: [UInt8], sequence: SequenceNumber, written: Int64,
    value: ((RawSpan) throws(StoreError) -> Void) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    var header = source
    // Both speak of the place where the record was.
    header.flags.subtract([.batch, .syncMark])
    if header.metadataByteCount == 0 { header.flags.remove(.metadata) }
    if planted(.salvageExpiryDropped) { header.flags.remove(.expiry) }
    try makeRoom(for: header, sequence: sequence)
    guard let (file, segmentHeader) = segment else { preconditionFailure("room was made") }
    header.sequenceDelta = UInt32(sequence - segmentHeader.baseSequence)
    header.writtenDelta = UInt32(clamping: written - segmentHeader.baseTime)
    let start = offset
    if header.byteCount > Self.bufferByteCount { try flush(to: file) }
    let isBuffered = header.byteCount <= Self.bufferByteCount
    let bufferStart = buffer.count
    // Fields, key and metadata; the value follows.
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
      head.withSpan { head in
        header.encodeFields(into: &record)
        record.copy(head.extracting(keyAndMetadata), to: header.fieldByteCount)
      }
      header.seal(&record, at: start, seed: seed)
    }
    let padding = header.byteCount - done
    if isBuffered {
      buffer.append(contentsOf: repeatElement(0, count: padding))
      offset = start + header.byteCount
      if buffer.count >= Self.bufferByteCount { try flush(to: file) }
    } else {
      try [UInt8](repeating: 0, count: padding).withSpan { (bytes) throws(StoreError) in
        try file.write(bytes, at: start + done)
      }
      try buffer.withSpan { (bytes) throws(StoreError) in try file.write(bytes, at: start) }
      buffer = []
      offset = start + header.byteCount
    }
    if lowest == 0 { lowest = sequence }
    highest = sequence
    return true
  }

  private mutating func flush(to file: File) throws(StoreError) {
    let start = offset - buffer.count
    try buffer.withSpan { (bytes) throws(StoreError) in try file.write(bytes, at: start) }
    buffer.removeAll(keepingCapacity: true)
  }

  /// Goes on in a new segment where the record does not fit the one there is.
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
      salt = try directory.fileSystem.randomBytes(count: 8).withSpan {
        $0.load(UInt64.self, at: 0)
      }
    } catch {
      throw error.storeError(path: directory.path)
    }
    let segmentHeader = SegmentHeader(
      storeIdentifier: storeIdentifier, id: id, salt: salt, baseSequence: sequence,
      baseTime: baseTime)
    names.append(FileName.segment(id))
    let file = try directory.createFile(FileName.segment(id))
    buffer = segmentHeader.encoded()
    offset = buffer.count
    segment = (file, segmentHeader)
    lowest = 0
    highest = 0
  }

  /// Ends the segment that is written to.
  private mutating func seal() throws(StoreError) {
    guard let (file, header) = segment else { return }
    try flush(to: file)
    // A value that turned out to be damaged may have left something behind the last record.
    try file.truncate(to: offset)
    // DURABILITY: before the manifest that lists it as sealed.
    if !planted(.salvageNotSynced) { try file.synchronize() }
    if offset > SegmentHeader.byteCount {
      sealed.append(
        Manifest.SealedSegment(
          id: header.id, salt: header.salt, byteCount: offset, lowestSequence: lowest,
          highestSequence: highest, compactedAt: 0))
    } else {
      try directory.unlink(file.name)
    }
    segment = nil
  }

  /// Makes the directory a store, durably.
  mutating func finish(
    lastSequence: SequenceNumber, lastTime: Timestamp, bootIdentifier: [UInt8]
  ) throws(StoreError) {
    try seal()
    let secret: [UInt8]
    do { secret = try directory.fileSystem.randomBytes(count: 16) } catch {
      throw error.storeError(path: directory.path)
    }
    var manifest = Manifest(
      storeIdentifier: storeIdentifier, hashSecret: secret, bootIdentifier: bootIdentifier)
    manifest.nextID = UInt64(sealed.count) + 1
    manifest.lastSequence = lastSequence
    manifest.lastTime = lastTime
    manifest.sealedSegments = sealed
    // It is no store without a manifest either, and once it is one nothing may fail any more for
    // which it would be removed again, nor may a crash leave a store beside a note that says so.
    try directory.unlink(FileName.unfinishedSalvage)
    // DURABILITY: the names of the segments, and that of the note, before the manifest; and the
    // name of the directory before the call returns.
    if !planted(.salvageDirectoryNotSynced) { try directory.synchronize() }
    try Directory.synchronizeParent(of: directory.path, fileSystem: directory.fileSystem)
    let file = ManifestFile(directory: directory)
    names += [FileName.newManifest, FileName.manifest]
    try file.write(try file.prepare(manifest))
    try file.install()
    // From here on it is a store, durably, and nothing can fail any more.
    file.reserve(manifest)
    lockFile.unlock()
  }

  /// Removes what was written: the directory is left empty, as far as that is possible.
  mutating func discard() {
    segment = nil
    // The manifest goes first, then the segments, then the note, and last the lock file, while its
    // lock is held: who has that file open already finds that it has no name any more.
    for name in names.reversed() { try? directory.unlink(name) }
    try? directory.synchronize()
    lockFile.unlock()
  }
}
