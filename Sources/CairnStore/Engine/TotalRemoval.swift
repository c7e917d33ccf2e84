/// Removes everything with one change of the manifest, whatever the number of keys.
///
/// In a `.process` or `.interval` store, a removal does not wait for a sync. Housekeeping prepares
/// a manifest that removes everything, so a removal only exchanges two names. Until these names are
/// on disk, a power cut may bring the old manifest back, so the files that it lists stay until the
/// directory is synced.
final class TotalRemoval: Sendable {
  private let session: Session
  private let lookup: Lookup
  private let supply: SegmentSupply
  private let checkpointer: Checkpointer
  private let evictor: Evictor
  private let committer: Committer

  init(_ remover: Remover, _ evictor: Evictor) {
    session = remover.session
    lookup = remover.lookup
    supply = remover.writer.supply
    checkpointer = remover.writer.compactor.checkpointer
    self.evictor = evictor
    committer = remover.committer
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
    var (segments, last, count, isOnDisk) = try supply.changeCatalog {
      (state) throws(StoreError) -> ([Segment], SequenceNumber, Int, Bool) in
      let checkpoint = state.manifest.checkpointID
      let (segments, last, count, isOnDisk) = try log.withLock {
        (appender) throws(StoreError) -> ([Segment], SequenceNumber, Int, Bool) in
        try appender.checkWritable(path: session.path)
        let last = appender.nextSequence - 1
        let segments = appender.segments + (appender.prepared.map { [$0] } ?? [])
        if segments.isEmpty { return ([], last, 0, true) }
        let emptied = state.emptied.flatMap { last <= $0.floorSequence ? $0 : nil }
        // DURABILITY: before the switch everything is there; after it nothing is. Runs under the
        // log's lock, so that no write can be acknowledged between the floor and the switch.
        do throws(StoreError) {
          if let emptied {
            try install(emptied, &state, retiring: segments.map(\.id))
          } else {
            try catalog.replace(&state, lastSequence: last) {
              $0.removeAll(through: last, retiring: segments.map(\.id))
            }
          }
        } catch {
          appender.note(error)
          throw error
        }
        for segment in segments { segment.retire(isOnDisk: emptied == nil) }
        let count = lookup.index.count
        lookup.index.removeAll()
        appender.nextSequence = (emptied?.floorSequence ?? last) + 1
        appender.active = nil
        appender.prepared = nil
        appender.unpublished = nil
        appender.reserved = state.manifest.openSegments
        appender.rolled = []
        appender.sealed = []
        return (segments, last, count, emptied == nil)
      }
      state.resumable = nil
      if isOnDisk, state.manifest.checkpointID != checkpoint {
        catalog.unlinkCheckpoint(checkpoint, in: &state)
      } else if !isOnDisk {
        state.leftFiles += segments.map { .segment($0) } + [.checkpoint(checkpoint)]
      }
      for segment in segments { lookup.table.remove(segment) }
      return (segments, last, count, isOnDisk)
    }
    Reclamation.reclaimIfDue()
    // Report this even if the store was empty. The call that emptied it may not have called the
    // observer yet, and after this call returns, no observer may still believe that entries exist.
    session.configuration.removalObserver?(.all(throughVersion: last, count: count))
    if segments.isEmpty { return }
    // Wake callers that wait for a batch to be published.
    log.wakeAll()
    evictor.restart()
    // Readers that hold a segment continue. Its file is removed at once, or at the next pass of
    // housekeeping. A file that must stay open for them is closed before the next one is opened. If
    // the store is closed in the meantime, the next open removes the rest.
    let fileCount = segments.count
    segments.reverse()
    while let segment = segments.popLast() {
      if isOnDisk {
        let message = catalog.whileUsable { catalog.unlink(consume segment, in: &$0) } ?? nil
        if let message { session.log(.warning, .maintenance, message) }
      }
      progress(
        WorkProgress(.removing, completedCount: fileCount - segments.count, totalCount: fileCount))
    }
    if isOnDisk { return }
    session.wakeHousekeeping()
    if case .interval(let interval) = session.configuration.durability {
      committer.requestSync(within: interval)
    }
  }

  // MARK: The manifest that removes all

  /// How far ahead the floor and the generation of this manifest are.
  private static let numbersAhead: SequenceNumber = 1 << 24

  /// Prepares the manifest that removes everything, unless it is ready already. It stays usable
  /// whatever the current manifest lists later, because ids assigned from now on are beyond its
  /// next id.
  func prepare() throws(StoreError) {
    if !session.removesWithoutSync { return }
    try checkpointer.keepingOut { () throws(StoreError) in
      let made = try catalog.change { (state) throws(StoreError) -> Manifest? in
        let (last, isOver) = log.withLock {
          ($0.nextSequence - 1, $0.isClosed || $0.failure != nil)
        }
        // The places that the next session's manifest reserves are assigned too.
        let listed =
          (state.next ?? state.manifest).openSegments.map(\.id)
          + state.manifest.sealedSegments.map(\.id)
        if isOver || state.failure != nil || listed.isEmpty { return nil }
        if let emptied = state.emptied, last + Self.numbersAhead / 2 < emptied.floorSequence {
          return nil
        }
        state.dropEmptied()
        var emptied = state.manifest
        emptied.removeAll(through: last + Self.numbersAhead, retiring: listed)
        emptied.isClean = false
        emptied.generation &+= Self.numbersAhead
        emptied.lastSequence = emptied.floorSequence
        emptied.lastTime = session.clock.now()
        emptied.bootIdentifier = catalog.bootIdentifier
        emptied.reserve(
          salts: try session.directory.randomNumbers(count: Manifest.reservedSegmentCount))
        state.manifest.nextID = emptied.nextID
        // DURABILITY: if a power cut undoes the removal, the next open removes these segments'
        // files.
        state.manifest.pendingIDs += emptied.openSegments.map(\.id.rawValue)
        return emptied
      }
      guard let made else { return }
      // Without a ready manifest, a removal waits for a sync.
      let isReady =
        (try? ManifestFile(directory: session.directory).makeReady(emptied: made)) != nil
      try catalog.change { (state) throws(StoreError) in
        state.emptied = made
        if !isReady { state.dropEmptied() }
      }
    }
  }

  /// Installs the manifest that removes everything, without a sync.
  private func install(
    _ emptied: Manifest, _ state: inout Catalog.State, retiring ids: [SegmentID]
  ) throws(StoreError) {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    do throws(StoreError) {
      try ManifestFile(directory: session.directory).installEmptied()
    } catch {
      throw state.failedExchange(error)
    }
    log.announce(generation: emptied.generation)
    // A sync of the directory may have begun before the exchange.
    log.commits.noteName()
    state.dropEmptied()
    state.next = nil
    state.isSettled = false
    state.manifest.removeAll(through: emptied.floorSequence, retiring: ids)
    state.manifest.isClean = false
    state.manifest.generation = emptied.generation
    state.manifest.openSegments = emptied.openSegments
  }
}
