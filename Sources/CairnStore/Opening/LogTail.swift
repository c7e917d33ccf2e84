/// The open segments of a store that was not closed: how far the log is sound, and whether a crash
/// can explain the rest.
///
/// Reads everything from the disk with pread, and changes nothing.
package struct LogTail: ~Copyable {
  /// One open segment, as far as it was read.
  package struct Extent {
    package var name: String
    /// The end of the last complete record or batch.
    package var end: Int
    /// The start of the last complete record or batch, or `nil` if there is none.
    package var lastUnit: Int?
    /// Records with a damaged value: the offset of each, and the start of its unit, which is its
    /// batch or the record itself.
    package var damagedValues: [(offset: Int, unit: Int)] = []
    /// Whether the segment ends with a roll record.
    package var hasRolled = false
    /// Whether there is a valid record beyond the first invalid one.
    package var hasLaterRecords = false
    /// Everything before this offset was durable, according to a record, the manifest or a
    /// checkpoint; 0 if unknown.
    package var syncMark = 0
    /// The end of the last non-zero byte.
    package var dataEnd: Int
    /// The highest sequence number in any valid record, including those beyond the end.
    package var highestSequence: SequenceNumber = 0
    /// The highest sequence number in a complete record or batch before the end, in this segment or
    /// an earlier one.
    package var highestSequenceBeforeEnd: SequenceNumber = 0
    /// Whether the segment has no file: the manifest only reserved it, or a power cut took the
    /// file.
    package var isAbsent = false
    /// The flaw in the segment's header. Thrown if other evidence shows that the header was
    /// written.
    package var flaw: StoreError?
    /// Where reading began.
    package var start = SegmentHeader.byteCount
    /// All records up to the end, if they were collected.
    var records: CollectedRecords?
    package var isEmpty: Bool {
      lastUnit == nil && !hasRolled && start == SegmentHeader.byteCount
    }
  }

  package init() {}

  /// Collects the records while they are read, for a replay.
  ///
  /// - Parameter empty: no records.
  init(collecting empty: CollectedRecords) { self.empty = empty }

  private var empty: CollectedRecords?
  /// Bounds the memory: of a longer log, replay reads the rest again.
  private var collectableByteCount = 16 << 20
  package private(set) var extents: [Extent] = []
  /// Values that are damaged although their records were stored. Reading one throws.
  package private(set) var damagedValues: [Corruption] = []
  package private(set) var tornByteCount = 0
  /// Where the log was cut: the segment, the offset, and the end of its valid records. `nil` if it
  /// was not cut.
  package private(set) var cut: (index: Int, offset: Int, hole: Int)?

  /// The highest sequence number in any valid record, including discarded ones.
  package var highestSequence: SequenceNumber { extents.map(\.highestSequence).max() ?? 0 }

  /// Adds an open segment that has no file.
  ///
  /// - Throws: `corrupt` if a part of the segment was durable.
  package mutating func addAbsent(
    _ entry: Manifest.OpenSegment, durable: Int
  ) throws(StoreError) {
    let name = FileName.segment(entry.id)
    guard durable == 0 else {
      throw .corrupt(Corruption(file: name, offset: 0, cause: .missingFile))
    }
    let start = SegmentHeader.byteCount
    var extent = Extent(name: name, end: start, dataEnd: start)
    extent.highestSequenceBeforeEnd = extents.last?.highestSequenceBeforeEnd ?? 0
    extent.isAbsent = true
    extent.flaw = .corrupt(Corruption(file: name, offset: 0, cause: .missingFile))
    extents.append(extent)
  }

  /// Reads one more open segment whose header may not have reached the disk. Call in the order of
  /// the log.
  ///
  /// - Throws: `corrupt` if the segment is damaged in a way that no crash explains.
  package mutating func scan(
    _ file: File, of entry: Manifest.OpenSegment, storeIdentifier: [UInt8], byteCount: Int,
    durable: Int, sameBoot: Bool, from start: Int? = nil, highestSequence: SequenceNumber = 0
  ) throws(StoreError) {
    guard byteCount <= FormatVersion.highestOffset else {
      throw .corrupt(Corruption(file: file.name, offset: 0, cause: .badLength))
    }
    var bytes = [UInt8](repeating: 0, count: SegmentHeader.byteCount)
    let readCount = try file.read(into: &bytes, at: 0)
    let flaw: StoreError
    do throws(StoreError) {
      guard readCount == bytes.count else {
        throw .corrupt(Corruption(file: file.name, offset: readCount, cause: .fileTooShort))
      }
      let header = try SegmentHeader(decoding: bytes.rawSpan, file: file.name)
      guard header.id == entry.id, header.salt == entry.salt,
        header.storeIdentifier == storeIdentifier
      else {
        throw .corrupt(
          Corruption(file: file.name, offset: SegmentHeader.identifierOffset, cause: .badHeader))
      }
      return try scan(
        file: file, header: header, byteCount: byteCount, durable: durable, from: start,
        highestSequence: highestSequence)
    } catch {
      guard case .corrupt = error else { throw error }
      flaw = error
    }
    // A process writes the header in one call, so a kill leaves either all of it or nothing.
    let isUnwritten = readCount < bytes.count || bytes.allSatisfy { $0 == 0 }
    guard durable == 0, isUnwritten || !sameBoot else { throw flaw }
    // A sync of the log would have written the header too, so a record with a sync mark shows that
    // the header is damaged.
    var records = LogTail()
    try records.scan(
      file: file,
      header: SegmentHeader(
        storeIdentifier: storeIdentifier, id: entry.id, salt: entry.salt, baseSequence: 0,
        baseTime: 0),
      byteCount: max(byteCount, SegmentHeader.byteCount), durable: 0)
    let found = records.extents[0]
    if found.syncMark > 0 || sameBoot && !(found.isEmpty && !found.hasLaterRecords) { throw flaw }
    var extent = Extent(name: file.name, end: found.start, dataEnd: found.dataEnd)
    extent.flaw = flaw
    extent.highestSequenceBeforeEnd = extents.last?.highestSequenceBeforeEnd ?? 0
    extents.append(extent)
  }

  /// Reads one more open segment. Call in the order of the log.
  ///
  /// - Parameters:
  ///   - durable: how much of the segment was durable, according to the manifest or a checkpoint,
  ///     or 0. Unless it is 0, everything before the segment was durable too.
  ///   - start: where to begin, if everything before that offset is known to be sound.
  ///   - highestSequence: the highest sequence number before `start`.
  package mutating func scan(
    file: File, header: SegmentHeader, byteCount: Int, durable: Int, from start: Int? = nil,
    highestSequence: SequenceNumber = 0
  ) throws(StoreError) {
    guard durable <= byteCount else {
      throw .corrupt(Corruption(file: file.name, offset: byteCount, cause: .fileTooShort))
    }
    var scanner = SegmentScanner(file: file, header: header, end: byteCount)
    let collects = start == nil && byteCount <= collectableByteCount
    if collects { collectableByteCount -= byteCount }
    let start = start ?? SegmentHeader.byteCount
    var extent = Extent(name: file.name, end: start, dataEnd: start, start: start)
    if collects { extent.records = empty?.next() }
    extent.highestSequence = highestSequence
    extent.highestSequenceBeforeEnd = max(
      extents.last?.highestSequenceBeforeEnd ?? 0, highestSequence)
    if durable > SegmentHeader.byteCount { extent.syncMark = durable }
    var batch = BatchProgress()
    var offset = start
    var pendingDamage: [Int] = []
    while offset < byteCount, let record = try scanner.header(at: offset),
      batch.accept(record, at: offset)
    {
      extent.note(record, base: header.baseSequence)
      if record.kind == .roll {
        extent.hasRolled = true
        extent.end = offset + record.byteCount
        extent.confirmHighestSequence()
        try extent.records?.add(record, base: header.baseSequence, at: offset, from: &scanner)
        break
      }
      try extent.records?.add(record, base: header.baseSequence, at: offset, from: &scanner)
      if try !scanner.hasValidValue(record, at: offset) { pendingDamage.append(offset) }
      offset += record.byteCount
      if batch.start != nil { continue }
      // The batch or record began where the previous unit ended.
      let unit = extent.end
      extent.lastUnit = unit
      if !pendingDamage.isEmpty {
        extent.damagedValues += pendingDamage.map { ($0, unit) }
        pendingDamage = []
      }
      extent.end = offset
      extent.confirmHighestSequence()
    }
    if batch.start != nil { extent.records = nil }
    // Nothing follows a roll record. If more was durable, it is missing.
    guard !extent.hasRolled || extent.end >= durable else {
      throw .corrupt(Corruption(file: file.name, offset: extent.end, cause: .badLength))
    }
    if !extent.hasRolled {
      try searchBeyond(&extent, scanner: &scanner, header: header, byteCount: byteCount)
      // A forged checkpoint may end inside a record, whose rest is then no torn tail.
      if extent.end == start, extent.dataEnd > start,
        try Self.isInsideRecord(start, scanner: &scanner)
      {
        return try scan(file: file, header: header, byteCount: byteCount, durable: durable)
      }
    }
    extents.append(extent)
  }

  /// Whether a record begins before an offset and ends after it.
  private static func isInsideRecord(
    _ offset: Int, scanner: inout SegmentScanner
  ) throws(StoreError) -> Bool {
    var next = SegmentHeader.byteCount
    while next < offset, let record = try scanner.header(at: next) { next += record.byteCount }
    return next > offset
  }

  /// Checks every possible record position beyond the first invalid one.
  ///
  /// A killed process can leave any part of its last write. If that was a batch, its valid records
  /// belong to the hole: they have the next sequence numbers, and the batch begins where the hole
  /// does.
  private func searchBeyond(
    _ extent: inout Extent, scanner: inout SegmentScanner, header: SegmentHeader, byteCount: Int
  ) throws(StoreError) {
    extent.dataEnd = try scanner.endOfData(from: extent.end, to: byteCount)
    let next = extent.highestSequenceBeforeEnd + 1
    let isNextKnown = next > 1
    var unfinishedBatch: (first: SequenceNumber, count: UInt32)?
    var offset = extent.end
    // A record may end in zeros, beyond `dataEnd`. A roll record always does.
    while offset < extent.dataEnd {
      guard let record = try scanner.candidate(at: offset) else {
        offset = scanner.candidateOffset(after: offset)
        continue
      }
      extent.note(record, base: header.baseSequence)
      let first =
        header.baseSequence &+ UInt64(record.sequenceDelta) &- UInt64(record.batchIndex)
      let batch = (first: first, count: record.batchCount)
      if record.flags.contains(.batch), record.batchIndex > 0 || offset == extent.end,
        !isNextKnown || first == next, unfinishedBatch.map({ $0 == batch }) ?? true
      {
        unfinishedBatch = batch
      } else {
        extent.hasLaterRecords = true
      }
      offset += record.byteCount
    }
  }

  /// Decides where the log ends, and cuts the extents there.
  ///
  /// - Parameter sameBoot: whether the machine has not restarted since the store was last written.
  ///   If so, only the process died, and only its last write can be incomplete.
  /// - Throws: `corrupt` if durable data is missing, or if a gap has no explanation.
  package mutating func resolve(sameBoot: Bool) throws(StoreError) {
    let frontier = durableFrontier()
    for index in extents.indices {
      // A segment is rolled only after the next one has its header.
      if sameBoot, index > 0, extents[index - 1].hasRolled, let flaw = extents[index].flaw {
        throw flaw
      }
      let later = extents[(index + 1)...]
      let isFollowed =
        extents[index].hasLaterRecords || later.contains { !$0.isEmpty || $0.hasLaterRecords }
      for (offset, unit) in extents[index].damagedValues {
        let isDurable = (index, offset) < frontier
        let isLast =
          !isFollowed && unit == extents[index].lastUnit && !extents[index].hasRolled
        if isDurable || (sameBoot && !isLast) {
          damagedValues.append(
            Corruption(file: extents[index].name, offset: offset, cause: .badValue))
        } else {
          cut(at: unit, in: index)
          return
        }
      }
      if extents[index].hasRolled { continue }
      let hole = extents[index].end
      if (index, hole) < frontier || (sameBoot && isFollowed) {
        throw extents[index].flaw
          ?? .corrupt(
            Corruption(file: extents[index].name, offset: hole, cause: .lostRecords))
      }
      cut(at: hole, in: index)
      return
    }
  }

  /// The furthest position before which everything is known to have been durable.
  private func durableFrontier() -> (Int, Int) {
    for index in extents.indices.reversed() where extents[index].syncMark > 0 {
      return (index, extents[index].syncMark)
    }
    return (0, 0)
  }

  private mutating func cut(at offset: Int, in index: Int) {
    cut = (index, offset, extents[index].end)
    tornByteCount += max(0, max(extents[index].dataEnd, extents[index].end) - offset)
    if offset < extents[index].end { extents[index].records = nil }
    extents[index].end = offset
    for later in extents.indices where later > index {
      tornByteCount += max(extents[later].dataEnd, extents[later].end) - SegmentHeader.byteCount
      extents[later].end = SegmentHeader.byteCount
    }
  }
}

extension LogTail.Extent {
  /// Call when all records noted so far are complete.
  fileprivate mutating func confirmHighestSequence() {
    highestSequenceBeforeEnd = max(highestSequenceBeforeEnd, highestSequence)
  }

  fileprivate mutating func note(_ record: RecordHeader, base: SequenceNumber) {
    syncMark = max(syncMark, Int(clamping: record.syncMark))
    // A roll record has the sequence number of the next record.
    let sequence = base + UInt64(record.sequenceDelta)
    highestSequence = max(highestSequence, record.kind == .roll ? max(sequence, 1) - 1 : sequence)
  }
}
