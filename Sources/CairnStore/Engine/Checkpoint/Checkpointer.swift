internal import Synchronization

/// Why no checkpoint can be made. Logged only when the reason changes.
enum CheckpointHindrance: UInt8, AtomicRepresentable {
  case none, noSpace, other
}

/// Checkpoints: files with the state of the index, so that an open need not read the log from its
/// beginning.
///
/// 1. A checkpoint covers all records up to a number, and no manifest lists it before all these
///    records are on disk.
/// 2. While a checkpoint is made, no segments are switched, so its locations stay valid until it is
///    listed. If `removeAll` overtakes it, it is not listed.
/// 3. An abandoned checkpoint leaves the store unchanged.
///
/// The checkpointer's lock is taken before the locks of preparation, the catalog and the log.
final class Checkpointer: Sendable {
  private let session: Session
  private let catalog: Catalog
  private let expiry: Expiry
  private let index: HashIndex
  let progress: CheckpointProgress
  /// The result of this session's open.
  let recovery: RecoveryReport
  /// Held throughout a checkpoint. A compaction holds it from the switch until the index names the
  /// copies, but never while copying: a close needs the lock and must not wait for the copies.
  private let switching = Lock(())
  /// The last logged reason for making no checkpoint, or `.none` after a success.
  private let toldHindrance = Atomic(CheckpointHindrance.none)

  init(
    _ catalog: Catalog, _ expiry: Expiry, _ index: HashIndex, _ progress: CheckpointProgress,
    _ recovery: RecoveryReport
  ) {
    session = catalog.session
    self.catalog = catalog
    self.expiry = expiry
    self.index = index
    self.progress = progress
    self.recovery = recovery
  }

  private var log: LogWriter { catalog.log }

  // MARK: Exclusion

