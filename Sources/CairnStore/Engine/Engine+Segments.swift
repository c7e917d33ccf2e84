internal import Synchronization

extension Engine {
  // MARK: Room for records

  /// Runs `body` under the appender's lock with room for `byteCount` bytes of records.
  ///
  /// - Parameters:
  ///   - isPart: whether it is part of a trim, an eviction or a compaction: the session's first round
  ///     comes after it, since who asks for one is told what it did.
  ///   - mayCompact: whether to compact where there is none.
  @inline(__always)
  func withRoom<Value>(
    byteCount: Int, isRemoval: Bool, isPart: Bool = false, mayCompact: Bool = true,
    _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var bodyFailure: StoreError?
    var failureCount = 0
    while true {
      var room = Appender.Room.ready
      var chores: Appender.Chores?
      let value = try appender.withLock { (appender) throws(StoreError) -> Value? in
        try appender.checkWritable(path: path)
        do throws(StoreError) {
          room = try appender.makeRoom(
            byteCount: byteCount, isRemoval: isRemoval,
            segmentByteLimit: configuration.segmentByteLimit, reserve: reserve)
        } catch { room = .none(error) }
        guard case .ready = room else { return nil }
        let value = try body(&appender)
        chores = appender.takeChores(prefaulting: prefaults)
        return value
      }
      if let value {
        if let chores { run(chores) }
        // Where a trim that began the session has failed.
        if !isPart, backgroundFlags.firstRoundDue.load(ordering: .relaxed) { requestFirstRound() }
        return value
      }
      do throws(StoreError) {
        switch room {
        case .ready: preconditionFailure("with room there is a value")
        case .needsSession:
          try beginSession()
          if !isPart { requestFirstRound() }
        case .needsNext: try prepareNextSegment()
        case .needsOwnSegment:
          // It will be full at once; what follows it must be there, also for a removal.
          try prepareNextSegment()
          let value = try inOwnSegment(byteCount: byteCount) {
            (appender: inout Appender) throws(StoreError) -> Value in
            do throws(StoreError) { return try body(&appender) } catch {
              bodyFailure = error
              throw error
            }
          }
          if let value { return value }
        case .none(let error): throw error
        }
      } catch {
        guard case .noSpace(_, _, let limit) = error, limit != .fileSize, mayCompact,
          bodyFailure == nil, try findRoom(isRemoval: isRemoval, failureCount: failureCount)
        else { throw error }
        failureCount += 1
      }
    }
  }

  /// Makes the first write after an open possible: the manifest no longer says that the store is
  /// clean, and there is an active segment.
  private func beginSession() throws(StoreError) {
    try changingManifest { (state) throws(StoreError) in
      let isBegun = try appender.withLock { (appender) throws(StoreError) in
        try appender.checkWritable(path: path)
        return appender.active != nil
      }
      if isBegun { return }
      defer { backgroundFlags.firstRoundDue.store(true, ordering: .relaxed) }
      if let segment = state.resumable {
        if !planted(.appendBeforeUnclean) { try replaceManifest(&state) { $0.isClean = false } }
        state.resumable = nil
        // What the close left for removals is counted in, or a write that finds no room would
        // give it up.
        try? segment.allocate(to: min(segment.capacity, segment.usage.end + Appender.slack))
        appender.withLock { appender in
          appender.sealed.removeAll { $0 === segment }
          appender.start(in: segment, at: segment.usage.end)
        }
        return
      }
      let known = appender.withLock { $0.sealed }
      let segment = try createSegment(
        &state, capacity: configuration.segmentByteLimit, allocating: Appender.firstAllocation
      ) { manifest, entry in
        // What a clean close left open and full is complete, and has been synced.
        let full = Set(manifest.openSegments.map(\.id))
        manifest.sealedSegments += known.filter { full.contains($0.id) }.map(\.sealedEntry)
        manifest.openSegments = [entry]
      }
      appender.withLock { $0.start(in: segment, at: SegmentHeader.byteCount) }
    }
  }

