internal import Synchronization

/// What threads that wait for durability share.
struct CommitState {
  /// Every write up to this one is durable.
  var durableSequence: SequenceNumber
  /// Whether a thread is syncing; there is only ever one, since of two syncs of the same file
  /// only one would be told of an error.
  var isSyncing = false
  /// The sync that failed. None is tried again: after a failure the kernel forgets what it could
  /// not write, and the next sync would report success.
  var failure: SystemFailure?
}

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
    case .durable: try waitForSync { $0.durableSequence >= sequence }
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
    try waitForSync { $0.durableSequence >= last }
  }

  /// Group commit: the first thread that comes syncs the log for all that have appended by then;
  /// those that come meanwhile wait, and one of them syncs next.
  ///
  /// - Parameter part: what the first thread syncs.
  func waitForSync(
    of part: SyncedPart = .log, until isDone: (CommitState) -> Bool
  ) throws(StoreError) {
    enum Role {
      case done
      case leader
      case failed(SystemFailure)
    }
    while true {
      let role = commits.waitUntil { state -> Role? in
        if isDone(state) { return .done }
        if let failure = state.failure { return .failed(failure) }
        if state.isSyncing { return nil }
        state.isSyncing = true
        return .leader
      }
      switch role {
      case .done: return try checkPlace()
      case .failed(let failure): throw .durabilityUnknown(cause: failure)
      case .leader: syncLog(part)
      }
    }
  }

  /// Syncs what has been appended, as the only thread that does, and wakes the others.
  private func syncLog(_ part: SyncedPart) {
    let (head, active, targets) = appender.withLock { appender in
      let active = part == .log ? appender.active : nil
      let segments = appender.rolled + (active.map { [$0] } ?? [])
      return (
        part == .log ? appender.nextSequence - 1 : 0, active,
        segments.map { (segment: $0, end: $0.usage.end) }
          .filter { $0.segment.syncedByteCount < $0.end }
      )
    }
    var failure: StoreError?
    do {
      if hasUnsyncedNames.exchange(false, ordering: .relaxed) {
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
    } catch {
      failure = error
      // Before anybody is told: the process may end itself then.
      manifest.withLock { state in
        if let lockFile = state.lockFile { SyncFailureMark(lockFile: lockFile).set() }
      }
    }
    // What lies in files without a name is not durable.
    if part == .log { lookForPlace() }
    commits.withLock { state in
      state.isSyncing = false
      if let failure {
        if state.failure == nil { state.failure = failure.asFailure }
      } else {
        state.durableSequence = max(state.durableSequence, head)
      }
    }
    commits.wakeAll()
    if let failure { poison(failure.asFailure) }
  }
}
