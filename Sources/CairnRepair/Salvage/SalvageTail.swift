import CairnStore

/// Decides which records to use at the end of a log that recovery rejects.
///
/// If recovery (`LogTail`) succeeds, its result is used. If it fails because durable data is
/// missing, the records beyond the damage are examined one by one. Records that an open of the
/// undamaged store would have discarded are ignored. If a record may or may not have been applied,
/// its key is lost, because neither the new value nor the old one is certain.
enum SalvageTail {
  private struct Summary {
    /// Everything before this offset, and in the earlier segments, was durable; 0 if unknown.
    var syncMark = 0
    /// The highest sequence number known to be in use. A roll record counts with the next number.
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
        // A sync mark proves nothing about bytes after its own record, whatever a forged mark
        // claims.
        summary.syncMark = max(summary.syncMark, min(Int(clamping: record.syncMark), offset))
        summary.highestNumber = max(
          summary.highestNumber, segment.sequence(of: record).lowerBound)
        if record.kind != .roll { _ = units.add(record, at: offset) }
      }
    }
    summary.lastUnit = units.last
    return summary
  }

  /// Marks a batch at the very end of the log as unproven if its last record is not sound and
  /// nothing written later proves that the batch was applied.
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

  /// Marks the segments of the log that a non-empty segment follows.
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

  /// Whether the log continues in the next segment.
  static func hasRolled(_ segment: SalvageSegment) throws(StoreError) -> Bool {
    var walk = try SalvageWalk(segment)
    while true { if case .end = try walk.next() { return walk.hasRolled } }
  }

  private static func isSound(
    at offset: Int, in segment: SalvageSegment
  ) throws(StoreError) -> Bool {
    var walk = try SalvageWalk(segment, from: offset)
    guard case .record(let record, offset) = try walk.next() else { return false }
    return try walk.hasValidValue(record, at: offset)
  }

  /// The end of the batch at which the log was cut, if the batch's last record is sound.
  ///
  /// A batch is one write, from front to back. Its last record shows that the write was completed,
  /// so its writer may have received success. The missing part was damaged later, and the rest is
  /// used.
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
        // The record must be of the next batch, which must begin where the log was cut.
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

  /// Cuts the log at the first damage beyond the durable part. After a crash of the machine, only a
  /// prefix of the data not known to be durable is used.
  ///
  /// - Parameter segments: the open segments in the order of the log, with `nil` for lost segments.
  /// - Returns: the highest sequence number in use, and the number of discarded bytes.
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
        // Everything after a lost segment is beyond a hole.
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

  /// The end of the log in a segment, or `nil` if the log continues in the next segment.
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
        // After a roll record, the log continues in the next segment.
        if walk.hasRolled { return openBatch(units, durable: durable) }
        return openBatch(units, durable: durable) ?? walk.endOfRecords
      case .record(let record, let offset):
        if record.kind == .roll { continue }
        let before = openBatch(units, durable: durable)
        let beginsUnit = units.add(record, at: offset)
        // A batch is incomplete for good once another record follows it.
        if beginsUnit, let before { return before }
        if offset >= durable {
          if beginsUnit, record.flags.contains(.batch), record.batchIndex > 0 { return offset }
          if try !walk.hasValidValue(record, at: offset) { return units.last?.start ?? offset }
        }
      }
    }
  }

  /// The start of the incomplete batch beyond the durable part.
  private static func openBatch(_ units: SalvageUnits, durable: Int) -> Int? {
    guard let unit = units.last, !unit.isComplete, unit.start >= durable else { return nil }
    return unit.start
  }
}
