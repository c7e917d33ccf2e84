/// One pass over the log, step by step.
///
/// It reads segments in the order of their ids, up to the id that was highest when it began, so it
/// ends however much is written. A pass of maintenance begins at any segment and ends with the one
/// before it, so short sessions together read every segment. If a compaction moves records to later
/// segments, it has checked them.
struct ScrubPass: Sendable {
  /// Bytes read at a time: enough for the longest head. A step reads one window, and another if a
  /// long head extends beyond the first.
  static let windowByteCount = 256 << 10

  let began: Timestamp
  private let firstID: UInt64
  private let lastID: UInt64
  /// The segment being read, or the next existing one.
  private var id: UInt64
  /// A record or a hole in that segment.
  private var offset = SegmentHeader.byteCount
  /// The unfinished work at that place.
  private var part = Part.none
  private(set) var readByteCount = 0
  private(set) var recordCount = 0
  private(set) var damageCount = 0

  /// The work that a step leaves to the next one.
  private enum Part {
    case none
    /// A partly checked value.
    case value(RecordHeader, CRC32C, position: Int, isUnreadable: Bool)
    /// No record has been found since `offset`.
    case hole(position: Int, isUnreadable: Bool)
  }

  init(began: Timestamp, firstID: UInt64 = 0, lastID: UInt64) {
    self.began = began
    self.firstID = firstID
    self.lastID = lastID
    id = firstID
  }

  /// The findings of a step.
  enum Finding {
    /// A value that a read of its key would find.
    case value(key: [UInt8], record: Int, value: Int, isUnreadable: Bool)
    /// No record begins in these bytes, although one must.
    case hole(Range<Int>, isUnreadable: Bool)
  }

  /// The place of a segment in the order of reading, or `nil` if the pass does not read it.
  func rank(_ id: UInt64) -> UInt64? {
    id > lastID ? nil : id >= firstID ? id - firstID : id + (lastID - firstID + 1)
  }

  /// The bytes of a segment that have been read, or `nil` if the pass does not read the segment.
  func completedByteCount(of id: UInt64, end: Int) -> Int? {
    guard let rank = rank(id), let current = self.rank(self.id) else { return nil }
    return rank < current ? end : rank == current ? min(offset, end) : 0
  }

  /// Continues reading a segment. If another segment was read last, begins with the first record.
  ///
  /// - Parameters:
  ///   - file: the segment's file.
  ///   - end: the end of the segment's records.
  ///   - isLive: whether a read would find the record with this key at this offset.
  mutating func read(
    _ segment: Segment, in file: File, to end: Int,
    isLive: (_ key: RawSpan, _ offset: Int) -> Bool
  ) throws(StoreError) -> [Finding] {
    if segment.id.rawValue != id { begin(segment.id.rawValue) }
    var scanner = SegmentScanner(
      salvaging: file, seed: segment.seed, fileByteCount: end, end: end,
      windowByteCount: Self.windowByteCount)
    var findings: [Finding] = []
    defer { readByteCount += scanner.readByteCount }
    var position = offset
    if case .hole(let next, _) = part { position = next }
    while position < end {
      if case .value = part {
        guard try readValue(&scanner, &findings) else { return findings }
        position = offset
        continue
      }
      guard Self.mayGoOn(scanner, at: position, end: end) else { break }
      let isInHole = if case .hole = part { true } else { false }
      guard
        let header = try isInHole ? scanner.candidate(at: position) : scanner.header(at: position)
      else {
        if !isInHole { offset = position }
        // Nothing follows the end of the file.
        position = scanner.holds(position..<position + 1) ? position + 8 : end
        notePart(of: scanner, hole: position)
        continue
      }
      endHole(at: position, &findings)
      offset = position
      recordCount += 1
      if header.kind == .put,
        try scanner.withKey(of: header, at: position, { isLive($0, position) })
      {
        part = .value(
          header, CRC32C(), position: position + header.headByteCount, isUnreadable: false)
      } else {
        position += header.byteCount
        offset = position
      }
    }
    if position >= end, offset < end {
      endHole(at: position, &findings)
      offset = end
    }
    return findings
  }

  private mutating func begin(_ id: UInt64) {
    self.id = id
    offset = SegmentHeader.byteCount
    part = .none
  }

  /// Skips the rest of a segment.
  mutating func leaveOut(_ segment: Segment) {
    begin(segment.id.rawValue)
    offset = .max
  }

  /// Whether the bytes already read contain the next head, as they usually do, or nothing has been
  /// read yet.
  private static func mayGoOn(
    _ scanner: borrowing SegmentScanner, at position: Int, end: Int
  ) -> Bool {
    scanner.readByteCount == 0
      || scanner.readByteCount <= windowByteCount
        && scanner.holds(position..<min(end, position + 4096))
  }

  /// Checks the bytes of a value that were read.
  ///
  /// - Returns: whether the whole value has been checked.
  private mutating func readValue(
    _ scanner: inout SegmentScanner, _ findings: inout [Finding]
  ) throws(StoreError) -> Bool {
    guard case .value(let header, var checksum, var position, var isUnreadable) = part else {
      return true
    }
    let end = offset + header.valueRange.upperBound
    if position < end {
      if scanner.readByteCount > 0, !scanner.holds(position..<position + 1) { return false }
      let next = try scanner.update(&checksum, from: position, to: end)
      isUnreadable = isUnreadable || scanner.unreadable.contains { $0.overlaps(position..<next) }
      // If the file ends earlier, the checksum cannot match.
      position = next > position ? next : end
    }
    if position < end {
      part = .value(header, checksum, position: position, isUnreadable: isUnreadable)
      return false
    }
    if checksum.value != header.valueChecksum {
      let key = try scanner.withKey(of: header, at: offset) { $0.copied() }
      findings.append(
        .value(
          key: key, record: offset, value: offset + header.headByteCount,
          isUnreadable: isUnreadable))
    }
    part = .none
    offset += header.byteCount
    return true
  }

  private mutating func notePart(of scanner: borrowing SegmentScanner, hole position: Int) {
    var isUnreadable = scanner.unreadable.contains { $0.overlaps(offset..<position) }
    if case .hole(_, true) = part { isUnreadable = true }
    part = .hole(position: position, isUnreadable: isUnreadable)
  }

  private mutating func endHole(at position: Int, _ findings: inout [Finding]) {
    guard case .hole(_, let isUnreadable) = part else { return }
    findings.append(.hole(offset..<position, isUnreadable: isUnreadable))
    part = .none
  }

  mutating func noteDamage() { damageCount += 1 }
}
