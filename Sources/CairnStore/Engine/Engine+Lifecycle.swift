extension Engine {
  /// Opens a store, or makes one.
  package convenience init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    let parts: OpenedStore
    do throws(StoreError) {
      parts = try OpenedStore(
        path: path, configuration: configuration, environment: environment, readOnly: readOnly)
    } catch {
      let error = error.located(in: path)
      guard !readOnly else { throw error }
      throw error.advisingToRead(path: path, fileSystem: environment.fileSystem)
    }
    self.init(parts, configuration: configuration, environment: environment)
  }

  /// Removes everything at once, durably: one change of the manifest, whatever the number of keys.
  ///
  /// - Parameter progress: told after each file that went; under no lock.
  package func removeAll(
    progress: (RemoveAllProgress) -> Void
  ) throws(StoreError) {
    try checkWritable()
    let (segments, floor, count) = try changingManifest {
      (state) throws(StoreError) -> ([Segment], SequenceNumber, Int) in
      let checkpoint = state.manifest.checkpointID
      let (segments, floor, count) = try appender.withLock {
        (appender) throws(StoreError) -> ([Segment], SequenceNumber, Int) in
        try appender.checkWritable(path: path)
        let floor = appender.nextSequence - 1
        let segments = appender.segments + (appender.prepared.map { [$0] } ?? [])
        if segments.isEmpty { return ([], floor, 0) }
        if planted(.segmentsUnlinkedFirst) {
          for segment in segments { try directory.unlink(segment.name) }
        }
        // DURABILITY: before the switch everything is there, after it nothing is. Held under the
        // appender's lock, so that no write can be acknowledged between the floor and the switch.
        do throws(StoreError) {
          try replaceManifest(&state, lastSequence: floor) { manifest in
            manifest.floorSequence = floor
            manifest.retiredIDs += planted(.retiredForgotten) ? [] : segments.map(\.id.rawValue)
            manifest.openSegments = []
            manifest.sealedSegments = []
            if manifest.checkpointID != 0 { manifest.retiredIDs.append(manifest.checkpointID) }
            manifest.checkpointID = 0
            manifest.checkpointChecksum = 0
            // The next write makes a segment and says so in the manifest.
            manifest.isClean = true
          }
        } catch {
          appender.note(error)
          throw error
        }
        for segment in segments { segment.retire() }
        let count = index.count
        index.removeAll()
        appender.active = nil
        appender.prepared = nil
        appender.rolled = []
        appender.sealed = []
        return (segments, floor, count)
      }
      state.resumable = nil
      if state.manifest.checkpointID != checkpoint { unlinkCheckpoint(checkpoint, in: &state) }
      for segment in segments { table.remove(segment) }
      return (segments, floor, count)
    }
    // Also where there was nothing: who removed it may still be about to tell of it, and nobody who returns
    // from here may meet what others still take to be there.
    removalObserver?(.all(throughVersion: floor, count: count))
    if segments.isEmpty { return }
    // What was chosen to go is gone.
    eviction.withLock { $0 = EvictionList() }
    evictionStart.restart(for: limits)
    // Readers that hold a segment go on; its file goes at once. Where the store is closed meanwhile,
    // the next open removes the rest.
    for (count, segment) in segments.enumerated() {
      let message = manifest.withLock { $0.lockFile == nil ? nil : unlink(segment.id, in: &$0) }
      if let message { configuration.log?(message) }
      progress(RemoveAllProgress(fileCount: count + 1, totalFileCount: segments.count))
    }
  }

  /// Removes the file of a retired segment. Where that fails, the manifest goes on listing it, and
  /// the next open tries again.
  ///
  /// - Returns: what is to be logged once the manifest's lock is given up.
  func unlink(_ id: SegmentID, in state: inout ManifestState) -> String? {
    let name = FileName.segment(id)
    do {
      try directory.unlink(name)
      state.unlinkedIDs.insert(id.rawValue)
      return nil
    } catch {
      return "removing \(name): \(error)"
    }
  }

  /// Makes everything durable, marks the store clean and gives the lock up. A second call does
  /// nothing.
  ///
  /// Where it throws, the store is closed all the same; the next open recovers it.
  ///
  /// - Returns: whether this call closed it. One that did not may return while another is still at it.
  @discardableResult
  package func close() throws(StoreError) -> Bool {
    if processMark.isForeign { throw .usedAfterFork(path: path) }
    guard markClosed() else { return false }
    defer {
      handle.drop()
      // Who still reads, by a snapshot say, is seen by the next who opens the store and would cut the files
      // short.
      for segment in appender.withLock({ $0.segments }) {
        _ = try? segment.file.lock(exclusively: false)
      }
      manifest.withLock { state in
        // A forked child may hold the descriptor too: the lock is given up, not just closed.
        state.lockFile?.unlock()
        state.lockFile = nil
      }
    }
    if isReadOnly { return true }
    // From here on nothing is appended.
    let (failure, last) = appender.withLock { appender in
      appender.isClosed = true
      return (appender.failure, appender.nextSequence - 1)
    }
    if let failure { throw .poisoned(cause: failure) }
    if !planted(.noSyncAtClose) { try waitForSync { $0.durableSequence >= last } }
    try sealRolledSegments()
    var message: String?
    defer { if let message { configuration.log?(message) } }
    // A compaction that copies ends by itself, since the store is closed; one that has switched
    // brings the index up to date first.
    try switching.withLock { (_) throws(StoreError) in
      message = try markClean(try writeClosingCheckpoint())
    }
    return true
  }

  /// Writes the manifest of a store that is closed, in which all is durable.
  ///
  /// - Returns: what is to be logged.
  private func markClean(_ written: WrittenCheckpoint?) throws(StoreError) -> String? {
    var isListed = false
    defer { if let written, !isListed { discard(written.basis) } }
    return try changingManifest { (state) throws(StoreError) -> String? in
      let (active, prepared, failure) = appender.withLock { ($0.active, $0.prepared, $0.failure) }
      // After a failure that came meanwhile nothing was sealed, and what was left is not listed.
      if let failure { throw .poisoned(cause: failure) }
      // What a compaction has begun, which comes to no end any more. The ids stay pending, so that the
      // next open does the same where a crash undoes it.
      for id in state.manifest.pendingIDs where id != written?.basis.id {
        try? directory.unlink(FileName.segment(SegmentID(rawValue: id)))
      }
      let written = written?.basis.floor == state.manifest.floorSequence ? written : nil
      if active == nil, written == nil { return nil }
      let oldCheckpoint = written == nil ? 0 : state.manifest.checkpointID
      // DURABILITY: all records were synced above; a crash before the switch leaves an unclean
      // store that is scanned.
      try replaceManifest(&state) { manifest in
        if let active {
          manifest.openSegments = [
            Manifest.OpenSegment(
              id: active.id, salt: active.header.salt, byteCount: active.usage.end)
          ]
        }
        if let prepared { manifest.retiredIDs.append(prepared.id.rawValue) }
        if let written { list(written, in: &manifest) }
        manifest.isClean = true
      }
      isListed = written != nil
      unlinkCheckpoint(oldCheckpoint, in: &state)
      let message = prepared.flatMap { unlink($0.id, in: &state) }
      // What is left allocated lets the next session remove something on a full disk.
      if let active, active.allocatedByteCount > active.usage.end + Appender.slack {
        try? active.trim(to: active.usage.end + Appender.slack)
      }
      return message
    }
  }
}

extension StoreError {
  /// The same error, with the advice to read where it says that the store may not be written to, and the
  /// file LOCK of a store at the path can be opened for reading.
  fileprivate func advisingToRead(path: String, fileSystem: any FileSystem) -> StoreError {
    let refusals = [
      SystemError.accessDenied, SystemError.notPermitted, SystemError.readOnlyFileSystem,
    ]
    guard case .system(var failure) = self, refusals.contains(failure.errorNumber),
      let directory = try? Directory(path: path, fileSystem: fileSystem, readOnly: true),
      (try? directory.names().contains(FileName.manifest)) == true,
      (try? directory.openFile(FileName.lock, mode: .readOnly)) != nil
    else { return self }
    failure.advice = .openForReading
    return .system(failure)
  }
}
