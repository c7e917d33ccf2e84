internal import Synchronization

/// What a sync is of.
enum SyncedPart {
  /// All that has been appended.
  case log
  /// The segments that were left. The active one is spared: each of its pages that is written to once more
  /// would take a fault again.
  case rolledSegments
}

/// The end of the log. Writers append here one at a time, and those that wait for durability share syncs.
///
/// 1. `Appender` is touched under this lock only. Which record an entry of the index names changes only under it.
/// 2. Under it nothing waits for the disk, with three exceptions: a record that needs a segment of its own at once, a
///    removal of all for which no manifest is ready, and the last try of a large write that others have overtaken.
/// 3. Other locks are taken before it; those inside the index, the segment table and the recency clock after it.
final class LogWriter: Sendable {
  let session: Session
  let files: SegmentFiles
  let reserve: DiskReserve
  let commits: GroupCommit
  /// Where the writes are announced to those who follow the store.
  private let page: FollowPage?
  private let appender: Lock<Appender>
  /// Where syncs run that tasks wait for: apart from those at intervals, which nothing may hold up.
  private let taskSyncing = ThreadBackgroundQueue()

  init(_ session: Session, _ parts: borrowing OpenedStore) {
    self.session = session
    files = parts.files
    page = parts.page
    reserve = DiskReserve(directory: parts.directory, isUsed: parts.reservesBlocks)
    commits = GroupCommit(durableSequence: parts.nextSequence - 1)
    appender = Lock(
      Appender(sealed: parts.segments, nextSequence: parts.nextSequence), waits: true)
  }

  // MARK: The lock

  /// Runs `body` while nobody else appends.
  @inline(__always)
  func withLock<Value: ~Copyable, Failure: Error>(
    _ body: (inout Appender) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    defer { Reclamation.reclaimIfDue() }
    return try appender.withLock { (appender) throws(Failure) in
      defer { announce(&appender) }
      return try body(&appender)
    }
  }

  /// Runs `body` while nobody else appends; not at all where somebody does.
  @inline(__always)
  func withLockIfFree<Value, Failure: Error>(
    _ body: (inout Appender) throws(Failure) -> Value?
  ) throws(Failure) -> Value? {
    defer { Reclamation.reclaimIfDue() }
    return try appender.withLockIfFree { (appender) throws(Failure) in
      defer { announce(&appender) }
      return try body(&appender)
    }
  }

  /// Says how far the log goes, if it has gone on: all of it is in the page cache by now.
  @inline(__always)
  private func announce(_ appender: inout Appender) {
    guard let page, let active = appender.active else { return }
    let position = LogPosition(id: active.id, end: appender.offset)
    if position == appender.announced { return }
    appender.announced = position
    page.publish(position)
  }

  /// Says which manifest is in place, as soon as it is.
  func announce(generation: UInt64) { page?.publish(generation: generation) }

  /// Runs `body` under the lock until it returns a value; in between it waits for `wakeAll`.
  func waitUntil<Value>(_ body: (inout Appender) -> Value?) -> Value { appender.waitUntil(body) }

  func wakeAll() { appender.wakeAll() }

  /// Makes room for records as far as the state under the lock can; says what else has to happen.
  @inline(__always)
  func room(
    forByteCount byteCount: Int, isRemoval: Bool, in appender: inout Appender
  ) throws(StoreError) -> Appender.Room {
    try appender.checkWritable(path: session.path)
    do throws(StoreError) {
      return try appender.makeRoom(
        byteCount: byteCount, isRemoval: isRemoval,
        segmentByteLimit: session.configuration.segmentByteLimit, reserve: reserve)
    } catch { return .none(error) }
  }

  // MARK: State

  /// The number of the last record.
  var lastSequence: SequenceNumber { withLock { $0.nextSequence - 1 } }

  /// All segments: sealed ones, with copies of a compaction behind them, then rolled ones and the active one.
  var segments: [Segment] { withLock { $0.segments } }

  /// How much of the disk the log takes.
  var allocatedByteCount: Int {
    withLock { appender in
      appender.segments.reduce(appender.prepared?.allocatedByteCount ?? 0) {
        $0 + $1.allocatedByteCount
      }
    }
  }

  /// Why nothing may be written any more, where that is so.
  var failure: SystemFailure? { withLock { $0.failure } }

  /// Throws unless writes are possible.
  func checkWritable() throws(StoreError) {
    try withLock { (appender) throws(StoreError) in try appender.checkWritable(path: session.path) }
  }

  /// From now on nothing is written any more. Called under neither this lock nor the catalog's.
  func poison(_ failure: SystemFailure) {
    withLock { $0.fail(failure) }
    commits.fail(failure)
    tellOfPoison(failure)
  }

  private func tellOfPoison(_ failure: SystemFailure) {
    session.tell(.error, .writing, "the store takes no more writes: \(failure)")
  }

  // MARK: Syncs

  /// Waits until the writes are in the log and in the index that are just being entered.
  func passWriters() { withLock { _ in } }

  /// Makes every write that was acknowledged before the call durable.
  func sync() throws(StoreError) {
    try session.checkWritable()
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
      poison: { failure in withLock { $0.fail(failure) } }, tell: { tellOfPoison($0) })
    try session.checkPlace()
  }

  /// Waits, without a thread, until everything up to a number is durable.
  nonisolated(nonsending) func waitForSync(
    through sequence: SequenceNumber
  ) async throws(StoreError) {
    try await commits.wait(through: sequence) {
      let isAsked = taskSyncing.runIfPossible { [self] in syncForTasks(lingers: true) }
      // With no thread to be had, this one syncs.
      if !isAsked { syncForTasks(lingers: false) }
    }
    try session.checkPlace()
  }

  /// Syncs as long as tasks wait for it. Where a sync fails, they all learn of it.
  private func syncForTasks(lingers: Bool) {
    while let goal = commits.nextGoal(lingers: lingers) { try? waitForSync { $0 >= goal } }
  }

  /// Syncs what has been appended, as the only thread that does.
  ///
  /// - Returns: the number up to which everything is durable; 0 where only the segments that were left were synced.
  private func syncLog(_ part: SyncedPart) throws(StoreError) -> SequenceNumber {
    let (head, active, targets) = withLock { appender in
      let active = part == .log ? appender.active : nil
      let segments = appender.rolled + (active.map { [$0] } ?? [])
      return (
        part == .log ? appender.nextSequence - 1 : 0, active,
        segments.map { (segment: $0, end: $0.usage.end) }
          .filter { $0.segment.syncedByteCount < $0.end }
      )
    }
    // What lies in files without a name is not durable.
    defer { if part == .log { session.lookForPlace() } }
    do {
      if commits.takeUnsyncedNames() {
        // DURABILITY: the names of the manifest and of new segments are on disk before anything in
        // them counts as durable.
        try session.directory.synchronize()
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
      _ = session.storeLock.whileHeld { SyncFailureMark(lockFile: $0).set() }
      throw error
    }
  }
}
