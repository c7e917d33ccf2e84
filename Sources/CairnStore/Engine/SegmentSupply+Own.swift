/// Separate segments for records that fit no regular segment.
extension SegmentSupply {
  /// Runs `body` with a new active segment of exactly the needed size. Returns `nil` if `removeAll`
  /// has ended the session in the meantime.
  func inOwnSegment<Value>(
    byteCount: Int, isRemoval: Bool, _ body: (inout Appender) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    defer { session.wakeHousekeeping() }
    return try catalog.change { (state) throws(StoreError) -> Value? in
      // Hold the appender while the manifest changes, so that nothing else goes into the segment.
      // For such a large value, the wait is short.
      try log.withLock { (appender) throws(StoreError) -> Value? in
        try appender.checkWritable(path: session.path)
        // Another writer may have taken the prepared segment in the meantime.
        guard appender.active != nil, appender.prepared != nil else { return nil }
        if !isRemoval { try appender.ensure(log.reserve, adding: byteCount) }
        let need = SegmentHeader.byteCount + byteCount + RecordHeader.rollByteCount
        do throws(StoreError) {
          try rollToOwnSegment(&state, &appender, capacity: (need + 4095) & ~4095)
        } catch {
          appender.note(error)
          throw error
        }
        return try body(&appender)
      }
    }
  }

  /// Continues the log in a separate segment for a large record, and lists it in the manifest after
  /// the active one. If this throws, no segment was created.
  private func rollToOwnSegment(
    _ state: inout Catalog.State, _ appender: inout Appender, capacity: Int
  ) throws(StoreError) {
    let next = appender.nextSequence
    let active = appender.active?.id
    let id = SegmentID(rawValue: state.manifest.nextID)
    let salt = try session.directory.randomNumbers(count: 1)[0]
    // No manifest may list the segment before the file and its header are durable. Remove an
    // earlier file that no manifest ever listed.
    try session.directory.unlink(FileName.segment(id))
    let segment = try log.files.create(
      id: id, salt: salt, baseSequence: next,
      baseTime: SegmentHeader.baseTime(for: session.clock.steadyTime), capacity: capacity,
      allocating: capacity, durably: true)
    do throws(StoreError) {
      // DURABILITY: the file's name is on disk before a manifest that needs it.
      do throws(StoreError) { try session.directory.synchronize() } catch {
        throw state.failed(error)
      }
      try appender.roll(to: segment, from: next) { () throws(StoreError) in
        try catalog.replace(&state, lastSequence: next - 1) { manifest in
          manifest.nextID += 1
          let place = manifest.openSegments.firstIndex { $0.id == active } ?? 0
          manifest.openSegments.insert(
            Manifest.OpenSegment(id: id, salt: salt, byteCount: 0), at: place + 1)
        }
      }
    } catch {
      log.files.table.remove(segment)
      // If it is unknown which manifest is on disk, keep the file, because that manifest may list
      // it.
      if case .poisoned = error {} else { try? session.directory.unlink(segment.name) }
      throw error
    }
  }
}
