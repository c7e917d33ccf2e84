/// Reads the heads of records in disk order, many at once. Reading one head costs a system call,
/// and a seek if the head is not in memory.
package struct HeadReader: ~Copyable {
  private static let windowByteCount = 256 << 10
  /// How many bytes of a record are read together with the records before it. A longer head is read
  /// separately.
  private static let headByteCount = 512
  /// Gaps of up to this many bytes between two heads are read rather than skipped.
  private static let gapByteCount = 16 << 10
  /// The number of heads in a group.
  private static let groupCount = 64

  private var window: [UInt8] = []

  package init() {}

  /// Calls `body` with the segment, header and head of each record, or `damaged` with the reason
  /// why there is no sound head.
  ///
  /// - Parameters:
  ///   - place: returns the location with the given number. The locations must be in ascending
  ///     order.
  ///   - segment: returns the segment of the location with the given number, or `nil` to skip the
  ///     location.
  ///   - group: called with each group of numbers, before `body` is called for them.
  ///   - damaged: called for each location without a sound head, with the reason.
  /// - Throws: any error of `damaged`.
  @inline(__always)
  package mutating func read(
    count: Int, place: (Int) -> Location, segment segmentOf: (Int) -> Segment?,
    group: (Range<Int>) -> Void = { _ in },
    _ body: (Int, Segment, RecordHeader, RawSpan) -> Void,
    damaged: (Int, Segment, StoreError) throws(StoreError) -> Void
  ) throws(StoreError) {
    var index = 0
    while index < count {
      guard let segment = segmentOf(index) else {
        index += 1
        continue
      }
      let start = segment.offset(of: place(index))
      let granules = segment.granules
      var last = start
      var next = index + 1
      while next < count {
        let location = place(next)
        // A later segment may have taken a part of this one's place.
        guard granules.contains(location.granule), segmentOf(next) === segment else { break }
        let offset = segment.offset(of: location)
        if offset - last > Self.headByteCount + Self.gapByteCount
          || offset + Self.headByteCount - start > Self.windowByteCount
        {
          break
        }
        last = offset
        next += 1
      }
      let byteCount = try fill(from: start, to: last + Self.headByteCount, of: segment)
      let fileEnd = segment.allocatedByteCount
      var groupEnd = index
      for number in index..<next {
        if number == groupEnd {
          groupEnd = min(next, number + Self.groupCount)
          group(number..<groupEnd)
        }
        let offset = segment.offset(of: place(number))
        let bytes = window.rawSpan.extracting(min(offset - start, byteCount)..<byteCount)
        if let header = RecordHeader(decoding: bytes, limit: fileEnd - offset),
          header.headByteCount <= bytes.byteCount,
          header.hasValidChecksum(bytes, at: offset, seed: segment.seed)
        {
          body(number, segment, header, bytes.extracting(0..<header.headByteCount))
          continue
        }
        do {
          let record = try Record(in: segment, at: offset, part: .head, byCalls: true)
          body(number, segment, record.header, record.head)
        } catch {
          try damaged(number, segment, error)
        }
      }
      index = next
    }
  }

  /// Reads a range of a segment into the window, and returns the number of bytes read. Returns 0 if
  /// the disk cannot read the range; each head is then read separately.
  private mutating func fill(
    from start: Int, to end: Int, of segment: Segment
  ) throws(StoreError) -> Int {
    let wanted = min(end, segment.allocatedByteCount) - start
    if wanted <= 0 { return 0 }
    if window.isEmpty { window = [UInt8](repeating: 0, count: Self.windowByteCount) }
    do {
      return try segment.bytes(isShared: true).read(
        into: &window, bufferOffset: 0, byteCount: wanted, at: start)
    } catch {
      guard error.isOfMedium else { throw error }
      return 0
    }
  }
}
