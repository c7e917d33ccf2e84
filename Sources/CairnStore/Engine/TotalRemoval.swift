/// Removes everything with one change of the manifest, whatever the number of keys.
///
/// The caller waits for the disk, and reads and small writes do not: the new manifest is synced
/// before the names of the two are exchanged, and the directory afterwards, both without the log's
/// lock. Until the
/// names are on disk, a power cut may bring the old manifest back, so the files that it lists stay
/// until then.
final class TotalRemoval: Sendable {
  /// The numbers left to other writes while the manifest reaches the disk. If they use more, the
  /// removal begins again.
  private static let numbersAhead: SequenceNumber = 1 << 30

  private let session: Session
  private let lookup: Lookup
  private let supply: SegmentSupply
  private let checkpoints: CheckpointProgress
  private let evictor: Evictor

  init(_ remover: Remover, _ evictor: Evictor) {
    session = remover.session
    lookup = remover.lookup
    supply = remover.writer.supply
    checkpoints = remover.writer.compactor.checkpointer.progress
    self.evictor = evictor
  }

  private var catalog: Catalog { supply.catalog }
  private var log: LogWriter { supply.log }

  /// Removes everything at once.
  ///
  /// - Parameter progress: called after each file is removed, with no lock held.
  func run(
    progress: (WorkProgress) -> Void
  ) throws(StoreError) {
    try session.checkWritable()
    if log.withLock({ !$0.hasSession && !$0.segments.isEmpty }) {
      // The first write of a session that comes in the meantime does not need the manifest then. If
      // this fails, because the disk is full or the last segment unreadable, it does.
      try? supply.beginSession()
    }
    var removed: Removed
    repeat {
      removed = try catalog.change { (state) throws(StoreError) in try remove(&state) }
    } while removed.isTooLate
    Reclamation.reclaimIfDue()
    // Report this even if the store was empty. The call that emptied it may not have called the
    // observer yet, and after this call returns, no observer may still believe that entries exist.
    session.configuration.removalObserver?(
      .all(throughVersion: removed.lastSequence, count: removed.count))
    if !removed.segments.isEmpty {
      // Wake callers that wait for a batch to be published.
      log.wakeAll()
      evictor.restart()
    }
    // An earlier call that left nothing to remove may still be waiting for the disk.
    try catalog.settle()
    // Another thread may still be making a file at a place that was taken away.
    supply.waitForPreparation()
    _ = catalog.whileUsable { state in
      for id in removed.places { _ = catalog.unlink(id, in: &state) }
      catalog.unlinkCheckpoint(removed.checkpointID, in: &state)
    }
    // Readers that hold a segment continue. A file that must stay open for them is closed before
    // the next one is opened. If the store is closed in the meantime, the next open removes the
    // rest.
    let fileCount = removed.segments.count
    removed.segments.reverse()
    while let segment = removed.segments.popLast() {
      let message = catalog.whileUsable { catalog.unlink(consume segment, in: &$0) } ?? nil
      if let message { session.log(.warning, .maintenance, message) }
      progress(
        WorkProgress(
          .removing, completedCount: fileCount - removed.segments.count, totalCount: fileCount))
    }
    try session.checkPlace()
  }

  /// What a removal took out of the log.
  private struct Removed {
    var segments: [Segment] = []
    /// The reserved places without a segment.
    var places: [SegmentID] = []
    var checkpointID: UInt64 = 0
    /// The number of entries.
    var count = 0
    /// The sequence number of the last record.
    var lastSequence: SequenceNumber
    /// Whether nothing was removed, because other writes have used all numbers up to the floor.
    var isTooLate = false
  }

  private func remove(_ state: inout Catalog.State) throws(StoreError) -> Removed {
    let (last, isEmpty) = try log.withLock { (appender) throws(StoreError) in
      try appender.checkWritable(path: session.path)
      return (appender.nextSequence - 1, appender.segments.isEmpty)
    }
    if isEmpty { return Removed(lastSequence: last) }
    let floor = last + Self.numbersAhead
    let salts = try session.directory.randomNumbers(count: Manifest.reservedSegmentCount)
    let next = try catalog.successor(&state, lastSequence: floor) { manifest in
      manifest.removeAll(through: floor)
      manifest.reserve(salts: salts)
    }
    try catalog.write(next, &state)
    var removed = Removed(checkpointID: state.manifest.checkpointID, lastSequence: last)
    // DURABILITY: before the exchange everything is there; after it nothing is. Runs under the
    // log's lock, so that no write can be acknowledged between the two.
    try log.withLock { (appender) throws(StoreError) in
      try appender.checkWritable(path: session.path)
      removed.isTooLate = appender.nextSequence > floor
      if removed.isTooLate { return }
      do throws(StoreError) { try catalog.installUnsettled(next, &state) } catch {
        appender.note(error)
        throw error
      }
      removed.segments = appender.segments + (appender.prepared.map { [$0] } ?? [])
      removed.places = appender.reserved.map(\.id)
      removed.count = lookup.index.count
      removed.lastSequence = appender.nextSequence - 1
      for segment in removed.segments { segment.retire(isOnDisk: false) }
      lookup.index.removeAll()
      appender.nextSequence = floor + 1
      appender.active = nil
      appender.prepared = nil
      appender.isRolling = false
      appender.unpublished = nil
      appender.reserved = next.openSegments
      appender.rolled = []
      appender.sealed = []
    }
    if removed.isTooLate { return removed }
    ManifestFile(directory: session.directory).reserve(next)
    log.reserve.shrink(to: log.reserveSize)
    checkpoints.noteEmptied(through: floor)
    state.resumable = nil
    state.next = nil
    for segment in removed.segments { lookup.table.remove(segment) }
    return removed
  }
}
