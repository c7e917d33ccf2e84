/// Reads the records of a segment's file from front to back with pread, where an I/O error is an
/// error and not a signal. For recovery and verification.
package struct SegmentScanner: ~Copyable {
  /// The most bytes that are held at once.
  private static let windowByteCount = 1 << 20

  private let file: File
  private let seed: CRC32C
  /// Nothing at or beyond this offset is looked at.
  private let end: Int
  /// How many more bytes `candidate` may run checksums over.
  private var candidateBudget: Int
  private var window: [UInt8]
  private var windowOffset = 0
  private var windowByteCount = 0

  package init(file: File, header: SegmentHeader, end: Int) {
    self.file = file
    self.end = end
    seed = header.recordSeed
    candidateBudget = 64 * max(end, 1 << 20)
    window = [UInt8](repeating: 0, count: min(Self.windowByteCount, max(end, 0)))
  }

  /// Makes the window hold the range, as far as it lies before the end, and returns where the
  /// range begins in the window and how much of it there is.
  private mutating func load(
    at offset: Int, count: Int
  ) throws(StoreError) -> (start: Int, count: Int) {
    let count = max(0, min(count, end - offset))
    if offset < windowOffset || offset + count > windowOffset + windowByteCount {
      let wanted = min(Self.windowByteCount, end - offset)
      windowByteCount = try file.read(
        into: &window, bufferOffset: 0, byteCount: max(0, wanted), at: offset)
      windowOffset = offset
    }
    return (offset - windowOffset, min(count, windowOffset + windowByteCount - offset))
  }

  /// The header at an offset where a record may or may not begin.
  ///
  /// Bytes of values can be made to look like headers with long keys at every offset, and a
  /// checksum over each would take hours. So there is a budget, of 64 times the segment; once it
  /// is used up, only records with heads of up to 1 KiB are found.
  package mutating func candidate(at offset: Int) throws(StoreError) -> RecordHeader? {
    try header(at: offset, headByteLimit: candidateBudget > 0 ? .max : 1024)
  }

  /// The header at an offset if it is valid, checksum included.
  package mutating func header(at offset: Int) throws(StoreError) -> RecordHeader? {
    try header(at: offset, headByteLimit: .max)
  }

  private mutating func header(
    at offset: Int, headByteLimit: Int
  ) throws(StoreError) -> RecordHeader? {
    let (start, count) = try load(at: offset, count: RecordHeader.maximumFieldByteCount)
    let limit = end - offset
    let decoded = window.withSpan {
      RecordHeader(decoding: $0.extracting(start..<(start + count)), limit: limit)
    }
    guard let header = decoded, header.headByteCount <= headByteLimit else { return nil }
    candidateBudget -= header.headByteCount
    let (head, headCount) = try load(at: offset, count: header.headByteCount)
    guard headCount == header.headByteCount else { return nil }
    let seed = seed
    let isValid = window.withSpan {
      header.hasValidChecksum($0.extracting(head..<(head + headCount)), at: offset, seed: seed)
    }
    return isValid ? header : nil
  }

  /// Calls `body` with the key of the record whose header was just read.
  package mutating func withKey<Result>(
    of header: RecordHeader, at offset: Int, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let (start, count) = try load(at: offset, count: header.headByteCount)
    guard count == header.headByteCount else {
      throw .corrupt(Corruption(file: file.name, offset: offset, cause: .fileTooShort))
    }
    let range = header.keyRange
    return try window.withSpan { (window) throws(StoreError) in
      try body(window.extracting((start + range.lowerBound)..<(start + range.upperBound)))
    }
  }

  /// Whether the value of a record matches its checksum.
  package mutating func hasValidValue(
    _ header: RecordHeader, at offset: Int
  ) throws(StoreError) -> Bool {
    var checksum = CRC32C()
    var position = offset + header.valueRange.lowerBound
    let valueEnd = offset + header.valueRange.upperBound
    while position < valueEnd {
      let (start, count) = try load(
        at: position, count: min(valueEnd - position, Self.windowByteCount))
      if count == 0 { return false }
      window.withSpan { checksum.update($0.extracting(start..<(start + count))) }
      position += count
    }
    return checksum.value == header.valueChecksum
  }

  /// Whether every byte of the range is zero; where not, the offset behind the last that is not.
  package mutating func endOfData(from offset: Int, to limit: Int) throws(StoreError) -> Int {
    var lastEnd = offset
    var position = offset
    while position < limit {
      let (start, count) = try load(
        at: position, count: min(limit - position, Self.windowByteCount))
      if count == 0 { break }
      window.withSpan { window in
        var index = count
        // By words while there are any.
        while index >= 8 && window.load(UInt64.self, at: start + index - 8) == 0 { index -= 8 }
        while index > 0 && window.load(UInt8.self, at: start + index - 1) == 0 { index -= 1 }
        if index > 0 { lastEnd = position + index }
      }
      position += count
    }
    return lastEnd
  }
}
