/// The positions where a segment can be cut in two, and what comes before each.
package struct SegmentOutline: Sendable {
  /// A position between two records, but not within a batch.
  package struct Mark: Sendable {
    package var offset = SegmentHeader.byteCount
    package var putCount = 0
    package var tombstoneCount = 0
    package var tombstoneByteCount = 0
    package var lowestSequence = SequenceNumber.max
    package var highestSequence: SequenceNumber = 0
    package var highestTombstone: SequenceNumber = 0
    /// Bytes of records that a compaction must keep, or may have to keep.
    package var neededByteCount = 0
  }

  /// In order. The first is the beginning of the outline; the last is its end.
  package private(set) var marks: [Mark]
  private let distance: Int
  private var next: Mark
  private var batch = BatchProgress()

  /// - Parameters:
  ///   - start: where the outline begins: after the header, or at a mark of another outline.
  ///   - distance: the minimum number of bytes between two marks.
  package init(from start: Mark = Mark(), distance: Int = 16 << 10) {
    marks = [start]
    next = start
    self.distance = distance
  }

  /// The last mark.
  package var end: Mark { marks[marks.count - 1] }

  /// Adds the next record. Returns `false` if it cannot follow the previous ones.
  package mutating func add(
    _ header: RecordHeader, sequence: SequenceNumber, isNeeded: Bool
  ) -> Bool {
    guard batch.accept(header, at: next.offset) else { return false }
    next.offset += header.byteCount
    switch header.kind {
    case .roll: return true
    case .put: next.putCount += 1
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

  /// Call once all records are added.
  package mutating func finish() {
    if end.offset < next.offset { marks.append(next) }
  }

  /// The two marks between which to cut next. The bytes to keep after the second mark fit into
  /// `room`; after the last mark there are none. If both marks are the same, the bytes to keep of
  /// the whole outline fit. `nil` if nothing is left.
  package func stretch(room: Int) -> (start: Mark, end: Mark)? {
    guard marks.count > 1 else { return nil }
    let index = marks.firstIndex { end.neededByteCount - $0.neededByteCount <= room }
    guard let index else { return nil }
    return (marks[max(0, index - 1)], marks[index])
  }

  /// The mark where a cut frees the most blocks, among those whose bytes to keep up to `end` fit
  /// into `room`. Of equal marks, the one that leaves the fewest bytes in the last block: the next
  /// piece ends there and then wastes no block either.
  package func bestCut(before end: Mark, room: Int) -> Mark {
    func blockCount(_ byteCount: Int) -> Int { (byteCount + 4095) / 4096 }
    func gain(_ mark: Mark) -> Int {
      blockCount(end.offset) - blockCount(mark.offset)
        - blockCount(SegmentHeader.byteCount + end.neededByteCount - mark.neededByteCount)
    }
    let candidates = marks.filter { $0.offset < end.offset }
    let fitting = candidates.filter { end.neededByteCount - $0.neededByteCount <= room }
    return fitting.max {
      (gain($0), -(($0.offset - 1) & 4095)) < (gain($1), -(($1.offset - 1) & 4095))
    } ?? candidates.last ?? marks[0]
  }

  /// Drops everything after a mark.
  package mutating func shorten(to mark: Mark) {
    marks.removeAll { $0.offset >= mark.offset }
    marks.append(mark)
  }
}
