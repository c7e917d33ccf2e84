/// How far a view of a store has read the log.
struct FollowedProgress {
  /// A part of the log to read next, in order.
  struct Part {
    let id: SegmentID
    let salt: UInt64
    /// The end of its records, or `nil` for the end of its roll record.
    let end: Int?
    let compactedAt: SequenceNumber
  }

  var manifest: Manifest
  /// The segments that have been read, and how far.
  private(set) var segments: [SegmentID: Segment]
  private(set) var ends: [SegmentID: Int]
  /// How long the files of segments were when last looked at. A writer may shorten them at its
  /// close, and then installs another manifest.
  private(set) var fileByteCounts: [SegmentID: Int] = [:]
  /// The segments that end with a roll record or are sealed.
  private var complete: Set<SegmentID>
  /// The number of the last record, including records that a compaction has dropped.
  private(set) var lastSequence: SequenceNumber
  /// The maximum size of a segment.
  let capacity: Int

  init(_ parts: OpenedStore) {
    manifest = parts.manifest
    segments = Dictionary(parts.segments.map { ($0.id, $0) }) { first, _ in first }
    ends = parts.ends.filter { [segments] in segments[$0.key] != nil }
    complete = Set(parts.manifest.sealedSegments.map(\.id))
    // All segments before the active one were rolled.
    if !parts.manifest.isClean, let position = parts.followed {
      let open = parts.manifest.openSegments.map(\.id)
      complete.formUnion(open.prefix { !position.lies(in: $0) })
      complete.formIntersection(segments.keys)
    }
    lastSequence = parts.nextSequence - 1
    capacity = parts.followedCapacity
  }

  mutating func note(
    _ segment: Segment, end: Int, fileByteCount: Int, isComplete: Bool, last: SequenceNumber
  ) {
    segments[segment.id] = segment
    ends[segment.id] = end
    fileByteCounts[segment.id] = fileByteCount
    if isComplete { complete.insert(segment.id) }
    lastSequence = max(lastSequence, last)
  }

  /// Call before adding parts of another manifest.
  mutating func forgetLengths() { fileByteCounts = [:] }

  /// The parts that a manifest and a position add to the known log. `nil` if they remove parts, or
  /// if the order of the log is unclear.
  func tail(in next: Manifest, _ position: LogPosition) -> [Part]? {
    guard next.storeIdentifier == manifest.storeIdentifier,
      next.hashSecret == manifest.hashSecret, next.floorSequence == manifest.floorSequence
    else { return nil }
    var sealed: [Manifest.SealedSegment] = []
    var listed: Set<SegmentID> = []
    // All sealed segments of the known manifest were read to their ends before it became the known
    // one. So what a follower does after a write does not depend on their number.
    let isKnown = next.generation == manifest.generation
    for entry in isKnown ? [] : next.sealedSegments {
      listed.insert(entry.id)
      if let end = ends[entry.id], let segment = segments[entry.id] {
        guard segment.header.salt == entry.salt, end <= entry.byteCount else { return nil }
        if end < entry.byteCount { sealed.append(entry) }
      } else {
        // Give up if a compaction wrote the segment or its order is unknown.
        let isEmpty = entry.highestSequence == 0
        guard entry.compactedAt == 0, isEmpty || entry.lowestSequence > lastSequence else {
          return nil
        }
        sealed.append(entry)
      }
    }
    // Higher numbers come later in the log.
    sealed.sort { $0.highestSequence < $1.highestSequence }
    var parts = sealed.map {
      Part(id: $0.id, salt: $0.salt, end: $0.byteCount, compactedAt: $0.compactedAt)
    }
    let last = next.openSegments.firstIndex { position.lies(in: $0.id) } ?? -1
    for (index, entry) in next.openSegments.enumerated() {
      listed.insert(entry.id)
      let known = ends[entry.id]
      if !next.isClean, index > last {
        // A place without records.
        if known != nil || entry.byteCount > SegmentHeader.byteCount { return nil }
        continue
      }
      if let segment = segments[entry.id], segment.header.salt != entry.salt { return nil }
      if complete.contains(entry.id) { continue }
      let end = next.isClean ? entry.byteCount : index == last ? position.end : nil
      if let end {
        if end < known ?? 0 || end > segments[entry.id]?.capacity ?? .max { return nil }
        if end == known ?? SegmentHeader.byteCount { continue }
      }
      parts.append(Part(id: entry.id, salt: entry.salt, end: end, compactedAt: 0))
    }
    if isKnown { return parts }
    return segments.keys.allSatisfy { listed.contains($0) } ? parts : nil
  }
}
