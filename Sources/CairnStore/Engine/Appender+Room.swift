/// Room for records, as far as the log alone can make it.
extension Appender {
  /// Makes room for `byteCount` bytes of records.
  mutating func makeRoom(
    byteCount: Int, isRemoval: Bool, reserve: DiskReserve
  ) throws(StoreError) -> Room {
    if hasRoom(byteCount: byteCount, reserve: reserve) { return .ready }
    while true {
      guard let active else {
        guard let first = prepared else { return reserved.isEmpty ? .needsSession : .needsNext }
        try roll(to: first)
        prepared = nil
        continue
      }
      let end = offset + byteCount + RecordHeader.rollByteCount
      // A record stores its sequence number as a 32-bit difference.
      let isInReach = nextSequence - active.header.baseSequence < 1 << 31
      let limit = fullByteCount
      let fits = end <= limit || offset == SegmentHeader.byteCount && end <= active.capacity
      if fits && isInReach {
        // Fill the last part of a segment only once the next segment exists, so that removals have
        // room on a full disk. The next segment must also be open: if no descriptor is left, this
        // write fails.
        if !isRemoval && end + Segment.slack > limit {
          guard let next = prepared else { return .needsNext }
          try next.openFile()
        }
        let wanted = isRemoval ? end : max(end, min(limit, end + Segment.slack))
        let grows = wanted > active.allocatedByteCount
        if !isRemoval, grows || reserve.isShort {
          let growth = max(step(of: active), wanted - active.allocatedByteCount)
          try ensure(reserve, adding: grows ? growth : 0)
        }
        if grows { try grow(active, to: wanted, byLittle: isRemoval && reserve.isShort) }
        return .ready
      }
      guard let next = prepared else { return .needsNext }
      precondition(
        byteCount <= next.capacity - SegmentHeader.byteCount - RecordHeader.rollByteCount,
        "more is written outside the log")
      if !isRemoval { try ensure(reserve, adding: next.allocatedByteCount) }
      try roll(to: next)
      prepared = nil
      isRolling = true
    }
  }

  /// Ensures that enough room remains to remove the added bytes.
  func ensure(_ reserve: DiskReserve, adding byteCount: Int) throws(StoreError) {
    try reserve.ensure(reserveSize(adding: byteCount), atLeast: reserveSize())
  }

  /// The size at which the active segment is full. It grows while segments wait although they are
  /// to be sealed, so that writers can be far ahead of a slow disk.
  private var fullByteCount: Int {
    let waiting = max(0, rolled.count - Self.sealedCount)
    let burst = min(segmentByteCount << min(waiting / 2, 8), burstByteCount)
    return min(max(segmentByteCount, burst), active?.capacity ?? segmentByteCount)
  }

  /// The reserve for the log, once it has grown by some bytes: room to copy the largest segment
  /// with several values. Segments of more than 16 MiB count only if the log has reached that size:
  /// they are mostly large batches.
  func reserveSize(adding byteCount: Int = 0) -> DiskReserve.Size {
    let full = max(segmentByteCount, SegmentSize.aside)
    var (total, largest) = (byteCount, 0)
    func add(_ segment: Segment) {
      total += segment.allocatedByteCount
      // The active segment will be filled.
      let end = segment === active ? segment.allocatedByteCount : segment.usage.end
      if segment.usage.putCount > 1, end <= full { largest = max(largest, end) }
    }
    sealed.forEach(add)
    rolled.forEach(add)
    if let active { add(active) }
    return DiskReserve.Size(
      copyByteCount: max(largest, min(total, fullByteCount)), forLogOf: total)
  }

  /// How much a segment grows if the disk has room.
  private func step(of segment: Segment) -> Int {
    min(max(segment.allocatedByteCount, Self.firstAllocation), growth)
  }

  /// Preallocates up to `byteCount` or, if the disk has room, further.
  ///
  /// - Parameter byLittle: whether to stop there, because the space is needed elsewhere.
  private mutating func grow(
    _ segment: Segment, to byteCount: Int, byLittle: Bool
  ) throws(StoreError) {
    let old = segment.allocatedByteCount
    let step = step(of: segment)
    // On a nearly full disk, do not retry large steps at every write.
    for step in byLittle ? [0] : [step, Self.firstAllocation, 0] {
      do {
        try segment.allocate(to: max(byteCount, min(fullByteCount, old + step)))
        growth = min(Self.largestGrowth, 2 * growth)
        return
      } catch {
        guard case .noSpace = error else { throw error }
        growth = max(Self.firstAllocation, step / 2)
        if step > 0 { continue }
        // Free the blocks of a failed allocation.
        try? segment.file.open().truncate(to: old)
        throw error
      }
    }
  }
}
