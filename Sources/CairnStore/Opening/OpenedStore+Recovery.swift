extension OpenedStore {
  /// Opens the segments that the manifest lists and builds the index.
  ///
  /// - Parameter names: the names in the directory, or `nil` if another process may add some.
  mutating func recover(
    segmentByteLimit: Int, names: Set<String>?, log: DiagnosticLog
  ) throws(StoreError) {
    let found = usableCheckpoint(log: log)
    let covered = found?.header.segments ?? []
    places = Dictionary(covered.map { ($0.id, $0) }) { first, _ in first }
    let placeEnd = covered.reduce(1) { max($0, $1.granules.upperBound) }
    files.table.beginPlacing(below: placeEnd)
    for entry in manifest.sealedSegments {
      try open(
        id: entry.id, salt: entry.salt, end: entry.byteCount, capacity: nil,
        compactedAt: entry.compactedAt)
    }
    // Only sealed segments are shortened: a segment in use grows beyond the current end of its
    // records.
    let overlong = overlong
    // A failed sync may also have undone the start of a session, so that the manifest is clean.
    if followed == nil { hasLostPages = try SyncFailureMark(lockFile: lockFile).isSet() }
    if manifest.isClean {
      try openCleanSegments(
        segmentByteLimit: segmentByteLimit,
        resuming: found != nil || manifest.checkpointID == 0)
    } else if let followed {
      try openFollowedSegments(through: followed)
    } else {
      try openUncleanSegments(among: names)
    }
    files.table.endPlacing(
      segments.filter { places[$0.id] != nil }.map {
        $0.granule..<($0.granule + Location.granuleCount(forCapacity: $0.capacity))
      }, below: placeEnd)
    if let found, try apply(found, log: log) { recovery.source = .checkpoint }
    try replayLog()
    nextSequence =
      1
      + max(
        manifest.highestSequence,
        max(replayedSequence, discardedSequence),
        checkpoint?.lastSequence ?? 0)
    if !isReadOnly {
      let limit = FormatVersion.writableLimit
      guard nextSequence <= limit, manifest.nextID <= limit else {
        throw .corrupt(
          Corruption(
            file: FileName.manifest,
            offset: nextSequence > limit ? Manifest.lastSequenceOffset : Manifest.nextIDOffset,
            cause: .badHeader))
      }
    }
    for segment in segments where segment.header.baseSequence > nextSequence {
      throw segment.corruption(at: SegmentHeader.baseSequenceOffset, .badHeader)
    }
    // A power cut or a failed sync may have removed all traces of some writes, even of the whole
    // session after a clean close. Their versions must not be given to other values. If only the
    // process died, nothing that a caller has seen is lost.
    let mayHaveLost = hasLostPages || manifest.bootIdentifier != bootIdentifier
    if mayHaveLost, !isReadOnly { nextSequence += Manifest.lostSequenceLimit }
    // After a jump within a segment, an unfinished batch would look as if records before it were
    // lost.
    if let last = resumable?.usage.highestSequence, last > 0, nextSequence > last + 1 {
      resumable = nil
    }
    // A sequence number is stored as a 32-bit difference, and a time as seconds after the base.
    if let header = resumable?.header,
      nextSequence - header.baseSequence >= 1 << 31
        || header.baseTime > SegmentHeader.baseTime(for: clock.now())
    {
      resumable = nil
    }
    if isReadOnly { return }
    // Sweep only now, because a refused store must stay unchanged.
    try sweep()
    if let resumable { try clear(resumable, behind: ends[resumable.id] ?? resumable.usage.end) }
    // Announce a loss while the manifest still shows it: if this process is killed later, the next
    // open finds the store clean.
    try tellOfLoss(after: announcedBefore, manifest)
    // DURABILITY: the jump of the versions is on disk before any of them is used.
    let wasClean = manifest.isClean
    do throws(StoreError) {
      if mayHaveLost || !wasClean { try sealRecovered() }
    } catch {
      // On a full disk, a clean store can still be read. The next manifest records the jump.
      guard case .noSpace = error, wasClean else { throw error }
      manifest.lastSequence = nextSequence - 1
      manifest.bootIdentifier = bootIdentifier
    }
    // Truncate bytes that were cut off, and bytes preallocated by a process that did not close the
    // store, unless readers of a poisoned store may still use them.
    if !hasLostPages { for segment in overlong { segment.shortenFile() } }
    // Do this even after a clean close, because the recovery that needed the mark may have died
    // before getting here.
    SyncFailureMark(lockFile: lockFile).clear()
  }

  /// Adds the records that no checkpoint covers to the index.
  private mutating func replayLog() throws(StoreError) {
    var replay = Replay(
      index: index, hash: hash, table: files.table, floor: manifest.floorSequence,
      segments: segments, checkpoint: checkpoint, source: checkpointSource)
    for segment in segments {
      let end = ends[segment.id] ?? SegmentHeader.byteCount
      var start = SegmentHeader.byteCount
      if checkpoint != nil, let covered = places[segment.id] {
        start = covered.end
      }
      replayedByteCount += end - start
      if let records = collected.removeValue(forKey: segment.id) {
        try replay.add(records, of: segment)
        continue
      }
      try replay.replay(segment, from: start, to: end)
    }
    try replay.finish()
    files.closeReadFiles()
    replacedDamage = replay.replacedDamage
    recovery.replayedRecordCount = replay.recordCount
    replayedSequence = replay.highestSequence
  }

  mutating func open(
    id: SegmentID, salt: UInt64, end: Int, capacity: Int?, compactedAt: SequenceNumber = 0,
    usage: SegmentUsage? = nil
  ) throws(StoreError) {
    if let place = places[id], max(capacity ?? 0, end) > place.capacity {
      // The segment would overlap other segments.
      throw .corrupt(
        Corruption(
          file: FileName.checkpoint(manifest.checkpointID), offset: Checkpoint.fixedByteCount,
          cause: .badLength))
    }
    var fileByteCount = 0
    let segment = try files.open(
      id: id, salt: salt, byteCount: end, capacity: capacity, readOnly: isReadOnly,
      compactedAt: compactedAt, usage: usage, at: places[id]?.granule
    ) { fileByteCount = $0 }
    segments.append(segment)
    ends[id] = end
    if fileByteCount > end { overlong.append(segment) }
  }

  /// After a clean close, the manifest has every length. Anything else is corruption.
  ///
  /// - Parameter resumes: whether appending may continue in the last segment. Not if the listed
  ///   checkpoint cannot be used now, because a later open may use it. The segment must not outgrow
  ///   its place in the checkpoint.
  private mutating func openCleanSegments(
    segmentByteLimit: Int, resuming resumes: Bool
  ) throws(StoreError) {
    for entry in manifest.openSegments {
      // Not more than the segment's granules in the checkpoint, even if the limit has changed.
      let capacity = min(
        segmentByteLimit,
        places[entry.id]?.capacity ?? .max)
      // Appending continues in this segment, unless it is full. This library leaves at most one
      // open segment. If there are several, nothing is appended to them, because the earlier ones
      // may end without a roll record.
      let isResumable =
        resumes && manifest.openSegments.count == 1 && !isReadOnly
        && entry.byteCount + 1024 <= capacity
      try open(
        id: entry.id, salt: entry.salt, end: entry.byteCount,
        capacity: isResumable ? capacity : capacityOfFollowed(entry.id, end: entry.byteCount))
      if isResumable { resumable = segments.last }
    }
  }

  /// Removes everything after the records of the segment that will be appended to. Otherwise
  /// records of a session that a power cut undid would look like later ones.
  private func clear(_ segment: Segment, behind end: Int) throws(StoreError) {
    let file = try segment.file.open()
    let byteCount = try file.status().byteCount
    if byteCount == end { return }
    // A close leaves only zeroed slack for removals.
    var room = [UInt8](repeating: 0, count: min(byteCount - end, Segment.slack))
    _ = try file.read(into: &room, at: end)
    if byteCount - end <= Segment.slack, room.allSatisfy({ $0 == 0 }) { return }
    try file.truncate(to: end)
    // DURABILITY: the removed bytes are durably gone before anything is appended. Otherwise another
    // power cut could bring them back after new records.
    try file.synchronize()
  }

  /// After a crash, the end of the log is unknown until the log has been read.
  private mutating func openUncleanSegments(among names: Set<String>?) throws(StoreError) {
    let failureMark = SyncFailureMark(lockFile: lockFile)
    let sameBoot = manifest.bootIdentifier == bootIdentifier && !hasLostPages
    var tail = LogTail(
      collecting: CollectedRecords(
        hash: hash, floor: manifest.floorSequence, total: files.table.total))
    for entry in manifest.openSegments {
      // DURABILITY: a checkpoint is listed only once everything that it covers is on disk.
      let covered = places[entry.id]
      let durable = max(entry.byteCount, covered?.end ?? 0)
      let name = FileName.segment(entry.id)
      // Most places have no file yet.
      guard names?.contains(name) ?? true,
        let file = try directory.openFile(name, mode: isReadOnly ? .readOnly : .readWrite)
      else {
        try tail.addAbsent(entry, durable: durable)
        lacksSegment = true
        continue
      }
      let byteCount = try file.status().byteCount
      if !isReadOnly {
        // DURABILITY: the page cache may hold pages of a dead process that are not on disk yet.
        // After a failed sync they never get there by themselves, although the cache shows them. So
        // write out and drop the pages first: later reads then show what is on the disk. Dropping
        // does not help if a mapping holds the pages, such as the mapping of a poisoned store in
        // this process.
        do throws(StoreError) {
          // A longer file is refused below.
          if hasLostPages, byteCount <= FormatVersion.highestOffset {
            try file.rewrite(0..<byteCount, skippingZeros: true)
          }
          try file.synchronizeData()
        } catch {
          failureMark.set()
          throw error
        }
        try file.dropCache()
      }
      try tail.scan(
        file, of: entry, storeIdentifier: manifest.storeIdentifier, byteCount: byteCount,
        durable: durable, sameBoot: sameBoot, from: covered?.end,
        highestSequence: covered?.highestSequence ?? 0)
    }
    try tail.resolve(sameBoot: sameBoot)
    recovery.tornByteCount = tail.tornByteCount
    recovery.damage = tail.damagedValues.map { Damage(place: $0) }
    discardedSequence = tail.highestSequence
    cutIndex = tail.cut?.index
    for (entry, extent) in zip(manifest.openSegments, tail.extents) {
      if extent.end == SegmentHeader.byteCount {
        if !extent.isAbsent { emptySegments.append(entry.id) }
      } else {
        // A checkpoint has counted what it covers.
        let records = places[entry.id] == nil ? extent.records : nil
        try open(
          id: entry.id, salt: entry.salt, end: extent.end, capacity: nil, usage: records?.usage)
        collected[entry.id] = records
      }
    }
  }

  /// Makes the result of a recovery durable. The segments found are sealed at their verified
  /// length, and nothing is ever appended to a tail that another process wrote.
  private mutating func sealRecovered() throws(StoreError) {
    let openIDs = Set(manifest.openSegments.map(\.id))
    let recovered = segments.filter { openIDs.contains($0.id) }
    var next = manifest
    next.sealedSegments += recovered.map(\.sealedEntry)
    next.openSegments = []
    next.retiredIDs = emptySegments.map(\.rawValue)
    next.isClean = true
    next.generation &+= 1
    next.lastSequence = nextSequence - 1
    next.lastTime = clock.now()
    next.bootIdentifier = bootIdentifier
    // DURABILITY: before the switch, the next open finds the same tail and decides the same. After
    // it, the discarded bytes are beyond the end of a sealed segment and are never read.
    let file = ManifestFile(directory: directory)
    try file.synchronize(try file.prepare(next))
    try file.install()
    manifest = next
    // The order matters on a full disk: the cut bytes make room for the next manifest. Bytes that
    // readers of a poisoned store or followers may still use stay. The next open cuts them off.
    if !hasLostPages {
      files.home.readers.withoutFollowers {
        for segment in recovered { try? segment.trim(to: segment.usage.end) }
      }
    }
    file.reserve(next)
    for id in emptySegments { try directory.unlink(FileName.segment(id)) }
  }
}
