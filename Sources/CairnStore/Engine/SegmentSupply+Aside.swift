/// Writes that are too large for others to wait for: a large value, or a batch of many records.
///
/// The records go into a segment that no manifest lists, under no lock that another write needs.
/// Then the writer writes a manifest that lists the segment after the active one. Under the log's
/// lock, the log rolls into the segment, and the two manifests exchange names. All earlier bytes are
/// now in the page cache, as the log requires. Only the last attempt waits for a sync under that
/// lock.
///
///     listed before:  active   prepared   reserved …
///     listed after:   active   aside      reserved …
///
/// A crash before the exchange leaves a file with a pending id, which the next open removes. A
/// power cut that undoes the exchange leaves the same state. The log then ends before the prepared
/// segment, to which no thread writes again. So nothing in the new segment counts as durable before
/// a sync of the directory.
extension SegmentSupply {
  /// How far ahead the numbers of a batch written outside the log are. Meanwhile, other writes use
  /// the numbers in between. If they use all of them, the next attempt leaves four times as many.
  private static func numbersAhead(attempt: Int) -> SequenceNumber {
    1 << min(24 + 2 * attempt, 30)
  }

  /// How often other writes may roll the active segment while a manifest is being prepared.
  private static let tryLimit = 5

  /// One attempt of `Writer.appendAside`. Returns `nil` if `removeAll` came in between, or if there
  /// were so many other writes that their numbers reached those of a batch.
  ///
  /// - Parameter attempt: the number of failed attempts before this one.
  func tryAppendingAside<Value>(
    attempt: Int, byteCount: Int, isRemoval: Bool, forSync: Bool, isBatch: Bool,
    writing write: (Segment, SequenceNumber) throws(StoreError) -> Void,
    unless check: (inout Appender) throws(StoreError) -> Value?,
    _ body: (inout Appender, SequenceNumber) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    // Begin a session if none has begun.
    try beginSessionIfNeeded(isRemoval: isRemoval)
    let segment = try createAside(byteCount: byteCount, isRemoval: isRemoval)
    var isEntered = false
    defer {
      if !isEntered {
        log.files.table.remove(segment)
        catalog.abandon([segment.id])
      }
    }
    let base = segment.header.baseSequence
    let first = base + Self.numbersAhead(attempt: attempt)
    try write(segment, first)
    // Nothing relies on this sync. It leaves less work to the log's sync, for which other writes
    // also wait.
    if forSync { try segment.file.open().synchronize() }
    var tryCount = 0
    while true {
      try prepareNextSegment()
      tryCount += 1
      // If other writes rolled the segment during every attempt, make them wait for this sync.
      let isHoldingOthers = tryCount > Self.tryLimit
      let entry = try catalog.change { (state) throws(StoreError) -> AsideEntry<Value> in
        let (active, prepared) = try log.withLock {
          (appender) throws(StoreError) -> (Segment?, Segment?) in
          try appender.checkWritable(path: session.path)
          return (appender.active, appender.prepared)
        }
        guard let active else { return .tooLate }
        // The log may have moved on in the meantime.
        guard let prepared else { return .again }
        let next = try catalog.successor(&state) { manifest in
          manifest.pendingIDs.removeAll { $0 == segment.id.rawValue }
          manifest.openSegments.removeAll { $0.id == prepared.id }
          manifest.retiredIDs.append(prepared.id.rawValue)
          let place = manifest.openSegments.firstIndex { $0.id == active.id } ?? 0
          manifest.openSegments.insert(
            Manifest.OpenSegment(id: segment.id, salt: segment.header.salt, byteCount: 0),
            at: place + 1)
        }
        if !isHoldingOthers { try catalog.write(next, &state) }
        let entry = try log.withLock { (appender) throws(StoreError) -> AsideEntry<Value> in
          try appender.checkWritable(path: session.path)
          // A value gets its number below. It must be within the reach of the segment.
          guard appender.nextSequence <= (isBatch ? first : base + (1 << 31) - 1) else {
            return .tooLate
          }
          // If another write has rolled the segment in the meantime, try again.
          guard appender.active === active, appender.prepared === prepared else { return .again }
          if isHoldingOthers { try catalog.write(next, &state) }
          if let value = try check(&appender) { return .refused(value) }
          // DURABILITY: a kill before the exchange leaves a rolled segment. A kill after it also
          // leaves an empty one. A power cut may undo the exchange, so a sync of the log syncs the
          // directory first.
          try appender.roll(to: segment, from: isBatch ? first : appender.nextSequence) {
            () throws(StoreError) in
            do throws(StoreError) { try catalog.installUnsettled(next, &state) } catch {
              // The manifest that needs the segment's file may be in place.
              isEntered = state.failure != nil
              throw error
            }
          }
          isEntered = true
          appender.prepared = nil
          state.leftSegments.append(prepared)
          prepared.retire()
          log.files.table.remove(prepared)
          return .entered(try body(&appender, first))
        }
        if isEntered { ManifestFile(directory: session.directory).reserve(next) }
        return entry
      }
      switch entry {
      case .entered(let value):
        // Have the rolled segment sealed and the next one prepared.
        session.wakeHousekeeping()
        if let chores = log.withLock({ $0.takeChores(prefaulting: false) }) { run(chores) }
        return value
      case .refused(let value): return value
      case .again: continue
      case .tooLate: return nil
      }
    }
  }

  /// The result of trying to continue in a segment that was written outside the log.
  private enum AsideEntry<Value> {
    case entered(Value)
    case refused(Value)
    case again
    case tooLate
  }

  /// Creates a segment that no manifest lists, with room for the records.
  private func createAside(byteCount: Int, isRemoval: Bool) throws(StoreError) -> Segment {
    let next = try log.withLock { (appender) throws(StoreError) in
      try appender.checkWritable(path: session.path)
      if !isRemoval { try appender.ensure(log.reserve, adding: byteCount) }
      return appender.nextSequence
    }
    let need = SegmentHeader.byteCount + byteCount + RecordHeader.rollByteCount
    let allocated = (need + 4095) & ~4095
    let salt = try session.directory.randomNumbers(count: 1)[0]
    // Under the catalog's lock, and only while the store is open: a close removes the files of all
    // pending ids, and no thread creates another afterwards.
    return try catalog.change { (state) throws(StoreError) in
      try log.checkWritable()
      let id = SegmentID(rawValue: state.reserveID())
      do throws(StoreError) {
        // Remove an earlier file that no manifest ever listed.
        try session.directory.unlink(FileName.segment(id))
        return try log.files.create(
          id: id, salt: salt, baseSequence: next,
          baseTime: SegmentHeader.baseTime(for: session.clock.steadyTime),
          capacity: max(session.configuration.segmentByteLimit, allocated), allocating: allocated,
          durably: false)
      } catch {
        if let message = catalog.discard(id, in: &state) {
          session.tell(.warning, .maintenance, message)
        }
        log.reserve.shrink(to: log.reserveSize)
        throw error
      }
    }
  }
}
