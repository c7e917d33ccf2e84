/// Removing files and unused ids.
extension Catalog {
  // MARK: Segments

  /// Removes the file of a segment that has left the log. If readers use system calls and the file
  /// cannot be kept open for them, it stays, and the next open removes it.
  ///
  /// - Returns: a message to log after the catalog's lock is released.
  func unlink(_ segment: consuming Segment, in state: inout State) -> String? {
    do throws(StoreError) { try segment.keepFileUnlessMapped() } catch {
      return "removing \(segment.name): \(error)"
    }
    return unlink(segment.id, in: &state)
  }

  /// Removes the file of a retired segment. If that fails, the manifest still lists the segment,
  /// and the next open tries again.
  ///
  /// - Returns: a message to log after the catalog's lock is released.
  func unlink(_ id: SegmentID, in state: inout State) -> String? {
    let name = FileName.segment(id)
    do {
      try session.directory.unlink(name)
      state.unlinkedIDs.insert(id.rawValue)
      return nil
    } catch {
      return "removing \(name): \(error)"
    }
  }

  /// Removes the file of an unused id.
  ///
  /// - Returns: a message to log after the catalog's lock is released.
  func discard(_ id: SegmentID, in state: inout State) -> String? {
    state.manifest.pendingIDs.removeAll { $0 == id.rawValue }
    // DURABILITY: until the name is durably gone, manifests list the id as one to remove.
    state.manifest.retiredIDs.append(id.rawValue)
    return unlink(id, in: &state)
  }

  /// Removes abandoned segments' files.
  func abandon(_ ids: [SegmentID]) {
    if ids.isEmpty { return }
    // If the store has been closed in the meantime, the close has removed the files.
    let messages = try? change { (state) throws(StoreError) in
      ids.compactMap { discard($0, in: &state) }
    }
    for message in messages ?? [] { session.tell(.warning, .maintenance, message) }
  }

  /// Creates a file for a future segment.
  ///
  /// Runs under the catalog's lock, and only while the store is open. A close removes the files of
  /// all pending ids, and no thread creates another afterwards.
  func createOutput(
    baseSequence: SequenceNumber, baseTime: Int64
  ) throws(StoreError) -> (SegmentHeader, File) {
    try change { (state) throws(StoreError) in
      try log.checkWritable()
      let salt: UInt64
      do throws(SystemError) {
        let random = try session.directory.fileSystem.randomBytes(count: 8)
        salt = random.rawSpan.load(UInt64.self, at: 0)
      } catch {
        throw error.storeError(path: session.path)
      }
      let id = SegmentID(rawValue: state.reserveID())
      let name = FileName.segment(id)
      let file: File
      do throws(StoreError) {
        // Remove an earlier file that no manifest ever listed.
        try session.directory.unlink(name)
        file = try log.reserve.createFile(name)
      } catch {
        _ = discard(id, in: &state)
        throw error
      }
      let header = SegmentHeader(
        storeIdentifier: log.files.storeIdentifier, id: id, salt: salt, baseSequence: baseSequence,
        baseTime: baseTime)
      return (header, file)
    }
  }

  // MARK: Checkpoints

  /// Removes an abandoned checkpoint's file.
  func discard(_ basis: CheckpointBasis) {
    _ = whileUsable { state in
      // If this fails, the id stays pending, and the next open removes the file.
      guard state.failure == nil,
        (try? session.directory.unlink(FileName.checkpoint(basis.id))) != nil
      else { return }
      state.manifest.pendingIDs.removeAll { $0 == basis.id }
      // DURABILITY: until the name is durably gone, manifests list the id as one to remove.
      state.manifest.retiredIDs.append(basis.id)
      state.unlinkedIDs.insert(basis.id)
    }
  }

  /// Makes a manifest list a checkpoint instead of the previous one.
  func list(_ written: WrittenCheckpoint, in manifest: inout Manifest) {
    if manifest.checkpointID != 0 { manifest.retiredIDs.append(manifest.checkpointID) }
    manifest.pendingIDs.removeAll { $0 == written.basis.id }
    manifest.checkpointID = written.basis.id
    manifest.checkpointChecksum = written.checksum
  }

  /// Removes the file of a checkpoint that the manifest lists as retired.
  func unlinkCheckpoint(_ id: UInt64, in state: inout State) {
    if id == 0 { return }
    do {
      try session.directory.unlink(FileName.checkpoint(id))
      state.unlinkedIDs.insert(id)
    } catch {
      session.tell(.warning, .maintenance, "removing \(FileName.checkpoint(id)): \(error)")
    }
  }

  // MARK: Files left by large writes

  /// Removes the files left by large writes.
  ///
  /// - Returns: whether it removed any.
  @discardableResult
  func removeLeftFiles() throws(StoreError) -> Bool {
    var segments = withLock { exchange(&$0.leftSegments, with: []) }
    if segments.isEmpty { return false }
    // DURABILITY: no file is removed before the manifest that lists it has been durably replaced.
    try settle()
    var messages: [String] = []
    _ = whileUsable { state in
      while let segment = segments.popLast() {
        if let message = unlink(consume segment, in: &state) { messages.append(message) }
      }
    }
    // A write that waits for room may hold a lock here.
    for message in messages { session.tell(.warning, .maintenance, message) }
    return true
  }
}
