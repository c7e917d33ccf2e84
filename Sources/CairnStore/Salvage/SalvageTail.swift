/// What counts at the end of a log that recovery cannot make sense of.
///
/// Where recovery can (`LogTail`), its word is taken. Where it cannot, because something is missing
/// that was durable, records beyond the damage are looked at one by one: what an open of the store
/// would have discarded had the damage not been there does not count, and what may or may not have
/// been applied makes its keys lost, since neither their new values nor their old ones are sure.
enum SalvageTail {
  private struct Summary {
    /// Everything before this offset, and in the segments before, was durable; 0: not known.
    var syncMark = 0
    /// The highest number that is known to be in use; a roll has the one after it.
    var highestNumber: Int64 = 0
    var lastUnit: SalvageUnits.Unit?
  }

  private static func summary(of segment: SalvageSegment) throws(StoreError) -> Summary {
    var summary = Summary()
    if segment.durableByteCount > SegmentHeader.byteCount {
      summary.syncMark = segment.durableByteCount
    }
    var walk = try SalvageWalk(segment)
    var units = SalvageUnits()
    loop: while true {
      switch try walk.next() {
      case .end: break loop
      case .hole: continue
      case .record(let record, let offset):
        // No record speaks of what comes after it; a forged one may say so.
        summary.syncMark = max(summary.syncMark, min(Int(clamping: record.syncMark), offset))
        summary.highestNumber = max(
          summary.highestNumber, segment.sequence(of: record).lowerBound)
        if record.kind != .roll { _ = units.add(record, at: offset) }
      }
    }
    summary.lastUnit = units.last
    return summary
  }

  /// Finds the batch at the very end of the log whose last record is not sound, and that nothing written later
  /// vouches for. Whether it was applied cannot be known.
  ///
  /// Returns the highest sequence number in use.
  static func markUnproven(in segments: [SalvageSegment]) throws(StoreError) -> Int64 {
    var summaries: [Summary] = []
    for segment in segments {
      summaries.append(try summary(of: segment))
      segment.durableEnd = summaries.last?.syncMark ?? 0
    }
    let highest = summaries.map(\.highestNumber).max() ?? 0
    for (segment, summary) in zip(segments, summaries) {
      guard let unit = summary.lastUnit, unit.isBatch, unit.end > summary.syncMark,
        segment.base.upperBound + unit.lastDelta >= highest
      else { continue }
      let cameToItsEnd = try unit.lastRecord.map { (offset) throws(StoreError) in
        try isSound(at: offset, in: segment)
      }
      if cameToItsEnd != true { segment.unprovenStart = unit.start }
    }
    return highest
  }

  /// Marks the segments in a log that others follow which hold something.
  static func markFollowed(_ segments: [SalvageSegment?]) throws(StoreError) {
    var isFollowed = false
    for segment in segments.reversed() {
      guard let segment else { continue }
      segment.mustRoll = isFollowed
      if !isFollowed {
        var walk = try SalvageWalk(segment)
        while case .hole = try walk.next() {}
        isFollowed = walk.endOfRecords > SegmentHeader.byteCount
      }
    }
  }

  private static func isSound(
    at offset: Int, in segment: SalvageSegment
  ) throws(StoreError) -> Bool {
    var walk = try SalvageWalk(segment, from: offset)
    guard case .record(let record, offset) = try walk.next() else { return false }
    return try walk.hasValidValue(record, at: offset)
  }

