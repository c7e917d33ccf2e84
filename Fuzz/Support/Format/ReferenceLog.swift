package import CairnStore

/// The rules of sections 7 to 10 of the document for segments, implemented step by step and as
/// simply as possible. The store's recovery must agree with this.
package struct ReferenceLog {
  /// A segment's file whose header was decoded.
  package struct Segment {
    package var header: SegmentHeader
    package var bytes: [UInt8]
    /// How much of the segment was durable, according to the manifest of a store that is not clean.
    package var knownLength = 0

    package init(header: SegmentHeader, bytes: [UInt8]) {
      self.header = header
      self.bytes = bytes
    }

    func sequence(of record: ReferenceRecord) -> UInt64 {
      header.baseSequence + record.sequenceDelta
    }
  }

  /// Steps 1 and 2 of section 10 for one segment.
  struct Extent {
    var records: [ReferenceRecord] = []
    var hole = SegmentHeader.byteCount
    var lastUnit: Int?
    /// Records with wrong values: their places, and where their units begin.
    var unsound: [(offset: Int, unit: Int)] = []
    var hasRolled = false
    var hasLaterRecords = false
    var mark = 0
    /// The highest sequence number in all units before the hole, in this and earlier segments.
    var highest: UInt64 = 0
    var isEmpty: Bool { lastUnit == nil && !hasRolled }
  }

  /// Where each segment ends, or what is corrupt.
  package enum Outcome: Hashable {
    case ends([Int], damaged: [Place])
    case corrupt(Place)
  }

  package struct Place: Hashable {
    package var segment: Int
    package var offset: Int
  }

  let segments: [Segment]
  private(set) var extents: [Extent] = []
  /// The first segment that is shorter than its known length, or ends with a roll before it, and
  /// where.
  private(set) var refusal: Place?
  /// The number of bytes over which checksums of heads were computed, by segment.
  private(set) var checksummed: [Int] = []

  init(_ segments: [Segment]) {
    self.segments = segments
    for segment in segments { scan(segment) }
  }

  private func record(
    in segment: Segment, at offset: Int, checksummed: inout Int
  ) -> ReferenceRecord? {
    ReferenceRecord(
      segment.bytes, at: offset, salt: segment.header.salt, id: segment.header.id.rawValue,
      checksummed: &checksummed)
  }

  /// Whether a record may follow in its batch. `next` is the record that must come next within a
  /// batch.
  private static func follows(
    _ record: ReferenceRecord, next: inout (index: UInt64, count: UInt64, delta: UInt64)?
  ) -> Bool {
    if let expected = next {
      guard record.isInBatch, record.batchIndex == expected.index,
        record.batchCount == expected.count, record.sequenceDelta == expected.delta
      else { return false }
    } else if !record.isInBatch {
      return true
    } else if record.batchIndex != 0 {
      return false
    }
    let index = record.batchIndex + 1
    next =
      index == record.batchCount ? nil : (index, record.batchCount, record.sequenceDelta + 1)
    return true
  }

  private mutating func scan(_ segment: Segment) {
    var checksummed = 0
    var extent = Extent()
    extent.highest = extents.last?.highest ?? 0
    var next: (index: UInt64, count: UInt64, delta: UInt64)?
    if segment.knownLength > SegmentHeader.byteCount { extent.mark = segment.knownLength }
    var unit: [ReferenceRecord] = []
    var offset = extent.hole
    while let record = record(in: segment, at: offset, checksummed: &checksummed),
      Self.follows(record, next: &next)
    {
      extent.mark = max(extent.mark, Int(clamping: record.syncMark))
      offset = record.end
      if record.isRoll {
        extent.hasRolled = true
        extent.highest = max(extent.highest, max(segment.sequence(of: record), 1) - 1)
        extent.hole = offset
        break
      }
      unit.append(record)
      if next != nil { continue }
      extent.unsound += unit.filter { !$0.hasValidValue }.map { ($0.offset, extent.hole) }
      extent.highest = unit.reduce(extent.highest) { max($0, segment.sequence(of: $1)) }
      extent.records += unit
      extent.lastUnit = extent.hole
      extent.hole = offset
      unit = []
    }
    if !extent.hasRolled { search(segment, &extent, &checksummed) }
    if refusal == nil {
      let count = segment.bytes.count
      if segment.knownLength > count {
        refusal = Place(segment: extents.count, offset: count)
      } else if extent.hasRolled, extent.hole < segment.knownLength {
        refusal = Place(segment: extents.count, offset: extent.hole)
      }
    }
    extents.append(extent)
    self.checksummed.append(checksummed)
  }

  private func search(_ segment: Segment, _ extent: inout Extent, _ checksummed: inout Int) {
    var batch: [UInt64]?
    var offset = extent.hole
    while offset < segment.bytes.count {
      guard let record = record(in: segment, at: offset, checksummed: &checksummed) else {
        offset += 8
        continue
      }
      extent.mark = max(extent.mark, Int(clamping: record.syncMark))
      let first = segment.sequence(of: record) &- record.batchIndex
      let own = [first, record.batchCount]
      let isOfHole =
        record.isInBatch && (record.batchIndex > 0 || offset == extent.hole)
        && (extent.highest == 0 || first == extent.highest + 1) && (batch ?? own) == own
      if isOfHole { batch = own } else { extent.hasLaterRecords = true }
      offset = record.end
    }
  }

  /// Steps 3 and 4 of section 10.
  func outcome(sameBoot: Bool) -> Outcome {
    if let refusal { return .corrupt(refusal) }
    let last = extents.lastIndex { $0.mark > 0 }
    let frontier = last.map { ($0, extents[$0].mark) } ?? (0, 0)
    var ends: [Int] = []
    var damaged: [Place] = []
    func cut(at offset: Int) -> Outcome {
      ends.append(offset)
      while ends.count < extents.count { ends.append(SegmentHeader.byteCount) }
      return .ends(ends, damaged: damaged)
    }
    for (index, extent) in extents.enumerated() {
      let isFollowed =
        extent.hasLaterRecords
        || extents[(index + 1)...].contains { !$0.isEmpty || $0.hasLaterRecords }
      for (offset, unit) in extent.unsound {
        let isLast = unit == extent.lastUnit && !extent.hasRolled && !isFollowed
        if (index, offset) < frontier || sameBoot && !isLast {
          damaged.append(Place(segment: index, offset: offset))
        } else {
          return cut(at: unit)
        }
      }
      if extent.hasRolled {
        ends.append(extent.hole)
      } else if (index, extent.hole) < frontier || sameBoot && isFollowed {
        return .corrupt(Place(segment: index, offset: extent.hole))
      } else {
        return cut(at: extent.hole)
      }
    }
    return .ends(ends, damaged: damaged)
  }

  /// Section 9, for segments whose recorded length is the size of their file.
  func cleanOutcome() -> Outcome {
    for (index, extent) in extents.enumerated() where extent.hole != segments[index].bytes.count {
      return .corrupt(Place(segment: index, offset: extent.hole))
    }
    return .ends(extents.map(\.hole), damaged: [])
  }

  /// Section 8: the record that decides for each key, with its sequence number.
  func newest(ends: [Int]) -> [[UInt8]: (record: ReferenceRecord, sequence: UInt64)] {
    var newest: [[UInt8]: (record: ReferenceRecord, sequence: UInt64)] = [:]
    for (index, segment) in segments.enumerated() {
      for record in extents[index].records where record.end <= ends[index] {
        let sequence = segment.sequence(of: record)
        if let known = newest[record.key], known.sequence >= sequence { continue }
        newest[record.key] = (record, sequence)
      }
    }
    return newest
  }
}