  /// Makes the segment that follows the active one, unless it is there.
  func prepareNextSegment() throws(StoreError) {
    try changingManifest { (state) throws(StoreError) in
      let isNeeded = appender.withLock {
        $0.active != nil && $0.prepared == nil && !$0.isClosed && $0.failure == nil
      }
      guard isNeeded else { return }
      let segment = try createSegment(
        &state, capacity: configuration.segmentByteLimit, allocating: Appender.firstAllocation
      ) { manifest, entry in
        manifest.openSegments.append(entry)
      }
      appender.withLock { $0.prepared = segment }
    }
    requestSealing()
  }

  /// Runs `body` with a new active segment that has just the room it needs; `nil` where the
  /// session ended meanwhile, by a removal of all.
  private func inOwnSegment<Value>(
    byteCount: Int, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    defer { requestSealing() }
    return try changingManifest { (state) throws(StoreError) -> Value? in
      // The appender is held through the change of the manifest, so that nothing else goes into
      // the segment. Beside the size of such a value the wait is short.
      try appender.withLock { (appender) throws(StoreError) -> Value? in
        try appender.checkWritable(path: path)
        if appender.active == nil { return nil }
        try appender.ensure(reserve, adding: byteCount)
        try appender.makeRoomForRoll()
        let need = SegmentHeader.byteCount + byteCount + RecordHeader.rollByteCount
        let capacity = (need + 4095) & ~4095
        let last = appender.nextSequence - 1
        let hasNext = appender.prepared != nil
        let segment: Segment
        do throws(StoreError) {
          segment = try createSegment(
            &state, capacity: capacity, allocating: capacity, nextSequence: last + 1
          ) { manifest, entry in
            // In the order of the log it comes before the one that is ready.
            let position = manifest.openSegments.count - (hasNext ? 1 : 0)
            manifest.openSegments.insert(entry, at: position)
          }
        } catch {
          appender.note(error)
          throw error
        }
        do throws(StoreError) { try appender.roll(to: segment) } catch {
          // The manifest lists a segment that the log does not go on in.
          appender.failure = error.asFailure
          throw StoreError.poisoned(cause: error.asFailure)
        }
        return try body(&appender)
      }
    }
  }

  /// Makes a segment and lists it in the manifest. Where it throws, there is no segment.
  private func createSegment(
    _ state: inout ManifestState, capacity: Int, allocating byteCount: Int,
    nextSequence: SequenceNumber? = nil,
    listing: (inout Manifest, Manifest.OpenSegment) -> Void
  ) throws(StoreError) -> Segment {
    let next = nextSequence ?? appender.withLock { $0.nextSequence }
    let id = SegmentID(rawValue: state.manifest.nextID)
    let salt: UInt64
    do {
      let random = try directory.fileSystem.randomBytes(count: 8)
      salt = random.withSpan { $0.load(UInt64.self, at: 0) }
    } catch {
      throw error.storeError(path: path)
    }
    // A manifest that lists it must not be written before the file and its header are durable.
    // An id that was used for a file that did not come to be listed is used again.
    try directory.unlink(FileName.segment(id))
    func create(allocating byteCount: Int) throws(StoreError) -> Segment {
      try files.create(
        id: id, salt: salt, baseSequence: next,
        baseTime: SegmentHeader.baseTime(for: clock.now()), capacity: capacity,
        allocating: min(byteCount, capacity))
    }
    let segment: Segment
    // On a disk that is nearly full it begins smaller.
    let least = SegmentHeader.byteCount + Appender.slack
    let first = reserve.isLent && byteCount == Appender.firstAllocation ? least : byteCount
    do throws(StoreError) { segment = try create(allocating: first) } catch {
      guard case .noSpace = error, first == Appender.firstAllocation else { throw error }
      segment = try create(allocating: least)
    }
    do throws(StoreError) {
      // DURABILITY: the file's name is on disk before a manifest that needs it.
      do {
        if !planted(.noSegmentNameSync) { try directory.synchronize() }
      } catch {
        state.failure = error.asFailure
        throw StoreError.poisoned(cause: error.asFailure)
      }
      try replaceManifest(&state, lastSequence: next - 1) { manifest in
        manifest.nextID += 1
        manifest.isClean = false
        listing(&manifest, Manifest.OpenSegment(id: id, salt: salt, byteCount: 0))
      }
    } catch {
      table.remove(segment)
      // Where it is not known which manifest is on disk, it may be one that lists the file.
      if case .poisoned = error {} else { try? directory.unlink(segment.name) }
      throw error
    }
    return segment
  }

