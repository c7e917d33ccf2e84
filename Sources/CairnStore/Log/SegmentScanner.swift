/// Reads the records of a segment's file from front to back with pread, so that an I/O error is
/// thrown and does not raise a signal. For recovery and verification.
package struct SegmentScanner: ~Copyable {
  package static let windowByteCount = 1 << 20
  /// After skipping so many bytes, another large value probably follows. From here on, reading it
  /// takes longer than another system call, even if the disk must seek.
  static let skippedByteCount = 64 << 10

  private let bytes: SegmentBytes
  private let seed: CRC32C
  /// Whether to skip unreadable bytes instead of throwing.
  private let passesUnreadable: Bool
  /// Whether the caller needs few of the values, so that the bytes of a large one are read only if
  /// it does.
  private let skipsValues: Bool
  /// Nothing at or beyond this offset is read.
  private let end: Int
  /// How many more bytes `candidate` may checksum.
  package private(set) var candidateBudget: Int
  private var window: [UInt8]
  private var windowOffset = 0
  private var windowByteCount = 0
  private static let unreadableLimit = 1000
  /// Unreadable ranges found so far, up to the limit.
  package private(set) var unreadable: [Range<Int>] = []
  /// The number of bytes read.
  package private(set) var readByteCount = 0

  /// Reads a segment in an open store.
  ///
  /// - Parameters:
  ///   - passesUnreadable: whether unreadable bytes count as zeros, as in a salvage.
  ///   - skipsValues: whether the caller needs few of the values.
  package init(
    _ segment: Segment, end: Int, passesUnreadable: Bool = false, skipsValues: Bool = false
  ) throws(StoreError) {
    self.init(
      try segment.bytes(), header: segment.header, end: end, passesUnreadable: passesUnreadable,
      skipsValues: skipsValues)
  }

  package init(file: File, header: SegmentHeader, end: Int) {
    self.init(.file(file), header: header, end: end)
  }

  private init(
    _ bytes: SegmentBytes, header: SegmentHeader, end: Int, passesUnreadable: Bool = false,
    skipsValues: Bool = false
  ) {
    self.bytes = bytes
    self.skipsValues = skipsValues
    self.end = end
    seed = header.recordSeed
    candidateBudget = 64 * max(end, 1 << 20)
    self.passesUnreadable = passesUnreadable
    window = [UInt8](unfilled: min(Self.windowByteCount, max(end, 0)))
  }

  /// Reads the remains of a damaged file.
  ///
  /// Unreadable bytes count as zeros and are listed in `unreadable`. They are never mistaken for
  /// written data, because no checksum over them would match.
  ///
  /// - Parameters:
  ///   - end: the end of the records, which may be beyond the end of the file.
  ///   - windowByteCount: how much to read at a time; at least the longest head.
  package init(
    salvaging file: File, seed: CRC32C, fileByteCount: Int, end: Int,
    windowByteCount: Int = windowByteCount
  ) {
    bytes = .file(file)
    self.seed = seed
    self.end = end
    candidateBudget = 64 * max(min(end, fileByteCount), 1 << 20)
    passesUnreadable = true
    skipsValues = false
    window = [UInt8](unfilled: max(4096, min(windowByteCount, min(end, fileByteCount))))
  }

  /// Fills the window with the range, up to the end. Returns where the range begins in the window,
  /// and its length.
  @inline(__always)
  private mutating func load(
    at offset: Int, count: Int
  ) throws(StoreError) -> (start: Int, count: Int) {
    let count = max(0, min(count, end - offset))
    if offset < windowOffset || offset + count > windowOffset + windowByteCount {
      try fillWindow(at: offset, count: count)
    }
    return (offset - windowOffset, min(count, windowOffset + windowByteCount - offset))
  }

  /// Returns where the bytes from an offset on begin in the window, and how many it holds, at most
  /// `limit`. If it lacks the first byte, reads more bytes first.
  private mutating func loadHeld(
    at offset: Int, limit: Int
  ) throws(StoreError) -> (start: Int, count: Int) {
    let isHeld = holds(offset..<offset + 1)
    let reach = isHeld ? windowOffset + windowByteCount - offset : window.count
    return try load(at: offset, count: min(limit, reach))
  }

  @inline(never)
  private mutating func fillWindow(at offset: Int, count: Int) throws(StoreError) {
    let skipped = offset - windowOffset - windowByteCount
    let readsLittle = skipsValues && (readByteCount == 0 || skipped >= Self.skippedByteCount)
    let most = readsLittle ? max(count, 4096) : window.count
    let wanted = max(0, min(window.count, most, end - offset))
    windowOffset = offset
    windowByteCount = 0
    do {
      windowByteCount = try bytes.read(
        into: &window, bufferOffset: 0, byteCount: wanted, at: offset)
    } catch {
      guard passesUnreadable, error.isOfMedium else { throw error }
      windowByteCount = try readPages(at: offset, count: wanted)
    }
    readByteCount += windowByteCount
  }

  /// Fills the window page by page, with zeros for pages that cannot be read.
  private mutating func readPages(at offset: Int, count: Int) throws(StoreError) -> Int {
    var done = 0
    while done < count {
      let pageEnd = ((offset + done) | 4095) + 1 - offset
      let wanted = min(count, pageEnd) - done
      do {
        let got = try bytes.read(
          into: &window, bufferOffset: done, byteCount: wanted, at: offset + done)
        done += got
        if got < wanted { break }
      } catch {
        guard error.isOfMedium else { throw error }
        window.withMutableSpan { $0.zero(at: done, count: wanted) }
        noteUnreadable(offset + done..<offset + done + wanted)
        done += wanted
      }
    }
    return done
  }

  private mutating func noteUnreadable(_ range: Range<Int>) {
    if let index = unreadable.firstIndex(where: {
      $0.lowerBound <= range.upperBound && range.lowerBound <= $0.upperBound
    }) {
      let known = unreadable[index]
      unreadable[index] =
        min(known.lowerBound, range.lowerBound)..<max(known.upperBound, range.upperBound)
    } else if unreadable.count < Self.unreadableLimit {
      unreadable.append(range)
    }
  }

  /// Whether some bytes of a range that was read are unreadable.
  package func hasUnreadable(in range: Range<Int>) -> Bool {
    unreadable.count == Self.unreadableLimit || unreadable.contains { $0.overlaps(range) }
  }

  /// The header at an offset where a record may begin.
  ///
  /// Forged values can look like headers with long keys at every offset, and a checksum over each
  /// would take hours. So there is a budget of 64 times the segment's size. Once it is used up,
  /// only records with heads of up to 1 KiB are found.
  package mutating func candidate(at offset: Int) throws(StoreError) -> RecordHeader? {
    try header(at: offset, headByteLimit: candidateBudget > 0 ? .max : 1024)
  }

  /// The header at an offset, or `nil` if the header or its checksum is invalid.
  package mutating func header(at offset: Int) throws(StoreError) -> RecordHeader? {
    try header(at: offset, headByteLimit: .max)
  }

  private mutating func header(
    at offset: Int, headByteLimit: Int
  ) throws(StoreError) -> RecordHeader? {
    let (start, count) = try load(at: offset, count: RecordHeader.maximumFieldByteCount)
    let limit = end - offset
    let decoded = RecordHeader(
      decoding: window.rawSpan.extracting(start..<(start + count)), limit: limit)
    guard let header = decoded, header.headByteCount <= headByteLimit else { return nil }
    candidateBudget -= header.headByteCount
    let (head, headCount) = try load(at: offset, count: header.headByteCount)
    guard headCount == header.headByteCount else { return nil }
    let seed = seed
    let isValid = header.hasValidChecksum(
      window.rawSpan.extracting(head..<(head + headCount)), at: offset, seed: seed)
    return isValid ? header : nil
  }

  /// Calls `body` with each record from `start` to the end. Everything there must be sound: no
  /// batch is incomplete, and a roll record is the last.
  @inline(__always)
  mutating func readAll(
    of segment: Segment, from start: Int = SegmentHeader.byteCount,
    _ body: (inout SegmentScanner, RecordHeader, _ offset: Int) throws(StoreError) -> Void
  ) throws(StoreError) {
    var batch = BatchProgress()
    var offset = start
    while offset < end {
      guard let header = try header(at: offset) else {
        throw segment.corruption(at: offset, .badRecordHeader)
      }
      guard batch.accept(header, at: offset) else {
        throw segment.corruption(at: batch.start ?? offset, .incompleteBatch)
      }
      let next = offset + header.byteCount
      if header.kind == .roll, next != end { throw segment.corruption(at: next, .badLength) }
      try body(&self, header, offset)
      offset = next
    }
    if let start = batch.start { throw segment.corruption(at: start, .incompleteBatch) }
  }

  /// Calls `body` with the key of the record whose header was just read.
  package mutating func withKey<Result>(
    of header: RecordHeader, at offset: Int, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let (start, count) = try load(at: offset, count: header.headByteCount)
    guard count == header.headByteCount else {
      throw .corrupt(
        Corruption(
          directory: bytes.directoryPath, file: bytes.name, offset: offset, cause: .fileTooShort))
    }
    let range = header.keyRange
    return try body(
      window.rawSpan.extracting((start + range.lowerBound)..<(start + range.upperBound)))
  }

  /// The head (fields, key and metadata) of the record whose header was just read, copied.
  package mutating func head(
    of header: RecordHeader, at offset: Int
  ) throws(StoreError) -> [UInt8]? {
    let (start, count) = try load(at: offset, count: header.headByteCount)
    return count == header.headByteCount ? Array(window[start..<(start + count)]) : nil
  }

  /// Calls `body` with the value of a record, piece by piece, and returns whether the value was
  /// complete and matches its checksum.
  package mutating func readValue(
    _ header: RecordHeader, at offset: Int, _ body: (RawSpan) throws(StoreError) -> Void
  ) throws(StoreError) -> Bool {
    var checksum = CRC32C()
    var position = offset + header.valueRange.lowerBound
    let valueEnd = offset + header.valueRange.upperBound
    while position < valueEnd {
      let (start, count) = try load(at: position, count: min(valueEnd - position, window.count))
      if count <= 0 { return false }
      let piece = window.rawSpan.extracting(start..<(start + count))
      checksum.update(piece)
      try body(piece)
      position += count
    }
    return checksum.value == header.valueChecksum
  }

  /// Copies bytes of a value from an offset on into a range of a buffer, and updates a checksum with
  /// them. Reads a large value straight into the buffer, where its checksum finds it in the
  /// processor's cache.
  ///
  /// - Parameter isLarge: whether the window shall not move on with this value.
  /// - Returns: the number of bytes, 0 only if the file ends there.
  mutating func copy(
    from offset: Int, isLarge: Bool, into buffer: inout [UInt8], _ range: Range<Int>,
    _ checksum: inout CRC32C
  ) throws(StoreError) -> Int {
    if !isLarge || passesUnreadable || holds(offset..<offset + 1) {
      let (start, count) = try loadHeld(at: offset, limit: range.count)
      if count <= 0 { return 0 }
      let bytes = window.rawSpan.extracting(start..<(start + count))
      buffer.withMutableSpan(in: range.lowerBound..<range.lowerBound + count) {
        checksum.update(copying: bytes, to: &$0)
      }
      return count
    }
    let count = try bytes.read(
      into: &buffer, bufferOffset: range.lowerBound,
      byteCount: min(range.count, end - offset), at: offset)
    checksum.update(buffer.rawSpan.extracting(range.lowerBound..<range.lowerBound + count))
    return count
  }

  /// Whether the window contains all of a range.
  package func holds(_ range: Range<Int>) -> Bool {
    range.lowerBound >= windowOffset && range.upperBound <= windowOffset + windowByteCount
  }

  /// Continues a checksum over the bytes from `offset` to `limit`, as far as the window contains
  /// them. If the window lacks the first byte, reads more bytes first.
  ///
  /// - Returns: the offset where it stopped, which is `offset` at the end of the file.
  package mutating func update(
    _ checksum: inout CRC32C, from offset: Int, to limit: Int
  ) throws(StoreError) -> Int {
    let (start, count) = try loadHeld(at: offset, limit: limit - offset)
    if count <= 0 { return offset }
    checksum.update(window.rawSpan.extracting(start..<(start + count)))
    return offset + count
  }

  /// Whether the value of a record matches its checksum.
  package mutating func hasValidValue(
    _ header: RecordHeader, at offset: Int
  ) throws(StoreError) -> Bool {
    try readValue(header, at: offset) { _ in }
  }

  /// The offset after the last nonzero byte of the range, or `offset` if every byte is zero.
  package mutating func endOfData(from offset: Int, to limit: Int) throws(StoreError) -> Int {
    var lastEnd = offset
    var position = offset
    while position < limit {
      let (start, count) = try load(
        at: position, count: min(limit - position, window.count))
      if count == 0 { break }
      let read = window.rawSpan.extracting(start..<(start + count))
      var index = count
      // Skip zeros in pieces as long as possible.
      while index >= 4096, read.extracting(index - 4096..<index).isZero { index -= 4096 }
      while index >= 8 && read.load(UInt64.self, at: index - 8) == 0 { index -= 8 }
      while index > 0 && read.load(UInt8.self, at: index - 1) == 0 { index -= 1 }
      if index > 0 { lastEnd = position + index }
      position += count
      // A file may have been extended by far more than anybody can read.
      if lastEnd < position - count { position = max(position, bytes.nextData(from: position)) }
    }
    return lastEnd
  }

  /// The next offset where a record may begin: 8 bytes further on, or beyond a hole of the file.
  package func candidateOffset(after offset: Int) -> Int {
    let next = offset + 8
    if next % Self.windowByteCount != 0 { return next }
    return max(next, bytes.nextData(from: next) & ~7)
  }
}
