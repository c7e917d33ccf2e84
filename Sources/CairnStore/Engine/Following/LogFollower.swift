/// Adds records that another process has appended.
struct LogFollower {
  let writer: Writer

  private var log: LogWriter { writer.log }
  private var lookup: Lookup { writer.lookup }

  /// Adds the records of a part of the log, under the log's lock.
  ///
  /// - Throws: `corrupt` if they are not the published records; `outOfMemory`, `system`. Some of
  ///   them may already have been added.
  func enter(
    _ part: FollowedProgress.Part, in progress: inout FollowedProgress
  ) throws(StoreError) {
    let start = progress.ends[part.id] ?? SegmentHeader.byteCount
    let segment: Segment
    let isNew: Bool
    var fileByteCount = progress.fileByteCounts[part.id] ?? 0
    if let known = progress.segments[part.id] {
      (segment, isNew) = (known, false)
    } else {
      segment = try log.files.open(
        id: part.id, salt: part.salt, byteCount: part.end ?? SegmentHeader.byteCount,
        capacity: max(progress.capacity, part.end ?? 0), readOnly: true,
        compactedAt: part.compactedAt, noting: { fileByteCount = $0 })
      isNew = true
    }
    if let known = part.end, known > fileByteCount {
      // The page may announce anything, and memory beyond the end of the file must not be touched.
      fileByteCount = try segment.file.open().status().byteCount
      guard known <= fileByteCount else {
        throw segment.corruption(at: fileByteCount, .fileTooShort)
      }
    }
    var end = start
    var last: SequenceNumber = 0
    var hasRolled = false
    try log.withLock { (appender) throws(StoreError) in
      if isNew { appender.sealed.append(segment) }
      if let known = part.end {
        // The segment has no more room in the address space of locations.
        guard known <= segment.capacity else {
          throw segment.corruption(at: segment.capacity, .badLength)
        }
        segment.extend(to: known)
      } else {
        segment.extend(to: min(segment.capacity, try segment.file.open().status().byteCount))
      }
      // The writer may cut off everything after `end`.
      defer { segment.extend(to: max(start, end)) }
      var batch = BatchProgress()
      while !hasRolled, end < part.end ?? segment.allocatedByteCount {
        let record = try Record(in: segment, at: end, part: .head)
        guard batch.accept(record.header, at: end) else {
          throw segment.corruption(at: batch.start ?? end, .incompleteBatch)
        }
        let next = end + record.header.byteCount
        guard next <= segment.allocatedByteCount else {
          throw segment.corruption(at: end, .badLength)
        }
        hasRolled = record.header.kind == .roll
        if !hasRolled { last = max(last, record.sequence) }
        try enter(record, in: segment, end: next)
        end = next
      }
      guard batch.start == nil, part.end.map({ $0 == end }) ?? hasRolled else {
        throw segment.corruption(at: batch.start ?? end, .lostRecords)
      }
      if last > 0 { appender.nextSequence = max(appender.nextSequence, last + 1) }
    }
    progress.note(
      segment, end: end, fileByteCount: fileByteCount, isComplete: hasRolled, last: last)
  }

  private func enter(
    _ record: borrowing Record, in segment: Segment, end: Int
  ) throws(StoreError) {
    let header = record.header
    if header.kind == .roll {
      segment.usage.add(header, sequence: 0, end: end, isLive: false)
      return
    }
    let now = lookup.clock.now()
    let key = record.key
    let hash = lookup.hash.hash(key)
    let location = segment.location(at: record.offset)
    try lookup.index.load(shardOf: hash)
    if header.kind == .put { try writer.makeIndexRoom(hash, key: key, now: now) }
    let existing = try lookup.locate(hash, key: key, now: now)
    switch header.kind {
    case .put:
      segment.usage.add(header, sequence: record.sequence, end: end, isLive: true)
      writer.publish(
        hash, at: location, deadline: header.deadline { now }, replacing: existing)
    case .tombstone:
      segment.usage.add(header, sequence: record.sequence, end: end, isLive: false)
      if let existing { writer.unpublish(existing) }
    case .roll: break
    }
  }
}
