/// The records of a segment that is read before it is opened, so that recovery reads each of them
/// once.
struct CollectedRecords {
  /// Counts the records.
  let usage: SegmentUsage
  private let hash: SipHash
  private let floor: SequenceNumber
  /// Their members of a stretch, located as if the segment had granule 0.
  private(set) var members: [ReplayStretch.Member] = []
  private(set) var keys: [UInt8] = []
  private(set) var count = 0
  private(set) var highestSequence: SequenceNumber = 0

  /// - Parameters:
  ///   - floor: records up to this sequence number are only counted.
  ///   - total: the total usage of all segments.
  init(hash: SipHash, floor: SequenceNumber, total: UsageTotal) {
    usage = SegmentUsage(total: total)
    self.hash = hash
    self.floor = floor
  }

  /// The same for the next segment.
  func next() -> CollectedRecords {
    CollectedRecords(hash: hash, floor: floor, total: usage.total)
  }

  /// Adds the record whose header was just read.
  @inline(__always)
  mutating func add(
    _ header: RecordHeader, base: SequenceNumber, at offset: Int,
    from scanner: inout SegmentScanner
  ) throws(StoreError) {
    let sequence = base + UInt64(header.sequenceDelta)
    usage.add(header, sequence: sequence, end: offset + header.byteCount, isLive: false)
    if header.kind == .roll { return }
    count += 1
    highestSequence = max(highestSequence, sequence)
    if sequence <= floor { return }
    try scanner.withKey(of: header, at: offset) {
      members.append(
        ReplayStretch.Member(
          header, hash: hash.hash($0), sequence: sequence,
          at: Location(granule: 0, offset: offset), keyStart: keys.count))
      keys.append(contentsOf: $0)
    }
  }
}