  /// Where the batch ends that the log was cut at, if its last record is sound.
  ///
  /// A batch is one write, from front to back. Its last record shows that the write came to its end, so its writer
  /// may have been told so. What is missing was damaged later, and the rest counts.
  ///
  /// - Parameter offset: where the log was cut.
  static func endOfWrittenBatch(
    at offset: Int, in segment: SalvageSegment
  ) throws(StoreError) -> Int? {
    var walk = try SalvageWalk(segment)
    var highest: Int64?
    var batch: (first: Int64, count: UInt32)?
    while true {
      switch try walk.next() {
      case .end: return nil
      case .hole: continue
      case .record(let record, let place):
        let delta = Int64(record.sequenceDelta)
        if place < offset {
          highest = max(highest ?? delta, delta)
          continue
        }
        let own = (first: delta - Int64(record.batchIndex), count: record.batchCount)
        // It must be the batch that comes next, and begin where the log was cut.
        guard record.flags.contains(.batch), place == offset || record.batchIndex > 0,
          batch.map({ $0 == own }) ?? (highest.map { own.first == $0 + 1 } ?? true)
        else { return nil }
        batch = own
        if record.batchIndex == record.batchCount - 1 {
          return try walk.hasValidValue(record, at: place) ? place + record.byteCount : nil
        }
      }
    }
  }

  /// After the machine died, only a prefix of what was not known to be durable counts: cuts the log
  /// at the first damage beyond the durable part.
  ///
  /// - Parameter segments: the open ones in the order of the log, `nil` for those that are lost.
  /// - Returns: the highest sequence number in use, and the bytes that do not count.
  static func cut(
    _ segments: [SalvageSegment?]
  ) throws(StoreError) -> (highest: Int64, tornByteCount: Int) {
    var highest: Int64 = 0
    var frontier = (index: -1, offset: 0)
    for (index, segment) in segments.enumerated() {
      guard let segment else { continue }
      let summary = try summary(of: segment)
      highest = max(highest, summary.highestNumber)
      segment.durableEnd = summary.syncMark
      if summary.syncMark > 0 { frontier = (index, summary.syncMark) }
    }
    var isCut = false
    var tornByteCount = 0
    for (index, segment) in segments.enumerated() where index >= frontier.index {
      guard let segment else {
        // All after it lies beyond a hole.
        isCut = true
        continue
      }
      if isCut {
        segment.cut = SegmentHeader.byteCount
      } else {
        let durable = index == frontier.index ? frontier.offset : 0
        if let offset = try endOfPrefix(in: segment, durable: durable) {
          segment.cut = try endOfWrittenBatch(at: offset, in: segment) ?? offset
          isCut = true
        }
      }
      if segment.cut < segment.dataEnd {
        var scanner = try segment.makeScanner()
        tornByteCount +=
          try scanner.endOfData(from: segment.cut, to: segment.dataEnd) - segment.cut
      }
    }
    return (highest, tornByteCount)
  }

  /// Where the log ends in a segment, or `nil` where it goes on in the next.
  private static func endOfPrefix(
    in segment: SalvageSegment, durable: Int
  ) throws(StoreError) -> Int? {
    var walk = try SalvageWalk(segment)
    var units = SalvageUnits()
    while true {
      switch try walk.next() {
      case .hole(let hole):
        if hole.upperBound <= durable { continue }
        return openBatch(units, durable: durable) ?? hole.lowerBound
      case .end:
        // What ended with a roll goes on in the next segment.
        if walk.hasRolled { return openBatch(units, durable: durable) }
        return openBatch(units, durable: durable) ?? walk.endOfRecords
      case .record(let record, let offset):
        if record.kind == .roll { continue }
        let before = openBatch(units, durable: durable)
        let beginsUnit = units.add(record, at: offset)
        // A batch that another record follows is not complete and never will be.
        if beginsUnit, let before { return before }
        if offset >= durable {
          if beginsUnit, record.flags.contains(.batch), record.batchIndex > 0 { return offset }
          if try !walk.hasValidValue(record, at: offset) { return units.last?.start ?? offset }
        }
      }
    }
  }

  /// Where the batch begins that is not complete yet, beyond the durable part.
  private static func openBatch(_ units: SalvageUnits, durable: Int) -> Int? {
    guard let unit = units.last, !unit.isComplete, unit.start >= durable else { return nil }
    return unit.start
  }
}
