/// Where a segment can be cut in two, and what lies before each of those places.
package struct SegmentOutline: Sendable {
  /// A place between two records, and not within a batch.
  package struct Mark: Sendable {
    package var offset = SegmentHeader.byteCount
    package var putCount = 0
    package var tombstoneCount = 0
    package var tombstoneByteCount = 0
    package var extensionCount = 0
    package var lowestSequence = SequenceNumber.max
    package var highestSequence: SequenceNumber = 0
    package var highestTombstone: SequenceNumber = 0
    /// Bytes of records that a compaction has to keep, or may have to.
    package var neededByteCount = 0
  }

  /// In order. The first is where the outline begins, the last at the end.
  package private(set) var marks: [Mark]
  private let distance: Int
  private var next: Mark
  private var batch = BatchProgress()

  /// - Parameters:
  ///   - start: where it begins: behind the header, or at a mark of another outline.
  ///   - distance: records between two marks have so many bytes, or a few more.
  package init(from start: Mark = Mark(), distance: Int = 16 << 10) {
    marks = [start]
    next = start
    self.distance = distance
  }

  /// The end.
  package var end: Mark { marks[marks.count - 1] }

  /// Notes the next record; `false` where it cannot follow those before it.
  package mutating func add(
    _ header: RecordHeader, sequence: SequenceNumber, isNeeded: Bool
  ) -> Bool {
    guard batch.accept(header, at: next.offset) else { return false }
    next.offset += header.byteCount
    switch header.kind {
    case .roll: return true
    case .put: next.putCount += 1
    case .extension: next.extensionCount += 1
    case .tombstone:
      next.tombstoneCount += 1
      next.tombstoneByteCount += header.byteCount
      next.highestTombstone = max(next.highestTombstone, sequence)
    }
    next.lowestSequence = min(next.lowestSequence, sequence)
    next.highestSequence = max(next.highestSequence, sequence)
    if isNeeded { next.neededByteCount += header.byteCount }
    if batch.start == nil, next.offset - end.offset >= distance { marks.append(next) }
    return true
  }

  /// All records were noted.
  package mutating func finish() {
    if end.offset < next.offset { marks.append(next) }
  }

  /// Between which two marks to cut next: at the first of the two, no more has to be kept behind it than
  /// fits, or it is the last but one. `nil` where nothing is left to be cut.
  package func stretch(room: Int) -> (start: Mark, end: Mark)? {
    guard marks.count > 1 else { return nil }
    let index =
      marks.dropLast().firstIndex { end.neededByteCount - $0.neededByteCount <= room }
      ?? marks.count - 2
    return (marks[index], marks[index + 1])
  }

  /// The mark at which to cut so that what is kept behind it up to `end` fills blocks best.
  package func bestCut(before end: Mark) -> Mark {
    func waste(_ mark: Mark) -> Int {
      let byteCount = SegmentHeader.byteCount + end.neededByteCount - mark.neededByteCount
      return -byteCount & 4095
    }
    return marks.filter { $0.offset < end.offset }.min { waste($0) < waste($1) } ?? marks[0]
  }

  /// What lies behind a mark is gone.
  package mutating func shorten(to mark: Mark) {
    marks.removeAll { $0.offset >= mark.offset }
    marks.append(mark)
  }
}
