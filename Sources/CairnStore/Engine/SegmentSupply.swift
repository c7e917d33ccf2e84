internal import Synchronization

/// Supplies the log's segments: begins the session, makes the next segment, rolls the active one
/// and seals rolled ones.
///
/// 1. A segment is written to only once a manifest lists its place, though the names of both need
///    not be on disk yet. Records written outside the log enter it by an exchange of two manifests.
/// 2. One thread at a time makes the next segment, under `preparation`.
/// 3. A segment is listed as sealed only after a sync of its name and of all its records.
///
/// `asides` is taken before `preparation`, and `preparation` before the catalog's lock.
final class SegmentSupply: Sendable {
  let session: Session
  let log: LogWriter
  let catalog: Catalog
  private let checkpoints: CheckpointProgress
  /// Held by one writer at a time while it writes records outside the log, and until a batch of
  /// them is in the index.
  let asides = Lock(())
  /// Held while the next segment is made. Held across a sync only if all reserved places are taken
  /// or no manifest is ready.
  private let preparation = Lock(())
  /// Whether a job that prefaults is queued.
  let isPrefaulting = Atomic(false)

  init(_ session: Session, _ catalog: Catalog, _ checkpoints: CheckpointProgress) {
    self.session = session
    log = catalog.log
    self.catalog = catalog
    self.checkpoints = checkpoints
  }

  // MARK: Room for records

  /// Makes what the log lacks.
  func make(_ room: Appender.Room) throws(StoreError) {
    switch room {
    case .ready: break
    case .needsSession: try beginSession()
    case .needsNext: try prepareNextSegment()
    case .none(let error):
      // The reserve may be missing because the directory is.
      if session.lookForPlace() { throw .vanished(path: session.path) }
      throw error
    }
  }

  /// Begins a session if none has begun.
  func beginSessionIfNeeded(isRemoval: Bool) throws(StoreError) {
    while true {
      try session.checkPlace()
      let room = try log.withLock { (appender) throws(StoreError) in
        try log.room(forByteCount: 0, isRemoval: isRemoval, in: &appender)
      }
      if case .ready = room {
        session.alarm.startTiming()
        return
      }
      try make(room)
    }
  }

  /// Makes the first write after an open possible: the manifest no longer marks the store as clean,
  /// and the log has an active segment. Does not wait for a sync if the next manifest is ready.
  func beginSession() throws(StoreError) {
    try preparation.withLock { (_) throws(StoreError) in
      try catalog.change { (state) throws(StoreError) in
        let isBegun = try log.withLock { (appender) throws(StoreError) in
          try appender.checkWritable(path: session.path)
          return appender.hasSession
        }
        if isBegun { return }
        try state.resumable?.openFile()
        try state.resumable?.ownEnd()
        if state.manifest.isClean { try continueManifest(&state) }
        log.updateSegmentSize()
        log.reserve.makeFiles()
        guard let segment = exchange(&state.resumable, with: nil) else { return }
        // Include the space that the close left for removals. Otherwise a write that finds no room
        // would free it.
        try? segment.allocate(to: min(segment.capacity, segment.usage.end + Segment.slack))
        log.withLock { appender in
          appender.sealed.removeAll { $0 === segment }
          appender.start(in: segment, at: segment.usage.end)
        }
      }
    }
  }

  /// Replaces a clean manifest with one that lists the segments to append to.
  private func continueManifest(_ state: inout Catalog.State) throws(StoreError) {
    let resumable = state.resumable
    let continued = state.manifest.openSegments.count
    if let next = state.next, continued == (resumable == nil ? 0 : 1),
      next.generation == state.manifest.generation &+ 1
    {
      do throws(StoreError) {
        try ManifestFile(directory: session.directory).installNext()
      } catch {
        throw state.failedExchange(error)
      }
      // A sync of the directory may have begun before the exchange.
      log.commits.noteName()
      log.announce(generation: next.generation)
      state.isSettled = false
      state.manifest.isClean = false
      state.manifest.generation = next.generation
      state.manifest.openSegments = next.openSegments
    } else {
      let known = log.withLock { $0.sealed }
      let salts = try session.directory.randomNumbers(count: Manifest.reservedSegmentCount)
      try catalog.replace(&state) { manifest in
        manifest.isClean = false
        if resumable == nil {
          // A full segment that a clean close left open is complete, and has been synced.
          let full = Set(manifest.openSegments.map(\.id))
          manifest.sealedSegments += known.filter { full.contains($0.id) }.map(\.sealedEntry)
          manifest.openSegments = []
        }
        manifest.reserve(salts: salts)
      }
    }
    state.next = nil
    let reserved = Array(state.manifest.openSegments.dropFirst(resumable == nil ? 0 : 1))
    log.withLock { $0.reserved = reserved }
  }

  /// Makes the segment after the active one, or the first, unless it exists. Does not wait for a
  /// sync, unless all reserved places have been taken.
  func prepareNextSegment() throws(StoreError) {
    try preparation.withLock { (_) throws(StoreError) in
      while true {
        let (isNeeded, place) = log.withLock {
          (
            $0.hasSession && $0.prepared == nil && !$0.isClosed && $0.failure == nil,
            $0.reserved.first
          )
        }
        if !isNeeded { return }
        guard let place else {
          // Rolled segments hold descriptors, and space that no compaction reclaims, until they are
          // sealed.
          try sealRolledSegments()
          try catalog.change { (state) throws(StoreError) in
            if log.withLock({ $0.reserved.isEmpty }) { try replaceManifest(&state) { _ in } }
          }
          continue
        }
        let segment = try createSegment(at: place)
        // The segment is not written to for a while.
        segment.closeFile()
        let isUsed = log.withLock { appender in
          // In the meantime, `removeAll` may have taken the place away.
          guard appender.reserved.first == place else { return false }
          appender.reserved.removeFirst()
          appender.prepared = segment
          return true
        }
        // The removal removes the file.
        if !isUsed { log.files.table.remove(segment) }
      }
    }
  }

