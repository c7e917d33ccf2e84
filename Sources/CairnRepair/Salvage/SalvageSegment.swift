import CairnStore

/// One segment of a damaged store, as far as it can be read.
///
/// The records' checksums need the salt and the id. These come from the manifest if there is one,
/// so that a damaged header does not invalidate the records. The segment's entry in the manifest
/// then bounds the base sequence.
final class SalvageSegment {
  let name: String
  let seed: CRC32C
  private let directory: Directory
  let fileByteCount: Int
  /// The end of the records according to the manifest, or `nil` if the manifest has none.
  let recordedEnd: Int?
  /// How many bytes were durable when the session began, according to the manifest, or 0.
  let durableByteCount: Int
  /// The base sequence: one number, or the range that contains it.
  var base: ClosedRange<Int64>
  /// The base time, in seconds, or `nil` if it is lost.
  var baseTime: Int64?
  /// The header, if it is sound.
  let header: SegmentHeader?
  /// Whether the base is certainly the number of the original header.
  var hasProvenBase: Bool
  /// Records from this offset on are ignored.
  var cut = Int.max
  /// From this offset on, it is unknown whether the records were ever applied.
  var unprovenStart = Int.max
  /// Everything before this offset was durable, according to records; 0 if unknown.
  var durableEnd = 0
  /// Whether the log continued in another segment, so that this one must end with a roll record.
  var mustRoll = false
  private var kept: KeptScanner?

  private final class KeptScanner {
    var scanner: SegmentScanner
    init(_ scanner: consuming SegmentScanner) { self.scanner = scanner }
  }

  init(
    name: String, id: SegmentID, salt: UInt64, directory: Directory, fileByteCount: Int,
    header: SegmentHeader?, recordedEnd: Int?, durableByteCount: Int
  ) {
    self.name = name
    seed = SegmentHeader.recordSeed(salt: salt, id: id)
    self.directory = directory
    self.fileByteCount = fileByteCount
    self.header = header
    self.recordedEnd = recordedEnd
    self.durableByteCount = durableByteCount
    if let header {
      base = Int64(header.baseSequence)...Int64(header.baseSequence)
    } else {
      base = 1...Int64(FormatVersion.highestSequence)
    }
    baseTime = header?.baseTime
    hasProvenBase = header != nil
  }

  /// The end of the records. It may be beyond the end of the file, so that a truncated record is
  /// recognised.
  var end: Int { recordedEnd ?? FormatVersion.highestOffset }
  /// The end of the records' bytes in the file.
  var dataEnd: Int { min(end, fileByteCount) }

  /// Opens the file. Each pass opens it again, because there may be more segments than a process
  /// may have open files.
  func open() throws(StoreError) -> File {
    guard let file = try directory.openFile(name, mode: .readOnly) else {
      throw .corrupt(Corruption(file: name, offset: 0, cause: .missingFile))
    }
    return file
  }

  func makeScanner() throws(StoreError) -> SegmentScanner {
    SegmentScanner(
      salvaging: try open(), seed: seed, fileByteCount: fileByteCount, end: end)
  }

  /// Runs `body` with a scanner, which is kept for the next call.
  func withScanner<Value>(
    _ body: (inout SegmentScanner) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    if let kept { return try body(&kept.scanner) }
    let made = KeptScanner(try makeScanner())
    kept = made
    return try body(&made.scanner)
  }

  /// Frees the scanner's memory and closes its file.
  func rest() { kept = nil }

  /// The range that contains the record's sequence number.
  func sequence(of header: RecordHeader) -> ClosedRange<Int64> {
    base.lowerBound + Int64(header.sequenceDelta)...base.upperBound + Int64(header.sequenceDelta)
  }

  /// When a record was written, in seconds, or `nil` if the time is lost.
  func written(_ header: RecordHeader) -> Int64? {
    baseTime.map { $0 + Int64(header.writtenDelta) }
  }
}

/// Segments that are read in any order, with only a few of them open at a time.
final class SalvagePool {
  private let segments: [SalvageSegment]
  private var inUse: [Int] = []

  init(_ segments: [SalvageSegment]) { self.segments = segments }

  subscript(position: Int) -> SalvageSegment {
    if !inUse.contains(position) {
      if inUse.count == 8 { segments[inUse.removeFirst()].rest() }
      inUse.append(position)
    }
    return segments[position]
  }
}