  // MARK: Sealing

  /// Lists the segments that were left as sealed, once they are durable. Runs in the background;
  /// nobody waits for it.
  func sealRolledSegments() throws(StoreError) {
    while true {
      let first = appender.withLock { $0.failure == nil ? $0.rolled.first : nil }
      guard let segment = first else { return }
      let end = segment.usage.end
      // A removal of all may take the segment away while this waits; then no sync reaches it.
      if !planted(.noSyncBeforeSealing) {
        try waitForSync(of: .rolledSegments) { _ in
          segment.syncedByteCount >= end || segment.isRetired
        }
      }
      try changingManifest { (state) throws(StoreError) in
        // A removal of all may have taken it meanwhile.
        let isThere = appender.withLock { $0.rolled.first === segment }
        guard isThere || planted(.sealsWhatWasRemoved) else { return }
        // DURABILITY: its bytes are on disk, so that a damaged record in a segment that is listed
        // as sealed is damage and never a torn write.
        try replaceManifest(&state) { manifest in
          manifest.openSegments.removeAll { $0.id == segment.id }
          manifest.sealedSegments.append(segment.sealedEntry)
        }
        appender.withLock { appender in
          appender.rolled.removeAll { $0 === segment }
          appender.sealed.append(segment)
        }
        // Guards against stray writes and gives unused space back; neither is needed. Under the
        // manifest's lock still, since nothing may be changed once the store was closed.
        try? segment.mapping?.makeReadOnly()
        try? segment.trim(to: end)
      }
      noteSealed(segment)
    }
  }

  // MARK: The manifest

  /// Runs `body` under the manifest's lock. A failure that leaves it open what is on disk poisons
  /// the store.
  func changingManifest<Value>(
    _ body: (inout ManifestState) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do {
      return try manifest.withLock { (state) throws(StoreError) -> Value in
        // Whoever has given the store's lock up must not write to it.
        if state.lockFile == nil { throw .closed(path: path) }
        return try body(&state)
      }
    } catch {
      if case .poisoned(let cause) = error { poison(cause) }
      throw error
    }
  }

  /// Replaces the manifest by a changed one.
  ///
  /// - Throws: `poisoned` where it is not known which of the two is on disk: the caller must not
  ///   go on. Any other error has changed nothing.
  func replaceManifest(
    _ state: inout ManifestState, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    var next = state.manifest
    if !state.unlinkedIDs.isEmpty {
      // DURABILITY: a file whose id the manifest no longer holds must be gone for good, or the
      // next open would find a file that nothing explains.
      do { try directory.synchronize() } catch {
        state.failure = error.asFailure
        throw .poisoned(cause: error.asFailure)
      }
      next.retiredIDs.removeAll { state.unlinkedIDs.contains($0) }
    }
    change(&next)
    next.generation &+= 1
    next.lastSequence = lastSequence ?? appender.withLock { $0.nextSequence - 1 }
    if !planted(.lastTimeForgotten) { next.lastTime = clock.now() }
    next.bootIdentifier = bootIdentifier
    let file = ManifestFile(directory: directory)
    let prepared = try file.prepare(next)
    do throws(StoreError) { try file.write(prepared) } catch {
      // Without room, on a filesystem that does not really reserve it, nothing has changed.
      if case .noSpace = error { throw error }
      state.failure = error.asFailure
      throw .poisoned(cause: error.asFailure)
    }
    do { try file.install() } catch {
      state.failure = error.asFailure
      throw .poisoned(cause: error.asFailure)
    }
    state.manifest = next
    state.unlinkedIDs = []
    file.reserve(next)
  }
}
