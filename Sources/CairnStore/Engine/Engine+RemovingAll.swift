/// A file that a removal of all has left.
enum LeftFile {
  case segment(Segment)
  case checkpoint(UInt64)
}

/// Removing everything is one change of the manifest, whatever the number of keys.
///
/// In a store whose class promises no more than `.process` or `.interval`, nobody waits for a sync: a manifest
/// that removes all is made ready by housekeeping, as the next session's is by a close, and a removal
/// only exchanges two names. Until they are on disk a power loss may bring the old manifest back, so
/// the files that this one lists stay until the directory was synced.
extension Engine {
  /// Removes everything at once.
  ///
  /// - Parameter progress: told after each file that went; under no lock.
  package func removeAll(
    progress: (RemoveAllProgress) -> Void
  ) throws(StoreError) {
    try checkWritable()
    var (segments, last, count, isOnDisk) = try changingLog {
      (state) throws(StoreError) -> ([Segment], SequenceNumber, Int, Bool) in
      let checkpoint = state.manifest.checkpointID
      let (segments, last, count, isOnDisk) = try appender.withLock {
        (appender) throws(StoreError) -> ([Segment], SequenceNumber, Int, Bool) in
        try appender.checkWritable(path: path)
        let last = appender.nextSequence - 1
        let segments = appender.segments + (appender.prepared.map { [$0] } ?? [])
        if segments.isEmpty { return ([], last, 0, true) }
        let emptied = state.emptied.flatMap { last <= $0.floorSequence ? $0 : nil }
        // DURABILITY: before the switch everything is there, after it nothing is. Held under the
        // appender's lock, so that no write can be acknowledged between the floor and the switch.
        do throws(StoreError) {
          if let emptied {
            try install(emptied, &state, retiring: segments.map(\.id))
          } else {
            try replaceManifest(&state, lastSequence: last) {
              $0.removeAll(through: last, retiring: segments.map(\.id))
            }
          }
        } catch {
          appender.note(error)
          throw error
        }
        for segment in segments { segment.retire(isOnDisk: emptied == nil) }
        let count = index.count
        index.removeAll()
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
        unlinkCheckpoint(checkpoint, in: &state)
      } else if !isOnDisk {
        state.leftFiles += segments.map { .segment($0) } + [.checkpoint(checkpoint)]
      }
      for segment in segments { table.remove(segment) }
      return (segments, last, count, isOnDisk)
    }
    // Also where there was nothing: who removed it may still be about to tell of it, and nobody who returns
    // from here may meet what others still take to be there.
    removalObserver?(.all(throughVersion: last, count: count))
    if segments.isEmpty { return }
    // Whoever waits for a batch that was coming into the index.
    appender.wakeAll()
    // What was chosen to go is gone.
    eviction.withLock { $0 = EvictionList() }
    evictionStart.restart(for: limits)
    // Readers that hold a segment go on; its file goes at once, or with the next pass of housekeeping. One that
    // had to be kept open for them is closed before the next is. Where the store is closed meanwhile, the
    // next open removes the rest.
    let fileCount = segments.count
    segments.reverse()
    while let segment = segments.popLast() {
      if isOnDisk {
        let message = manifest.withLock {
          $0.lockFile == nil ? nil : unlink(consume segment, in: &$0)
        }
        if let message { configuration.log?(message) }
      }
      progress(
        RemoveAllProgress(fileCount: fileCount - segments.count, totalFileCount: fileCount))
    }
    if isOnDisk { return }
    wakeHousekeeping()
    if case .interval(let interval) = configuration.durability { requestSync(within: interval) }
  }

  // MARK: The manifest that removes all

  /// How many numbers its floor, and how many generations it, lies ahead.
  private static let numbersAhead: SequenceNumber = 1 << 24

  /// Whether removals of all need not be on disk when they return.
  var removesWithoutSync: Bool { configuration.durability != .durable }

  /// Makes the manifest ready that removes all, unless it is. It stays of use whatever the manifest lists
  /// later: ids that are given out from now on are beyond the next one that it knows.
  func prepareRemovalOfAll() throws(StoreError) {
    if !removesWithoutSync { return }
    try switching.withLock { (_) throws(StoreError) in
      let made = try changingManifest { (state) throws(StoreError) -> Manifest? in
        let (last, isOver) = appender.withLock {
          ($0.nextSequence - 1, $0.isClosed || $0.failure != nil)
        }
        // The places that the next session's manifest reserves have been given out too.
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
        emptied.lastTime = clock.now()
        emptied.bootIdentifier = bootIdentifier
        emptied.reserve(
          salts: try directory.randomNumbers(count: Manifest.reservedSegmentCount))
        state.manifest.nextID = emptied.nextID
        // DURABILITY: where a power loss undoes the removal, the next open removes their files.
        state.manifest.pendingIDs += emptied.openSegments.map(\.id.rawValue)
        return emptied
      }
      guard let made else { return }
      // A removal that finds none is synced.
      let isReady = (try? ManifestFile(directory: directory).makeReady(emptied: made)) != nil
      try changingManifest { (state) throws(StoreError) in
        state.emptied = made
        if !isReady { state.dropEmptied() }
      }
    }
  }

  /// Puts the manifest that removes all into place, without a sync.
  private func install(
    _ emptied: Manifest, _ state: inout ManifestState, retiring ids: [SegmentID]
  ) throws(StoreError) {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    do { try ManifestFile(directory: directory).installEmptied() } catch {
      state.failure = error.asFailure
      throw .poisoned(cause: error.asFailure)
    }
    // A sync of the directory may have begun before the exchange.
    commits.noteName()
    state.dropEmptied()
    state.next = nil
    state.isSettled = false
    state.manifest.removeAll(through: emptied.floorSequence, retiring: ids)
    state.manifest.isClean = false
    state.manifest.generation = emptied.generation
    state.manifest.openSegments = emptied.openSegments
  }

  // MARK: What is left

  /// Removes the files that removals of all have left.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  func removeLeftFiles() throws(StoreError) -> Bool {
    var (files, generation) = manifest.withLock { state in
      defer { state.leftFiles = [] }
      return (Array(state.leftFiles.reversed()), state.manifest.generation)
    }
    if files.isEmpty { return false }
    // DURABILITY: no file goes before the manifest that lists it is out of place for good. Under no lock: a
    // write does not wait for it.
    do { try directory.synchronize() } catch {
      poison(error.asFailure)
      throw .poisoned(cause: error.asFailure)
    }
    var messages: [String] = []
    manifest.withLock { state in
      if state.lockFile == nil || lookForPlace() { return }
      if state.manifest.generation == generation { state.isSettled = true }
      while let file = files.popLast() {
        switch consume file {
        case .segment(let segment):
          if let message = unlink(segment, in: &state) { messages.append(message) }
        case .checkpoint(let id): unlinkCheckpoint(id, in: &state)
        }
      }
    }
    // A write that waits for room may hold a lock here.
    for message in messages { tell(message) }
    return true
  }
}

extension Engine.ManifestState {
  /// Forgets the manifest that removes all: its places are free, or listed.
  mutating func dropEmptied() {
    guard let emptied else { return }
    let ids = Set(emptied.openSegments.map(\.id.rawValue))
    manifest.pendingIDs.removeAll { ids.contains($0) }
    self.emptied = nil
  }
}