/// Visits all valid records of a segment, skipping damage.
struct SalvageWalk: ~Copyable {
  enum Step {
    case record(RecordHeader, at: Int)
    /// Bytes in which no record was found.
    case hole(Range<Int>)
    case end
  }

  private var scanner: SegmentScanner
  private let end: Int
  private let dataEnd: Int
  private let isEndRecorded: Bool
  private var offset: Int
  /// The end of the last valid record.
  private(set) var endOfRecords: Int
  /// The end of the last non-zero byte, found when it is first needed.
  private var contentEnd: Int?
  private(set) var hasRolled = false

  init(_ segment: SalvageSegment, from offset: Int = SegmentHeader.byteCount) throws(StoreError) {
    self.offset = offset
    endOfRecords = offset
    scanner = try segment.makeScanner()
    end = segment.end
    dataEnd = segment.dataEnd
    isEndRecorded = segment.recordedEnd != nil
  }

  /// The unreadable ranges.
  var unreadable: [Range<Int>] { scanner.unreadable }

  /// The next record, or the next stretch without records.
  ///
  /// - Complexity: O(bytes) for all calls together, whatever the bytes are: the scanner's search
  ///   for candidates has a budget.
  mutating func next() throws(StoreError) -> Step {
    if offset < dataEnd, !hasRolled, let record = try scanner.header(at: offset) {
      let start = offset
      offset += record.byteCount
      endOfRecords = offset
      hasRolled = record.kind == .roll
      return .record(record, at: start)
    }
    let start = offset
    if isEndRecorded {
      guard offset < end else { return .end }
      // Nothing follows a roll record. Bytes that the file lacks are lost too.
      try search(to: hasRolled ? offset : dataEnd)
      if offset >= dataEnd || hasRolled { offset = end }
      return .hole(start..<offset)
    }
    guard offset < dataEnd, !hasRolled else { return .end }
    // Preallocated zeros are no loss.
    let content: Int
    if let contentEnd {
      content = contentEnd
    } else {
      content = try scanner.endOfData(from: offset, to: dataEnd)
      contentEnd = content
    }
    guard offset < content else {
      offset = dataEnd
      return .end
    }
    try search(to: content)
    if offset >= content { offset = dataEnd }
    return .hole(start..<min(offset, content))
  }

  /// Advances to the next offset where a record begins.
  private mutating func search(to limit: Int) throws(StoreError) {
    while offset < limit {
      offset = scanner.candidateOffset(after: offset)
      if offset < limit, try scanner.candidate(at: offset) != nil { return }
    }
  }

  mutating func hasValidValue(_ record: RecordHeader, at offset: Int) throws(StoreError) -> Bool {
    try scanner.hasValidValue(record, at: offset)
  }

  mutating func withKey<Result>(
    of record: RecordHeader, at offset: Int, _ body: (RawSpan) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try scanner.withKey(of: record, at: offset, body)
  }
}

/// Follows the units of a log that may have holes: single records and batches.
struct SalvageUnits {
  struct Unit {
    var start: Int
    var end: Int
    /// The sequence number of the last record, relative to the base, even if that record is
    /// missing.
    var lastDelta: Int64
    var isBatch: Bool
    var isComplete: Bool
    /// The offset of the last record, if that record was found.
    var lastRecord: Int?
  }

  private(set) var last: Unit?
  private var batch: (first: Int64, count: UInt32)?
  private var memberCount: UInt32 = 0

  /// Adds a record and returns whether it begins a unit.
  mutating func add(_ record: RecordHeader, at offset: Int) -> Bool {
    let delta = Int64(record.sequenceDelta)
    guard record.flags.contains(.batch) else {
      batch = nil
      last = Unit(
        start: offset, end: offset + record.byteCount, lastDelta: delta, isBatch: false,
        isComplete: true, lastRecord: offset)
      return true
    }
    let first = delta - Int64(record.batchIndex)
    let isNew = batch.map { $0 != (first: first, count: record.batchCount) } ?? true
    if isNew {
      batch = (first, record.batchCount)
      memberCount = 0
    }
    memberCount &+= 1
    last = Unit(
      start: isNew ? offset : last?.start ?? offset, end: offset + record.byteCount,
      lastDelta: first + Int64(record.batchCount) - 1, isBatch: true,
      isComplete: memberCount == record.batchCount,
      lastRecord: record.batchIndex == record.batchCount - 1 ? offset : nil)
    return isNew
  }
}
