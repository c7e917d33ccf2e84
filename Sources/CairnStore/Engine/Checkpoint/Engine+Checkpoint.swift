internal import Synchronization

/// What is known of the newest checkpoint. Atomics, so that writers need no lock.
final class CheckpointProgress: Sendable {
  /// Every record with this number or a lower one is in it.
  let lastSequence: Atomic<UInt64>
  /// The size of its file.
  let byteCount: Atomic<Int>
  /// Bytes of records since, as far as they lie in segments that were left.
  let appendedByteCount: Atomic<Int>
  /// Whether segments that it speaks of have been compacted since.
  let isOvertaken = Atomic(false)
  /// Whether a compaction has taken it away.
  let isGone = Atomic(false)
  /// Whether the open replayed so much that the next one should not have to.
  let isDueSinceOpen: Atomic<Bool>
  /// Accesses up to this tick are in it, the last of them at this time, in milliseconds.
  private let usedTick: Atomic<UInt64>
  private let usedTime: Atomic<Int64>

  init(
    lastSequence: SequenceNumber, byteCount: Int, appendedByteCount: Int, isDueSinceOpen: Bool,
    usedTick: UInt64, usedTime: Timestamp
  ) {
    self.isDueSinceOpen = Atomic(isDueSinceOpen)
    self.lastSequence = Atomic(lastSequence)
    self.byteCount = Atomic(byteCount)
    self.appendedByteCount = Atomic(appendedByteCount)
    self.usedTick = Atomic(usedTick)
    self.usedTime = Atomic(usedTime.millisecondsSinceEpoch)
  }

  /// Up to when accesses are in it.
  func noteUse(tick: UInt64, time: Timestamp) {
    usedTick.store(tick, ordering: .relaxed)
    usedTime.store(time.millisecondsSinceEpoch, ordering: .relaxed)
  }

  /// Whether there were accesses that are not in it, and those in it are older than so many milliseconds.
  func lacksUse(in recency: RecencyClock, for interval: Int64, now: Timestamp) -> Bool {
    let known = Timestamp(millisecondsSinceEpoch: usedTime.load(ordering: .relaxed))
    return recency.isNewer(than: usedTick.load(ordering: .relaxed))
      && known.advanced(byMilliseconds: interval) <= now
  }

  /// There is none any more: one that follows is worth it at once.
  func noteGone() {
    isGone.store(true, ordering: .relaxed)
    isOvertaken.store(true, ordering: .relaxed)
    lastSequence.store(0, ordering: .relaxed)
    byteCount.store(0, ordering: .relaxed)
  }
}

extension Engine {
  // MARK: When

  /// A segment was left and sealed.
  func noteSealed(_ segment: Segment) {
    checkpoints.appendedByteCount.wrappingAdd(segment.usage.end, ordering: .relaxed)
  }

  /// Segments were replaced by others, which an open has to read until there is a new checkpoint.
  func noteCompacted(byteCount: Int) {
    checkpoints.isOvertaken.store(true, ordering: .relaxed)
    checkpoints.appendedByteCount.wrappingAdd(byteCount, ordering: .relaxed)
  }

  /// Whether a checkpoint is overdue: so much was appended since the last one, or the open had to
  /// replay more than a checkpoint takes. Without the latter, lives that are killed before they write
  /// much would replay the same records again and again.
  var needsCheckpoint: Bool {
    checkpoints.isDueSinceOpen.load(ordering: .relaxed)
      || checkpoints.appendedByteCount.load(ordering: .relaxed)
        >= max(
          configuration.checkpointByteThreshold,
          4 * checkpoints.byteCount.load(ordering: .relaxed))
  }

  /// Makes a checkpoint where enough was appended since the last one.
  package func checkpointIfNeeded() throws(StoreError) {
    if needsCheckpoint { try checkpoint() }
  }

  /// Makes a checkpoint.
  ///
  /// - Throws: `durabilityUnknown`, `poisoned`; any other error has changed nothing.
  package func checkpoint() throws(StoreError) {
    try checkWritable()
    try switching.withLock { (_) throws(StoreError) in
      guard let written = try writeCheckpoint(isCancelled: { isClosed }) else { return }
      var isListed = false
      defer { if !isListed { discard(written.basis) } }
      try changingManifest { (state) throws(StoreError) in
        guard written.basis.floor == state.manifest.floorSequence else { return }
        let old = state.manifest.checkpointID
        try replaceManifest(&state) { list(written, in: &$0) }
        isListed = true
        unlinkCheckpoint(old, in: &state)
      }
      if isListed { note(written) }
    }
  }

