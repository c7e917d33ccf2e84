extension Engine {
  // MARK: Room for records

  /// Runs `body` under the appender's lock with room for `byteCount` bytes of records.
  ///
  /// - Parameters:
  ///   - mayCompact: whether to compact where there is none.
  @inline(__always)
  func withRoom<Value>(
    byteCount: Int, isRemoval: Bool, mayCompact: Bool = true,
    _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var bodyFailure: StoreError?
    var failureCount = 0
    while true {
      try checkPlace()
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
        startTiming()
        return value
      }
      do throws(StoreError) {
        switch room {
        case .ready: preconditionFailure("with room there is a value")
        case .needsSession: try beginSession()
        case .needsNext: try prepareNextSegment()
        case .needsOwnSegment:
          // It will be full at once; what follows it must be there, also for a removal.
          try prepareNextSegment()
          let value = try inOwnSegment(byteCount: byteCount, isRemoval: isRemoval) {
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
  /// clean, and there is an active segment. Waits for no sync if the next manifest was made ready.
  func beginSession() throws(StoreError) {
    try preparation.withLock { (_) throws(StoreError) in
      try changingManifest { (state) throws(StoreError) in
        let isBegun = try appender.withLock { (appender) throws(StoreError) in
          try appender.checkWritable(path: path)
          return appender.active != nil
        }
        if isBegun { return }
        try state.resumable?.openFile()
        if state.manifest.isClean { try continueManifest(&state) }
        guard let segment = state.resumable else { return try createFirstSegment() }
        state.resumable = nil
        // What the close left for removals is counted in, or a write that finds no room would
        // give it up.
        try? segment.allocate(to: min(segment.capacity, segment.usage.end + Segment.slack))
        appender.withLock { appender in
          appender.sealed.removeAll { $0 === segment }
          appender.start(in: segment, at: segment.usage.end)
        }
      }
    }
  }

  /// Replaces a clean manifest by one that lists what will be appended to.
  private func continueManifest(_ state: inout ManifestState) throws(StoreError) {
    let resumable = state.resumable
    let continued = state.manifest.openSegments.count
    if let next = state.next, continued == (resumable == nil ? 0 : 1),
      next.generation == state.manifest.generation &+ 1
    {
      do { try ManifestFile(directory: directory).installNext() } catch {
        state.failure = error.asFailure
        throw StoreError.poisoned(cause: error.asFailure)
      }
      // A sync of the directory may have begun before the exchange.
      commits.noteName()
      state.isSettled = false
      state.manifest.isClean = false
      state.manifest.generation = next.generation
      state.manifest.openSegments = next.openSegments
    } else {
      let known = appender.withLock { $0.sealed }
      let salts = try directory.randomNumbers(count: Manifest.reservedSegmentCount)
      try replaceManifest(&state) { manifest in
        manifest.isClean = false
        if resumable == nil {
          // What a clean close left open and full is complete, and has been synced.
          let full = Set(manifest.openSegments.map(\.id))
          manifest.sealedSegments += known.filter { full.contains($0.id) }.map(\.sealedEntry)
          manifest.openSegments = []
        }
        manifest.reserve(salts: salts)
      }
    }
    state.next = nil
    let reserved = Array(state.manifest.openSegments.dropFirst(resumable == nil ? 0 : 1))
    appender.withLock { $0.reserved = reserved }
    if removesWithoutSync { wakeHousekeeping() }
  }

  private func createFirstSegment() throws(StoreError) {
    let place = appender.withLock { $0.reserved.first }
    guard let place else { preconditionFailure("a session begins with reserved places") }
    let segment = try createSegment(at: place)
    appender.withLock { appender in
      appender.reserved.removeFirst()
      appender.start(in: segment, at: SegmentHeader.byteCount)
    }
  }

  /// Makes the segment that follows the active one, unless it is there. Waits for no sync, unless all
  /// reserved places have been taken.
  func prepareNextSegment() throws(StoreError) {
    try preparation.withLock { (_) throws(StoreError) in
      while true {
        let (isNeeded, place) = appender.withLock {
          (
            $0.active != nil && $0.prepared == nil && !$0.isClosed && $0.failure == nil,
            $0.reserved.first
          )
        }
        if !isNeeded { return }
        guard let place else {
          // Segments that were left hold descriptors, and space that no compaction gives back, until they are sealed.
          try sealRolledSegments()
          try changingManifest { (state) throws(StoreError) in
            let missing = Manifest.reservedSegmentCount - appender.withLock { $0.reserved.count }
            if missing > 0 { try replaceManifest(&state, reserving: missing) { _ in } }
          }
          continue
        }
        let segment = try createSegment(at: place)
        // Nothing is written into it for a while.
        segment.closeFile()
        appender.withLock { appender in
          appender.reserved.removeFirst()
          appender.prepared = segment
        }
      }
    }
  }

  /// Makes the file of a segment in a place that the manifest lists. Under the lock of preparation.
  private func createSegment(at place: Manifest.OpenSegment) throws(StoreError) -> Segment {
    do throws(StoreError) {
      // Another store's, if the directory is no longer this one's.
      if lookForPlace() { throw .vanished(path: path) }
      // What a creation left that failed.
      try directory.unlink(FileName.segment(place.id))
      let next = appender.withLock { $0.nextSequence }
      // A sync of the directory may have begun before the file had its name.
      defer { commits.noteName() }
      return try createSegment(allocating: Appender.firstAllocation) {
        (byteCount) throws(StoreError) in
        try files.create(
          id: place.id, salt: place.salt, baseSequence: next,
          baseTime: SegmentHeader.baseTime(for: clock.now()),
          capacity: configuration.segmentByteLimit,
          allocating: min(byteCount, configuration.segmentByteLimit), durably: false)
      }
    } catch {
      if lookForPlace() { throw .vanished(path: path) }
      throw error
    }
  }

  /// On a disk that is nearly full a segment begins smaller.
  private func createSegment(
    allocating byteCount: Int, _ create: (Int) throws(StoreError) -> Segment
  ) throws(StoreError) -> Segment {
    let least = SegmentHeader.byteCount + Segment.slack
    let first = reserve.isLent && byteCount == Appender.firstAllocation ? least : byteCount
    do throws(StoreError) { return try create(first) } catch {
      guard case .noSpace = error, first == Appender.firstAllocation else { throw error }
      return try create(least)
    }
  }

  /// Runs `body` with a new active segment that has just the room it needs; `nil` where the
  /// session ended meanwhile, by a removal of all.
  private func inOwnSegment<Value>(
    byteCount: Int, isRemoval: Bool, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    defer { wakeHousekeeping() }
    return try changingManifest { (state) throws(StoreError) -> Value? in
      // The appender is held through the change of the manifest, so that nothing else goes into
      // the segment. Beside the size of such a value the wait is short.
      try appender.withLock { (appender) throws(StoreError) -> Value? in
        try appender.checkWritable(path: path)
        guard let active = appender.active else { return nil }
        if !isRemoval { try appender.ensure(reserve, adding: byteCount) }
        try appender.makeRoomForRoll()
        let need = SegmentHeader.byteCount + byteCount + RecordHeader.rollByteCount
        let capacity = (need + 4095) & ~4095
        let last = appender.nextSequence - 1
        let segment: Segment
        do throws(StoreError) {
          segment = try createOwnSegment(
            &state, capacity: capacity, after: active.id, nextSequence: last + 1)
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

  /// Makes a segment of its own for a large record, and lists it in the manifest behind the active one.
  /// Where it throws, there is no segment.
  private func createOwnSegment(
    _ state: inout ManifestState, capacity: Int, after active: SegmentID,
    nextSequence next: SequenceNumber
  ) throws(StoreError) -> Segment {
    let id = SegmentID(rawValue: state.manifest.nextID)
    let salt = try directory.randomNumbers(count: 1)[0]
    // A manifest that lists it must not be written before the file and its header are durable.
    // An id that was used for a file that did not come to be listed is used again.
    try directory.unlink(FileName.segment(id))
    let segment = try files.create(
      id: id, salt: salt, baseSequence: next,
      baseTime: SegmentHeader.baseTime(for: clock.now()), capacity: capacity,
      allocating: capacity, durably: true)
    do throws(StoreError) {
      // DURABILITY: the file's name is on disk before a manifest that needs it.
      do { try directory.synchronize() } catch {
        state.failure = error.asFailure
        throw StoreError.poisoned(cause: error.asFailure)
      }
      try replaceManifest(&state, lastSequence: next - 1) { manifest in
        manifest.nextID += 1
        let place = manifest.openSegments.firstIndex { $0.id == active } ?? 0
        manifest.openSegments.insert(
          Manifest.OpenSegment(id: id, salt: salt, byteCount: 0), at: place + 1)
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

  /// Lists the segments that were left as sealed, once they are durable.
  func sealRolledSegments() throws(StoreError) {
    while true {
      let rolled = appender.withLock { appender -> [Segment] in
        if appender.failure != nil { return [] }
        // A compaction would take what the index does not name yet for dead.
        return Array(appender.rolled.prefix { $0 !== appender.unpublished?.segment })
      }
      if rolled.isEmpty { return }
      // A removal of all may take segments away while this waits; then no sync reaches them.
      try waitForSync(of: .rolledSegments) { _ in
        rolled.allSatisfy { $0.syncedByteCount >= $0.usage.end || $0.isRetired }
      }
      try changingManifest { (state) throws(StoreError) in
        // A removal of all may have taken them meanwhile.
        let (isThere, missing) = appender.withLock { appender in
          (
            appender.rolled.starts(with: rolled, by: ===),
            Manifest.reservedSegmentCount - appender.reserved.count
          )
        }
        guard isThere else { return }
        let ids = Set(rolled.map(\.id))
        // DURABILITY: names and bytes are on disk, so that a damaged record in a segment that is
        // listed as sealed is damage and never a torn write.
        try replaceManifest(&state, reserving: missing) { manifest in
          manifest.openSegments.removeAll { ids.contains($0.id) }
          manifest.sealedSegments += rolled.map(\.sealedEntry)
        }
        appender.withLock { appender in
          appender.rolled.removeFirst(rolled.count)
          appender.sealed += rolled
        }
        // Guards against stray writes and gives unused space back; neither is needed. Under the
        // manifest's lock still, since nothing may be changed once the store was closed.
        for segment in rolled {
          try? segment.mapping?.makeReadOnly()
          try? segment.trim(to: segment.usage.end)
          segment.closeFile()
        }
      }
      for segment in rolled { noteSealed(segment) }
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
        if lookForPlace() { throw .vanished(path: path) }
        let value = try body(&state)
        makeNextReady(&state)
        return value
      }
    } catch {
      // It may have gone meanwhile.
      if case .closed = error {} else if lookForPlace() { throw .vanished(path: path) }
      if case .poisoned(let cause) = error { poison(cause) }
      throw error
    }
  }

  /// Runs `body` under the manifest's lock while no segment is made.
  func changingLog<Value>(
    _ body: (inout ManifestState) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try preparation.withLock { (_) throws(StoreError) in try changingManifest(body) }
  }

  /// Makes the manifest ready that the next session begins with, unless it is.
  private func makeNextReady(_ state: inout ManifestState) {
    guard state.manifest.isClean, state.failure == nil, !isReadOnly,
      state.next?.generation != state.manifest.generation &+ 1
    else { return }
    // A session that finds none waits for a sync.
    state.next = try? ManifestFile(directory: directory).makeReady(
      after: &state.manifest, in: bootIdentifier, at: clock.now())
  }

  /// Replaces the manifest by one that also reserves so many more places for segments.
  private func replaceManifest(
    _ state: inout ManifestState, reserving count: Int, _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    let salts = try directory.randomNumbers(count: max(0, count))
    try replaceManifest(&state) { manifest in
      change(&manifest)
      manifest.reserve(salts: salts)
    }
    let reserved = Array(state.manifest.openSegments.suffix(salts.count))
    appender.withLock { $0.reserved += reserved }
  }

  /// Replaces the manifest by a changed one.
  ///
  /// - Throws: `poisoned` where it is not known which of the two is on disk: the caller must not
  ///   go on. Any other error has changed nothing.
  func replaceManifest(
    _ state: inout ManifestState, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) {
    let next = try successor(&state, lastSequence: lastSequence, change)
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

  /// The manifest that follows, changed. What it no longer lists is gone for good.
  func successor(
    _ state: inout ManifestState, lastSequence: SequenceNumber? = nil,
    _ change: (inout Manifest) -> Void
  ) throws(StoreError) -> Manifest {
    if let failure = state.failure { throw .poisoned(cause: failure) }
    var next = state.manifest
    if !state.unlinkedIDs.isEmpty || !state.isSettled {
      // DURABILITY: a file whose id the manifest no longer holds must be gone for good, or the
      // next open would find a file that nothing explains. The exchange that began the session
      // is on disk before another one follows.
      do { try directory.synchronize() } catch {
        state.failure = error.asFailure
        throw .poisoned(cause: error.asFailure)
      }
      state.isSettled = true
      next.retiredIDs.removeAll { state.unlinkedIDs.contains($0) }
    }
    change(&next)
    next.generation &+= 1
    next.lastSequence = lastSequence ?? appender.withLock { $0.nextSequence - 1 }
    next.lastTime = clock.now()
    next.bootIdentifier = bootIdentifier
    return next
  }
}