  /// Creates the file of a segment at a place that the manifest lists. The caller holds
  /// `preparation`.
  private func createSegment(at place: Manifest.OpenSegment) throws(StoreError) -> Segment {
    do throws(StoreError) {
      // If the directory is no longer this store's, the file would belong to another store.
      if session.lookForPlace() { throw .vanished(path: session.path) }
      // Remove the file left by a failed creation.
      try session.directory.unlink(FileName.segment(place.id))
      // Larger records are written outside the log.
      let capacity = min(
        session.configuration.segmentByteLimit,
        max(log.updateSegmentSize(), SegmentSize.aside + 1 << 20))
      let (next, allocation) = log.withLock { ($0.nextSequence, $0.nextAllocation) }
      // A sync of the directory may have begun before the file had its name.
      defer { log.commits.noteName() }
      // A nearly full disk may have room for less. 4 KiB are enough for the first tombstones, which
      // make room for more.
      let little = [SegmentHeader.byteCount + Segment.slack, 4096]
      var sizes = log.reserve.isLent ? little : [allocation, Appender.firstAllocation] + little
      while true {
        do throws(StoreError) {
          return try log.files.create(
            id: place.id, salt: place.salt, baseSequence: next,
            baseTime: SegmentHeader.baseTime(for: session.clock.steadyTime),
            capacity: capacity, allocating: min(sizes.removeFirst(), capacity), durably: false,
            by: log.reserve.createFile)
        } catch {
          guard case .noSpace = error, !sizes.isEmpty else { throw error }
        }
      }
    } catch {
      if session.lookForPlace() { throw .vanished(path: session.path) }
      throw error
    }
  }

  // MARK: Sealing

  /// Waits until the segments rolled so far are durable, then lists them as sealed.
  ///
  /// With slow syncs and fast writers, there is always a later segment. It is left to the next
  /// call, so that compaction gets its turn.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  func sealRolledSegments() throws(StoreError) -> Bool {
    let next = log.lastSequence + 1
    var hasSealed = false
    while true {
      let rolled = log.withLock { $0.sealable { $0.header.baseSequence <= next } }
      if rolled.isEmpty { return hasSealed }
      hasSealed = true
      // During this wait, `removeAll` may take segments away, and then no sync reaches them.
      try log.waitForSync(of: .rolledSegments) { _ in
        rolled.allSatisfy { $0.syncedByteCount >= $0.usage.end || $0.isRetired }
      }
      try catalog.change { (state) throws(StoreError) in
        // In the meantime, another thread may have sealed some.
        if log.withLock({ $0.rolled.starts(with: rolled, by: ===) }) {
          try replaceManifest(&state) { _ in }
        }
      }
    }
  }

  /// Replaces the manifest with a changed one, which also lists as sealed what is rolled and
  /// durable, and makes up for places that the session has used.
  func replaceManifest(
    _ state: inout Catalog.State, _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    // DURABILITY: names and bytes are on disk, so a bad record in a segment listed as sealed is
    // damage and never a torn write.
    let (sealing, missing) = log.withLock {
      (
        $0.sealable { $0.syncedByteCount >= $0.usage.end },
        $0.hasSession ? Manifest.reservedSegmentCount - $0.reserved.count : 0
      )
    }
    let ids = Set(sealing.map(\.id))
    try catalog.replace(&state, reserving: missing) { manifest in
      manifest.openSegments.removeAll { ids.contains($0.id) }
      manifest.sealedSegments += sealing.map(\.sealedEntry)
      change(&manifest)
    }
    log.withLock { appender in
      appender.rolled.removeFirst(sealing.count)
      appender.sealed += sealing
    }
    for segment in sealing {
      // Guard against stray writes and free unused space; neither is necessary. Do so under the
      // catalog's lock, because nothing may change once the store is closed.
      try? segment.mapping?.makeReadOnly()
      try? segment.trim(to: segment.usage.end)
      segment.closeFile()
      checkpoints.noteSealed(segment)
    }
  }

  /// Waits until no thread is making a segment.
  func waitForPreparation() { preparation.withLock { _ in } }

  /// Rolls the active segment if it contains dead records, so that it can be sealed.
  func leaveActiveSegment(
    where hasDead: (SegmentUsage) -> Bool
  ) throws(StoreError) {
    let sealed = catalog.sealedIDs
    let isNeeded = log.withLock { appender in
      appender.segments.contains { !sealed.contains($0.id) && hasDead($0.usage) }
    }
    guard isNeeded else { return }
    // Begin a session if none has begun. This also seals a full segment that a close left open.
    try beginSessionIfNeeded(isRemoval: true)
    var hasLeft = false
    while !hasLeft {
      try prepareNextSegment()
      hasLeft = try log.withLock { (appender) throws(StoreError) in
        try appender.checkWritable(path: session.path)
        guard let active = appender.active, hasDead(active.usage) else { return true }
        // A writer may have taken the prepared segment in the meantime.
        guard let next = appender.prepared else { return false }
        try appender.roll(to: next)
        appender.prepared = nil
        // The log has grown by what was allocated ahead. The next write ensures the reserve for it.
        log.reserve.markShort()
        return true
      }
    }
  }
}