  /// Writes a checkpoint for a close, which lists it; `nil` where none is needed or it fails: the next
  /// open does without.
  func writeClosingCheckpoint() throws(StoreError) -> WrittenCheckpoint? {
    let (last, isAppended) = appender.withLock { ($0.nextSequence - 1, $0.active != nil) }
    let covered = checkpoints.lastSequence.load(ordering: .relaxed)
    // A session that wrote nothing leaves the files as they are, unless the next open would have to
    // read as much as this one.
    let isWorthwhile = isAppended || !recovery.wasClean || recovery.source == .scan
    let isBehind = last > covered + UInt64(configuration.checkpointRecordThreshold)
    guard
      isWorthwhile && isBehind || checkpoints.isOvertaken.load(ordering: .relaxed) || forgetsUse
    else { return nil }
    return try writeCheckpoint(isCancelled: { false })
  }

  /// Whether sessions too short for a checkpoint would forget too much of what was used when: more than an hour
  /// of it, or a hundredth of the shortest idle limit, but a second at least. A large checkpoint comes more seldom, so
  /// that they write no more than 16 MiB an hour, or 16 MiB a minute where there are short idle limits.
  private var forgetsUse: Bool {
    let limits = appender.withLock { appender in
      appender.segments.map { $0.usage.livePutCount > 0 ? $0.usage.lowestIdleLimit : .max }
    }
    let interval = max(1000, min(3_600_000, (limits.min() ?? .max) / 100))
    let share = max(1, checkpoints.byteCount.load(ordering: .relaxed) >> 24)
    return checkpoints.lacksUse(
      in: index.recency, for: max(Int64(interval) * Int64(share), Int64(share - 1) * 60_000),
      now: clock.now())
  }

  // MARK: How

  /// Writes the file of a checkpoint of the store as it is now, while no compaction switches. `nil`
  /// where it was cancelled, or there is no room, or the file cannot be written: then there is none.
  ///
  /// - Throws: where the log or the directory cannot be synced: then the store is poisoned.
  func writeCheckpoint(
    isCancelled: () -> Bool
  ) throws(StoreError) -> WrittenCheckpoint? {
    updateEarliestExpiries()
    let basis = try takeCheckpointBasis()
    var isWritten = false
    defer {
      basis.snapshot.end()
      if !isWritten { discard(basis) }
    }
    // DURABILITY: what a checkpoint covers is never looked for in the log again: every record that
    // it speaks of is on disk before any manifest lists it.
    try waitForSync { _ in
      basis.unsynced.allSatisfy { $0.segment.syncedByteCount >= $0.end || $0.segment.isRetired }
    }
    guard let file = writeFile(basis, isCancelled: isCancelled) else { return nil }
    try changingManifest { (state) throws(StoreError) in
      do throws(StoreError) {
        // DURABILITY: the file's name is on disk before a manifest that lists it.
        try directory.synchronize()
      } catch {
        // Other names may wait for this sync too, and it would succeed if it were tried again.
        state.failure = error.asFailure
        throw .poisoned(cause: error.asFailure)
      }
    }
    isWritten = true
    return WrittenCheckpoint(basis: basis, checksum: file.checksum, byteCount: file.byteCount)
  }

  private func takeCheckpointBasis() throws(StoreError) -> CheckpointBasis {
    while true {
      if let basis = try tryTakingCheckpointBasis() { return basis }
      // A batch that is in the log is not all in the index. That takes a moment, and no lock that is held here.
      appender.waitUntil { $0.unpublished == nil ? () : nil }
    }
  }

  private func tryTakingCheckpointBasis() throws(StoreError) -> CheckpointBasis? {
    try changingManifest { (state) throws(StoreError) -> CheckpointBasis? in
      let floor = state.manifest.floorSequence
      let taken = try appender.withLock { (appender) throws(StoreError) -> CheckpointBasis? in
        if let failure = appender.failure { throw .poisoned(cause: failure) }
        if appender.unpublished != nil { return nil }
        // Nothing changes the index or the log meanwhile, so the two agree to the record.
        let segments = appender.segments.map { segment in
          // The end of a segment that was left is not synced for its own sake; it is read again.
          let isRolled = appender.rolled.contains { $0 === segment }
          var covered = segment.covered
          if isRolled { covered.end -= RecordHeader.rollByteCount }
          return covered
        }
        return CheckpointBasis(
          id: state.manifest.nextID, floor: floor, lastSequence: appender.nextSequence - 1,
          snapshot: index.snapshot(), segments: segments,
          unsynced: (appender.rolled + (appender.active.map { [$0] } ?? [])).map {
            ($0, $0.usage.end)
          },
          activeByteCount: appender.active?.usage.end ?? 0,
          appendedByteCount: checkpoints.appendedByteCount.load(ordering: .relaxed))
      }
      guard let basis = taken else { return nil }
      _ = state.reserveID()
      return basis
    }
  }