  /// Runs `body` while no checkpoint is made and no segments are switched.
  func keepingOut<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
    try switching.withLock { (_) throws(StoreError) in try body() }
  }

  var isBusy: Bool { switching.isHeld }

  /// Waits until no thread makes a checkpoint or keeps checkpoints out.
  func waitUntilIdle() { switching.withLock { _ in } }

  // MARK: When to make one

  /// Whether a checkpoint is overdue: enough has been appended since the last one, or the open had
  /// to replay more bytes than a checkpoint has. Without the second condition, sessions that are
  /// killed before they write much would replay the same records again and again.
  var isNeeded: Bool {
    progress.isDueSinceOpen.load(ordering: .relaxed)
      || progress.appendedByteCount.load(ordering: .relaxed)
        >= max(
          session.configuration.checkpointByteThreshold,
          4 * progress.byteCount.load(ordering: .relaxed))
  }

  /// Makes a checkpoint if one is overdue.
  ///
  /// - Parameter byTime: whether to make one also for the accesses that a kill would lose.
  func checkpointIfNeeded(byTime: Bool) throws(StoreError) {
    if isNeeded || byTime && forgetsUse { try checkpoint() }
  }

  /// Makes a checkpoint.
  ///
  /// - Throws: `durabilityUnknown`, `poisoned`. After any other error, nothing has changed.
  func checkpoint() throws(StoreError) {
    try session.checkWritable()
    try switching.withLock { (_) throws(StoreError) in
      guard let written = try writeCheckpoint(isCancelled: { session.isClosed }) else { return }
      var isListed = false
      defer { if !isListed { catalog.discard(written.basis) } }
      try catalog.change { (state) throws(StoreError) in
        guard written.basis.floor == state.manifest.floorSequence else { return }
        let old = state.manifest.checkpointID
        try catalog.replace(&state) { catalog.list(written, in: &$0) }
        isListed = true
        catalog.unlinkCheckpoint(old, in: &state)
      }
      if isListed { note(written) }
    }
  }

  /// Writes a checkpoint for a close, which lists it. Returns `nil` if none is needed or the write
  /// fails. The next open then does without a new checkpoint.
  func writeClosingCheckpoint() throws(StoreError) -> WrittenCheckpoint? {
    let (last, isAppended) = log.withLock { ($0.nextSequence - 1, $0.active != nil) }
    let covered = progress.lastSequence.load(ordering: .relaxed)
    // A session that wrote nothing leaves the files unchanged, unless the next open would have to
    // read as much as this one did.
    let isWorthwhile = isAppended || !recovery.wasClean || recovery.source == .scan
    let isBehind = last > covered + UInt64(session.configuration.checkpointRecordThreshold)
    guard
      isWorthwhile && isBehind || progress.isOvertaken.load(ordering: .relaxed) || forgetsUse
    else { return nil }
    return try writeCheckpoint(isCancelled: { false })
  }

  /// Whether a kill, or a close without a checkpoint, would lose too much access history: more than
  /// an hour of it, or a hundredth of the shortest idle limit, but at least a second. A large
  /// checkpoint is made less often, so that checkpoints write no more than 16 MiB an hour, or 16
  /// MiB a minute with short idle limits.
  private var forgetsUse: Bool {
    let limits = log.withLock { appender in
      appender.segments.map { $0.usage.livePutCount > 0 ? $0.usage.lowestIdleLimit : .max }
    }
    let interval = max(1000, min(3_600_000, (limits.min() ?? .max) / 100))
    let share = max(1, progress.byteCount.load(ordering: .relaxed) >> 24)
    return progress.lacksUse(
      in: index.recency, for: max(Int64(interval) * Int64(share), Int64(share - 1) * 60_000),
      now: session.clock.now())
  }

  // MARK: How to make one

  /// Writes a checkpoint of the current store while no compaction switches segments. Returns `nil`
  /// if this was cancelled, if the disk has no room, or if the file cannot be written.
  ///
  /// - Throws: if the log or the directory cannot be synced. The store is then poisoned.
  func writeCheckpoint(
    isCancelled: () -> Bool
  ) throws(StoreError) -> WrittenCheckpoint? {
    expiry.updateEarliestExpiries()
    let basis = try takeCheckpointBasis()
    var isWritten = false
    defer {
      basis.snapshot.end()
      if !isWritten { catalog.discard(basis) }
    }
    // DURABILITY: covered records are never read from the log again, so all of them are on disk
    // before any manifest lists the checkpoint.
    try log.waitForSync { _ in
      basis.unsynced.allSatisfy { $0.segment.syncedByteCount >= $0.end || $0.segment.isRetired }
    }
    guard let file = writeFile(basis, isCancelled: isCancelled) else { return nil }
    // DURABILITY: the file's name is on disk before a manifest that lists it.
    try catalog.change { (state) throws(StoreError) in try catalog.synchronizeNames(&state) }
    isWritten = true
    return WrittenCheckpoint(basis: basis, checksum: file.checksum, byteCount: file.byteCount)
  }

  private func takeCheckpointBasis() throws(StoreError) -> CheckpointBasis {
    while true {
      if let basis = try tryTakingCheckpointBasis() { return basis }
      // A batch in the log may not be entirely in the index yet. Publishing it takes a moment, and
      // needs no lock that is held here.
      log.waitUntil { $0.unpublished == nil ? () : nil }
    }
  }

  private func tryTakingCheckpointBasis() throws(StoreError) -> CheckpointBasis? {
    try catalog.change { (state) throws(StoreError) -> CheckpointBasis? in
      let floor = state.manifest.floorSequence
      let taken = try log.withLock { (appender) throws(StoreError) -> CheckpointBasis? in
        if let failure = appender.failure { throw .poisoned(cause: failure) }
        if appender.unpublished != nil { return nil }
        // Under the log's lock, nothing changes the index or the log, so the two agree exactly.
        let segments = appender.segments.map { segment in
          // The end of a rolled segment is not synced separately, so an open reads the segment
          // again.
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
          appendedByteCount: progress.appendedByteCount.load(ordering: .relaxed))
      }
      guard let basis = taken else { return nil }
      _ = state.reserveID()
      return basis
    }
  }

  /// Writes the file. Returns `nil` if the write is cancelled or fails; a failure is logged.
  private func writeFile(
    _ basis: CheckpointBasis, isCancelled: () -> Bool
  ) -> (checksum: UInt32, byteCount: Int)? {
    do throws(StoreError) {
      // Leave the last space on a disk to the log.
      let spare = log.reserveSize.removalByteCount
      let needed = basis.leastByteCount + spare
      if log.files.reservesBlocks, let limit = session.directory.limit(onAdding: needed) {
        throw .noSpace(path: session.path, neededByteCount: needed, limit: limit)
      }
      // Samples may be added while the file is being written.
      let sampleCount = index.recency.state(now: session.clock.now()).samples.count + 8
      // Create the file under the catalog's lock, and only while the store's own lock is held: a
      // failed close does not wait, and the name may then belong to another session.
      let file = try catalog.change { (_) throws(StoreError) -> File in
        // Remove a checkpoint that was abandoned under this id before a crash.
        let name = FileName.checkpoint(basis.id)
        try session.directory.unlink(name)
        return try session.directory.createFile(name)
      }
      var writer = try CheckpointWriter(
        basis, samples: sampleCount, file: file, storeIdentifier: log.files.storeIdentifier)
      for shard in 0..<HashIndex.shardCount {
        if isCancelled() { return nil }
        let entries = try basis.snapshot.peekEntries(inShard: shard)
        basis.snapshot.release(shard: shard)
        try writer.add(entries, shard: shard)
      }
      let (tick, samples) = index.recency.state(now: session.clock.now())
      let written = try writer.finish(tick: tick, samples: samples)
      toldHindrance.store(.none, ordering: .relaxed)
      return written
    } catch {
      // A close that did not wait has failed, and its caller knows why.
      if case .closed = error { return nil }
      // Log this only once: a checkpoint is retried with each segment, and the cause may last for
      // hours.
      let hindrance: CheckpointHindrance = if case .noSpace = error { .noSpace } else { .other }
      if toldHindrance.exchange(hindrance, ordering: .relaxed) != hindrance {
        session.tell(
          session.isAtOwnLimit(error) ? .info : .warning, .maintenance,
          "no checkpoint is made: \(error)")
      }
      return nil
    }
  }

  private func note(_ written: WrittenCheckpoint) {
    // No compaction can switch segments in the meantime, because `switching` is held.
    progress.isOvertaken.store(false, ordering: .relaxed)
    progress.isDueSinceOpen.store(false, ordering: .relaxed)
    progress.lastSequence.store(written.basis.lastSequence, ordering: .relaxed)
    progress.byteCount.store(written.byteCount, ordering: .relaxed)
    progress.noteUse(tick: index.recency.now, time: session.clock.now())
    // Rolled segments and the active one count as a whole when they are sealed.
    progress.appendedByteCount.wrappingSubtract(
      written.basis.unsynced.reduce(written.basis.appendedByteCount) { $0 + $1.end },
      ordering: .relaxed)
  }
}
