/// Heads of records that are about to be asked for, read in the order in which they lie on disk: one
/// by one they would cost a system call each, and a seek each where they are not in memory.
package struct HeadCache: ~Copyable {
  private static let windowByteCount = 256 << 10
  /// As much of each record is read. Of one with a longer head nothing is kept.
  private static let headByteCount = 512
  /// So many bytes between two heads are read rather than left out.
  private static let gapByteCount = 16 << 10

  /// The heads, one after the other.
  private var bytes: [UInt8] = []
  private var ranges: [UInt64: Range<Int>] = [:]
  private var window: [UInt8] = []

  package init() {}

  package var byteCount: Int { bytes.count }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    ranges.removeAll(keepingCapacity: true)
  }

  package mutating func add(_ head: [UInt8], at location: Location) {
    ranges[location.rawValue] = bytes.count..<(bytes.count + head.count)
    bytes.append(contentsOf: head)
  }

  /// The record at a location, as far as its head was read before.
  ///
  /// - Throws: `corrupt` where the bytes are no head of a record.
  package borrowing func record(
    in segment: Segment, at location: Location
  ) throws(StoreError) -> Record? {
    guard let range = ranges[location.rawValue] else { return nil }
    return try Record(
      in: segment, at: segment.offset(of: location), head: Array(bytes[range]))
  }

  /// Reads the heads of the records at so many locations, with no more calls than need be.
  ///
  /// What the medium does not give is left out: whoever asks for it reads it once more.
  package mutating func read(
    _ locations: consuming [Location], of table: SegmentTable
  ) throws(StoreError) {
    locations.sort { $0.rawValue < $1.rawValue }
    var index = 0
    while index < locations.count {
      guard let segment = table.segment(at: locations[index]) else {
        index += 1
        continue
      }
      let start = segment.offset(of: locations[index])
      var last = start
      var next = index + 1
      while next < locations.count, table.segment(at: locations[next]) === segment {
        let offset = segment.offset(of: locations[next])
        if offset - last > Self.headByteCount + Self.gapByteCount
          || offset + Self.headByteCount - start > Self.windowByteCount
        {
          break
        }
        last = offset
        next += 1
      }
      try read(locations[index..<next], in: segment, from: start, to: last + Self.headByteCount)
      index = next
    }
  }

  private mutating func read(
    _ locations: ArraySlice<Location>, in segment: Segment, from start: Int, to end: Int
  ) throws(StoreError) {
    let fileEnd = segment.allocatedByteCount
    let wanted = min(end, fileEnd) - start
    if wanted <= 0 { return }
    // Most opens have nothing to replay.
    if window.isEmpty { window = [UInt8](repeating: 0, count: Self.windowByteCount) }
    let count: Int
    do {
      count = try segment.file.read(
        into: &window, bufferOffset: 0, byteCount: wanted, at: start)
    } catch {
      guard error.isOfMedium else { throw error }
      return
    }
    for location in locations {
      let offset = segment.offset(of: location)
      let place = offset - start
      let header = window.withSpan {
        RecordHeader(
          decoding: $0.extracting(min(place, count)..<min(place + Self.headByteCount, count)),
          limit: fileEnd - offset)
      }
      guard let header, place + header.headByteCount <= count else { continue }
      ranges[location.rawValue] = bytes.count..<(bytes.count + header.headByteCount)
      bytes.append(contentsOf: window[place..<(place + header.headByteCount)])
    }
  }
}