  /// Writes the file; `nil` where it does not work out, which is logged.
  private func writeFile(
    _ basis: CheckpointBasis, isCancelled: () -> Bool
  ) -> (checksum: UInt32, byteCount: Int)? {
    do throws(StoreError) {
      // The last room on a disk is for the log.
      let logByteCount = basis.segments.reduce(0) { $0 + $1.end }
      let spare = DiskReserve.byteCount(forLogOf: logByteCount)
      let free = (try? directory.freeByteCount()) ?? .max
      if files.reservesBlocks, free < basis.leastByteCount + spare {
        throw .noSpace(path: path, neededByteCount: basis.leastByteCount + spare, limit: .disk)
      }
      // Some more may come while this goes on.
      let sampleCount = index.recency.state(now: clock.now()).samples.count + 8
      // Under the manifest's lock, and only while the store's own lock is held: a close that fails
      // waits for nobody, and the name may be another session's then.
      let file = try changingManifest { (_) throws(StoreError) -> File in
        // An id that came to nothing before a crash is given out again.
        let name = FileName.checkpoint(basis.id)
        try directory.unlink(name)
        return try directory.createFile(name)
      }
      var writer = try CheckpointWriter(
        basis, samples: sampleCount, file: file, storeIdentifier: files.storeIdentifier)
      for shard in 0..<HashIndex.shardCount {
        if isCancelled() { return nil }
        let contents = try basis.snapshot.peekContents(ofShard: shard)
        basis.snapshot.release(shard: shard)
        try writer.add(contents, shard: shard)
      }
      let (tick, samples) = index.recency.state(now: clock.now())
      let written = try writer.finish(tick: tick, samples: samples)
      backgroundFlags.toldOfNoCheckpoint.store(.none, ordering: .relaxed)
      return written
    } catch {
      // Of a close that did not wait, whoever closed it was told why.
      if case .closed = error { return nil }
      // Once: it is tried again with each segment, and what is the matter may stay so for hours.
      let hindrance: CheckpointHindrance = if case .noSpace = error { .noSpace } else { .other }
      if backgroundFlags.toldOfNoCheckpoint.exchange(hindrance, ordering: .relaxed) != hindrance {
        tell("no checkpoint is made: \(error)")
      }
      return nil
    }
  }

  /// Removes the file of a checkpoint that came to nothing.
  func discard(_ basis: CheckpointBasis) {
    manifest.withLock { state in
      // Where that fails the id goes on being pending, and the next open removes the file.
      guard state.lockFile != nil, state.failure == nil,
        (try? directory.unlink(FileName.checkpoint(basis.id))) != nil
      else { return }
      state.manifest.pendingIDs.removeAll { $0 == basis.id }
      // DURABILITY: until its name is gone for good, manifests list the id as one to be removed.
      state.manifest.retiredIDs.append(basis.id)
      state.unlinkedIDs.insert(basis.id)
    }
  }

  /// Makes a manifest list a checkpoint in place of the one before.
  func list(_ written: WrittenCheckpoint, in manifest: inout Manifest) {
    if manifest.checkpointID != 0 { manifest.retiredIDs.append(manifest.checkpointID) }
    manifest.pendingIDs.removeAll { $0 == written.basis.id }
    manifest.checkpointID = written.basis.id
    manifest.checkpointChecksum = written.checksum
  }

  /// Removes the file of a checkpoint that the manifest lists as retired.
  func unlinkCheckpoint(_ id: UInt64, in state: inout ManifestState) {
    if id == 0 { return }
    do {
      try directory.unlink(FileName.checkpoint(id))
      state.unlinkedIDs.insert(id)
    } catch {
      tell("removing \(FileName.checkpoint(id)): \(error)")
    }
  }

  private func note(_ written: WrittenCheckpoint) {
    // No compaction has switched meanwhile, since that lock is held.
    checkpoints.isOvertaken.store(false, ordering: .relaxed)
    checkpoints.isDueSinceOpen.store(false, ordering: .relaxed)
    checkpoints.lastSequence.store(written.basis.lastSequence, ordering: .relaxed)
    checkpoints.byteCount.store(written.byteCount, ordering: .relaxed)
    checkpoints.noteUse(tick: index.recency.now, time: clock.now())
    // The active segment counts as a whole when it is sealed.
    checkpoints.appendedByteCount.wrappingSubtract(
      written.basis.appendedByteCount + written.basis.activeByteCount, ordering: .relaxed)
  }
}
