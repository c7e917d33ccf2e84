/// What a sync is of.
enum SyncedPart {
  /// All that has been appended.
  case log
  /// The segments that were left. The active one is spared: each of its pages that is written to once more
  /// would take a fault again.
  case rolledSegments
}

extension Engine {
  /// Gives an acknowledged write the durability it was promised.
  @inline(__always)
  func commit(_ sequence: SequenceNumber, _ durability: Durability) throws(StoreError) {
    switch durability {
    case .process: break
    case .interval(let interval): requestSync(within: interval)
    case .durable: try waitForSync { $0 >= sequence }
    }
  }

  /// Gives a removal that found nothing the durability it was promised: what has made the key absent, perhaps a
  /// moment ago and without a sync, must not be undone by a power failure either.
  func commitAbsence(_ durability: Durability) throws(StoreError) {
    if durability == .process { return }
    try commit(lastSequence, durability)
  }

  /// The number of the last record.
  var lastSequence: SequenceNumber { appender.withLock { $0.nextSequence - 1 } }

  /// Makes every write that was acknowledged before the call durable.
  package func sync() throws(StoreError) {
    try checkWritable()
    let last = lastSequence
    try waitForSync { $0 >= last }
  }

  /// Waits until a sync has brought about what is asked for: the number up to which everything is durable, say.
  ///
  /// - Parameter part: what this thread syncs, if it is its turn.
  func waitForSync(
    of part: SyncedPart = .log, until isDone: (SequenceNumber) -> Bool
  ) throws(StoreError) {
    try commits.wait(
      until: isDone, syncing: { () throws(StoreError) in try syncLog(part) },
      poison: { poison($0) })
    try checkPlace()
  }

  /// Syncs what has been appended, as the only thread that does.
  ///
  /// - Returns: the number up to which everything is durable; 0 where only the segments that were left were synced.
  private func syncLog(_ part: SyncedPart) throws(StoreError) -> SequenceNumber {
    let (head, active, targets) = appender.withLock { appender in
      let active = part == .log ? appender.active : nil
      let segments = appender.rolled + (active.map { [$0] } ?? [])
      return (
        part == .log ? appender.nextSequence - 1 : 0, active,
        segments.map { (segment: $0, end: $0.usage.end) }
          .filter { $0.segment.syncedByteCount < $0.end }
      )
    }
    // What lies in files without a name is not durable.
    defer { if part == .log { lookForPlace() } }
    do {
      if commits.takeUnsyncedNames() {
        // DURABILITY: the names of the manifest and of new segments are on disk before anything in
        // them counts as durable.
        try directory.synchronize()
      }
      // In the order of the log, so that a segment's sync mark vouches for those before it.
      for (segment, end) in targets {
        // DURABILITY: records reach the disk here, and only then are they acknowledged as
        // durable. A crash before leaves a torn tail that nobody was promised.
        if segment !== active { segment.mapping?.unmapPages() }
        // Not tried again where it fails.
        try segment.synchronizeData()
        segment.didSync(through: end)
      }
      return head
    } catch {
      // Before anybody is told: the process may end itself then.
      manifest.withLock { state in
        if let lockFile = state.lockFile { SyncFailureMark(lockFile: lockFile).set() }
      }
      throw error
    }
  }
}
