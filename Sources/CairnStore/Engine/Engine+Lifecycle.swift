extension Engine {
  /// Opens or creates a store.
  package convenience init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    let configuration = configuration.resolved
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

  /// Makes everything durable, marks the store clean and releases the lock. A second call does
  /// nothing.
  ///
  /// Even if this throws, the store is closed, and the next open recovers it.
  ///
  /// - Returns: whether this call closed the store. If not, another call may still be closing it.
  @discardableResult
  package func close() throws(StoreError) -> Bool {
    try session.checkProcess()
    guard session.markClosed() else { return false }
    defer { Reclamation.reclaimIfDue() }
    defer {
      // The next opener must see remaining readers, for example of a snapshot. Otherwise it would
      // truncate their files.
      log.files.endSession()
      // A sync that has nothing left to do may still be running.
      log.commits.waitForEnd()
      // The next session may reuse the names of files that a snapshot reads.
      for segment in log.segments {
        segment.closeFile()
        if segment.isInSnapshot { try? segment.keepFileUnlessMapped() }
      }
      // After this wait, no checkpoint is being written.
      checkpointer.waitUntilIdle()
      // Under this lock, the manifest is not being replaced.
      catalog.withLock { _ in session.storeLock.giveUp() }
    }
    if session.isReadOnly { return true }
    // From here on, nothing is appended.
    let (failure, last) = log.withLock { appender in
      appender.isClosed = true
      return (appender.failure, appender.nextSequence - 1)
    }
    // After this, no thread is preparing the next segment, and none will start to.
    writer.supply.waitForPreparation()
    if let failure { throw .poisoned(cause: failure) }
    try log.waitForSync { $0 >= last }
    // A segment is not sealed while a batch in it is being published.
    log.waitUntil { $0.unpublished == nil ? () : nil }
    try writer.supply.sealRolledSegments()
    try catalog.removeLeftFiles()
    var message: String?
    defer { if let message { session.log(.warning, .maintenance, message) } }
    // A compaction that is still copying stops by itself, because the store is closed. One that has
    // already switched segments updates the index first.
    try checkpointer.keepingOut { () throws(StoreError) in
      message = try markClean(try checkpointer.writeClosingCheckpoint())
    }
    return true
  }

  /// Closes a store that no caller closed. No caller can receive an error, so errors go to the
  /// diagnostic log.
  package func closeAtEnd() {
    do throws(StoreError) { try close() } catch {
      switch error {
      // The error has already been logged.
      case .poisoned, .vanished: break
      // The parent process closes the store.
      case .usedAfterFork: break
      default: session.log(.error, .writing, "closing: \(error)")
      }
    }
  }

  /// Writes the manifest of a closed store, in which everything is durable.
  ///
  /// - Returns: a message to log.
  private func markClean(_ written: WrittenCheckpoint?) throws(StoreError) -> String? {
    var isListed = false
    defer { if let written, !isListed { catalog.discard(written.basis) } }
    return try catalog.change { (state) throws(StoreError) -> String? in
      let (active, prepared, failure) = log.withLock { ($0.active, $0.prepared, $0.failure) }
      // After a failure in the meantime, nothing was sealed, and this manifest would omit the
      // rolled segments.
      if let failure { throw .poisoned(cause: failure) }
      // Remove the files of a compaction that will not finish. Their ids stay pending: if a crash
      // undoes this, the next open removes the files again.
      for id in state.manifest.pendingIDs where id != written?.basis.id {
        try? session.directory.unlink(FileName.segment(SegmentID(rawValue: id)))
      }
      let written = written?.basis.floor == state.manifest.floorSequence ? written : nil
      if active == nil, written == nil, state.manifest.isClean { return nil }
      let oldCheckpoint = written == nil ? 0 : state.manifest.checkpointID
      // DURABILITY: the manifest lists the header as durable, so sync it even if the session's only
      // write failed.
      if let active, active.syncedByteCount < active.usage.end {
        try active.openFile()
        try active.synchronizeData()
        active.didSync(through: active.usage.end)
      }
      // DURABILITY: if a segment has no record, its name may not be on disk.
      if log.commits.hasUnsyncedNames { state.isSettled = false }
      // DURABILITY: all records were synced above. A crash before the switch leaves an unclean
      // store, which the next open scans.
      try catalog.replace(&state) { manifest in
        if let active {
          manifest.openSegments = [
            Manifest.OpenSegment(
              id: active.id, salt: active.header.salt, byteCount: active.usage.end)
          ]
        } else if !manifest.isClean {
          // A session has begun, but its first segment could not be created.
          manifest.openSegments = []
        }
        if let prepared { manifest.retiredIDs.append(prepared.id.rawValue) }
        if let written { catalog.list(written, in: &manifest) }
        manifest.isClean = true
      }
      isListed = written != nil
      catalog.unlinkCheckpoint(oldCheckpoint, in: &state)
      let message = prepared.flatMap { catalog.unlink($0.id, in: &state) }
      // Keep some preallocated space: with it, the next session can remove entries on a full disk.
      if let active, active.allocatedByteCount > active.usage.end + Segment.slack {
        try? active.trim(to: active.usage.end + Segment.slack)
      }
      return message
    }
  }
}

extension StoreError {
  /// Returns the error. Adds the advice to open for reading if the store may not be written to, but
  /// its LOCK file can be opened for reading.
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
