internal import Synchronization

/// The part of the log that a sync covers.
enum SyncedPart {
  /// All appended records.
  case log
  /// Only rolled segments. After a sync of the active segment, each page that is written again
  /// would cost another fault.
  case rolledSegments
}

/// The end of the log. Writers append here one at a time, and writers that wait for durability
/// share syncs.
///
/// 1. `Appender` is used only under this lock. The location in an index entry changes only under
///    this lock.
/// 2. No thread waits for the disk under it, with two exceptions: the last attempt of a large write
///    that other writes have overtaken, and an exchange of manifests whose old file cannot be
///    unlinked.
/// 3. Other locks are taken before it, except the locks inside the index, the segment table and the
///    recency clock, which are taken after it.
package final class LogWriter: Sendable {
  let session: Session
  let files: SegmentFiles
  let reserve: DiskReserve
  let commits: GroupCommit
  /// Announces writes to processes that follow the store.
  private let page: FollowPage?
  private let appender: Lock<Appender>
  /// How long the last sync of a new manifest's name took, in microseconds.
  private let syncTime = Atomic(0)
  /// Runs the syncs that tasks wait for. Separate from interval syncs, which nothing may delay.
  private let taskSyncing = ThreadBackgroundQueue()

  init(_ session: Session, _ parts: borrowing OpenedStore) {
    self.session = session
    files = parts.files
    page = parts.page
    reserve = DiskReserve(directory: parts.directory, isUsed: parts.reservesBlocks)
    commits = GroupCommit(durableSequence: parts.nextSequence - 1)
    appender = Lock(
      Appender(
        sealed: parts.segments, nextSequence: parts.nextSequence,
        segmentByteCount: SegmentSize.smallest), waits: true)
  }

  // MARK: The lock

  /// Runs `body` while no other thread appends.
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

  /// Takes the lock until the returned hold ends. Call `announce` before that.
  @inline(__always)
  func hold() -> LockHold<Appender> { appender.hold() }

  /// Takes the lock unless another thread keeps holding it.
  @inline(__always)
  func holdIfFree() -> LockHold<Appender>? { appender.holdIfFree() }

  /// Announces the end of the log, if it has moved. Everything before it is now in the page cache.
  @inline(__always)
  func announce(_ appender: inout Appender) {
    guard let page = page.map({ Unretained($0) }), let position = appender.position,
      position != appender.announced
    else { return }
    appender.announced = position
    page.withObject { $0.publish(position) }
  }

  /// Announces the current manifest as soon as it is in place.
  func announce(generation: UInt64) { page?.publish(generation: generation) }

  /// Runs `body` under the lock until it returns a value. Between attempts, waits for `wakeAll`.
  func waitUntil<Value>(_ body: (inout Appender) -> Value?) -> Value { appender.waitUntil(body) }

  func wakeAll() { appender.wakeAll() }

  /// Makes room for records as far as the state under the lock allows. Returns what else is needed.
  @inline(__always)
  func room(
    forByteCount byteCount: Int, isRemoval: Bool, in appender: inout Appender
  ) throws(StoreError) -> Appender.Room {
    try appender.checkWritable(path: session.path)
    do throws(StoreError) {
      return try appender.makeRoom(byteCount: byteCount, isRemoval: isRemoval, reserve: reserve)
    } catch { return .none(error) }
  }

  // MARK: State

  /// The sequence number of the last record.
  var lastSequence: SequenceNumber { withLock { $0.nextSequence - 1 } }

  /// All segments: sealed ones, followed by copies of a compaction, then rolled ones and the active
  /// one.
  package var segments: [Segment] { withLock { $0.segments } }

  /// The disk space that the log takes.
  var allocatedByteCount: Int {
    withLock { appender in
      appender.segments.reduce(appender.prepared?.allocatedByteCount ?? 0) {
        $0 + $1.allocatedByteCount
      }
    }
  }

  /// The reserve that the log needs.
  var reserveSize: DiskReserve.Size { withLock { $0.reserveSize() } }

  /// Sets the size of a full segment for the current log and disk, and returns it.
  @discardableResult
  func updateSegmentSize() -> Int {
    let free = (try? session.directory.leastFreeByteCount()) ?? 0
    let limit = session.configuration.segmentByteLimit
    let byteCount = SegmentSize.byteCount(
      forLogOf: allocatedByteCount, free: free,
      syncTime: .microseconds(syncTime.load(ordering: .relaxed)),
      slowSync: session.environment.slowSync, limit: limit)
    withLock { appender in
      appender.segmentByteCount = byteCount
      appender.burstByteCount = min(SegmentSize.aside, free / 16)
      appender.sealedByteCount = limit / 2
    }
    return byteCount
  }

  /// Whether the disk takes long for a sync, however little it writes.
  var isDiskSlow: Bool {
    .microseconds(syncTime.load(ordering: .relaxed)) >= session.environment.slowSync
  }

  /// Syncs several files at the same time, if that saves time.
  var threads: ThreadStarter { isDiskSlow ? session.environment.threads : .none }

  func setSyncTime(_ time: Duration) {
    syncTime.store(Int(time / .microseconds(1)), ordering: .relaxed)
  }

  /// Why writes are refused, if they are.
  var failure: SystemFailure? { withLock { $0.failure } }

  /// Throws unless writes are possible.
  func checkWritable() throws(StoreError) {
    try withLock { (appender) throws(StoreError) in try appender.checkWritable(path: session.path) }
  }

  /// Refuses all writes from now on. The caller must hold neither this lock nor the catalog's.
  func poison(_ failure: SystemFailure) {
    withLock { $0.fail(failure) }
    commits.fail(failure)
    tellOfPoison(failure)
  }

  private func tellOfPoison(_ failure: SystemFailure) {
    session.tell(.error, .writing, "the store accepts no more writes: \(failure)")
  }

  // MARK: Syncs

  /// Returns once every write in progress is in the log and in the index.
  func passWriters() { withLock { _ in } }

  /// Makes every write acknowledged before the call durable.
  func sync() throws(StoreError) {
    try session.checkWritable()
    let last = lastSequence
    try waitForSync { $0 >= last }
  }

  /// Waits until a sync has made the requested state durable, for example everything up to a
  /// number.
  ///
  /// - Parameter part: the part to sync, if it is this thread's turn.
  func waitForSync(
    of part: SyncedPart = .log, until isDone: (SequenceNumber) -> Bool
  ) throws(StoreError) {
    try commits.wait(
      until: isDone, syncing: { () throws(StoreError) in try syncLog(part) },
      poison: { failure in withLock { $0.fail(failure) } }, tell: { tellOfPoison($0) })
    try session.checkPlace()
  }

  /// Waits, without blocking a thread, until everything up to a number is durable.
  nonisolated(nonsending) func waitForSync(
    through sequence: SequenceNumber
  ) async throws(StoreError) {
    try await commits.wait(through: sequence) {
      let isAsked = taskSyncing.runIfPossible { [self] in syncForTasks(lingers: true) }
      // If no thread is available, sync on this one.
      if !isAsked { syncForTasks(lingers: false) }
    }
    try session.checkPlace()
  }

  /// Syncs as long as tasks wait. If a sync fails, all of them get the error.
  private func syncForTasks(lingers: Bool) {
    while let goal = commits.nextGoal(lingers: lingers) { try? waitForSync { $0 >= goal } }
  }

  /// Syncs all appended records. Only one thread may do this at a time.
  ///
  /// - Returns: the number up to which everything is durable, or 0 if only rolled segments were
  ///   synced.
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
    // Data in files without a name is not durable.
    defer { if part == .log { session.lookForPlace() } }
    // DURABILITY: the names of the manifest and of new segments are on disk before anything in them
    // counts as durable.
    let names = commits.takeUnsyncedNames() ? [nil as Segment?] : []
    // DURABILITY: records reach the disk here. Only then are they acknowledged as durable. A crash
    // before this leaves a torn tail that was never acknowledged. Never retry a failure.
    try threads.forEach(names + targets.map(\.segment)) {
      [self] (segment) throws(StoreError) in
      do throws(StoreError) {
        guard let segment else { return try session.directory.synchronize() }
        if segment !== active { segment.mapping?.unmapPages() }
        try segment.synchronizeData()
      } catch {
        // Set the mark before any waiter sees the failure, because the process may exit after
        // that, and before the other syncs end, because the disk may hang.
        _ = session.storeLock.whileHeld { SyncFailureMark(lockFile: $0).set() }
        throw error
      }
    }
    // Only now, because a segment's sync mark also covers earlier segments.
    for (segment, end) in targets { segment.didSync(through: end) }
    return head
  }
}
