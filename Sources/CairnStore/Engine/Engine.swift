internal import Synchronization

/// An open store: what holds the parts together. `Store` is its public face.
///
/// Locks, in the order in which they may be taken: `asides`, `eviction`, `maintenance`, `switching`,
/// `preparation`, `manifest`, `appender`, then those inside the index, the segment table and the recency clock; `commits` and
/// `scrubbing` alone. The rest of the rules is in Docs/Architecture.md.
@usableFromInline
package final class Engine: Sendable {
  let path: String
  let configuration: StoreConfiguration
  let limits: WriteLimits
  let isReadOnly: Bool
  let verifiesValues: Bool
  let background: any BackgroundQueue
  /// Where syncs run that are asked for ahead of time.
  let syncQueue: any BackgroundQueue
  /// Where housekeeping runs, one job at a time.
  let maintenanceQueue: any BackgroundQueue
  let pause: @Sendable (Duration) -> Void
  let directory: Directory
  let lockFile: File
  let files: SegmentFiles
  let table: SegmentTable
  let reserve: DiskReserve
  let index: HashIndex
  let hash: SipHash
  let clock: StoreClock
  let bootIdentifier: [UInt8]
  let recovery: RecoveryReport
  let removalObserver: (@Sendable (RemovalEvent) -> Void)?

  /// Held through a round of compaction; there is only one at a time.
  let maintenance = Lock(MaintenanceState())
  /// Held through a checkpoint, while a removal of all is prepared, and by a compaction from the switch on
  /// until the index names the copies: never while it copies, since a close needs the lock and waits for no compaction.
  let switching = Lock(())
  /// Held while records are written beside the log, and until a batch of them is in the index: by one writer
  /// at a time.
  let asides = Lock(())
  let eviction = Lock(EvictionList())
  let evictionStart: EvictionStart
  /// Held while the next segment is made, never across a sync but where all reserved places
  /// were taken.
  let preparation = Lock(())
  let manifest: Lock<ManifestState>
  let appender: Lock<Appender>
  let commits: GroupCommit
  let backgroundFlags: BackgroundFlags
  let housekeeping = Housekeeping()
  let scrubbing: Lock<ScrubState>
  let checkpoints: CheckpointProgress
  /// How many segments had been given up when a write last waited for their space in vain, on a full disk.
  let retirementsInVain = Atomic(-1)
  /// For jobs that wait; it holds this engine until `close`.
  let handle = EngineHandle()
  let processMark: ForkGuard.Mark
  private let closed = Atomic(false)

  /// What the manifest's lock guards, which is held while the file is replaced.
  struct ManifestState: ~Copyable {
    var manifest: Manifest
    /// The segment that a clean close left open and that has room.
    var resumable: Segment?
    /// Retired ids whose files were unlinked since the manifest was written.
    var unlinkedIDs: Set<UInt64>
    /// The manifest that the next session begins with, if it is ready.
    var next: Manifest?
    /// A manifest that removes all, if it is ready.
    var emptied: Manifest?
    /// What removals of all have left: it goes once the names that they gave are on disk.
    var leftFiles: [LeftFile] = []
    /// Whether the name of the one in place is on disk.
    var isSettled = true
    /// Whether a replacement failed so that it is not known which manifest is on disk.
    var failure: SystemFailure?
    /// The open lock file, whose descriptor holds the lock.
    var lockFile: File?

    /// Takes an id for a file that is long in the making. A manifest that is written meanwhile lists
    /// the id as pending, so that the next open removes what a crash leaves; before there is such a
    /// manifest, the id is beyond the highest that the one on disk knows, which says the same.
    ///
    /// Whoever takes it removes it from `pendingIDs` again: with the manifest that lists the file, or
    /// after the file was unlinked.
    mutating func reserveID() -> UInt64 {
      let id = manifest.nextID
      manifest.nextID += 1
      manifest.pendingIDs.append(id)
      return id
    }
  }

  init(_ parts: OpenedStore, configuration: StoreConfiguration, environment: Environment) {
    self.configuration = configuration
    path = parts.directory.path
    limits = WriteLimits(configuration)
    evictionStart = EvictionStart(limits)
    isReadOnly = parts.isReadOnly
    verifiesValues = configuration.verifiesValues
    background = environment.background
    syncQueue = environment.syncing
    maintenanceQueue = environment.maintenance
    pause = environment.pause
    directory = parts.directory
    lockFile = parts.lockFile
    files = parts.files
    table = parts.files.table
    reserve = DiskReserve(directory: parts.directory, isUsed: parts.reservesBlocks)
    index = parts.index
    hash = parts.hash
    clock = parts.clock
    backgroundFlags = BackgroundFlags(parts.clock)
    bootIdentifier = parts.bootIdentifier
    recovery = parts.recovery
    removalObserver = configuration.removalObserver
    manifest = Lock(
      ManifestState(
        manifest: parts.manifest, resumable: parts.resumable,
        unlinkedIDs: Set(parts.manifest.retiredIDs), next: parts.next, failure: nil,
        lockFile: parts.lockFile))
    appender = Lock(
      Appender(sealed: parts.segments, nextSequence: parts.nextSequence), waits: true)
    commits = GroupCommit(durableSequence: parts.nextSequence - 1)
    // Of use in the future, when the clock was wrong, nothing is known: the next close makes a checkpoint.
    let now = clock.now()
    let usedTime = parts.checkpoint?.samples.last?.time ?? now
    checkpoints = CheckpointProgress(
      lastSequence: parts.checkpoint?.lastSequence ?? 0,
      byteCount: parts.checkpoint?.byteCount ?? 0, appendedByteCount: parts.replayedByteCount,
      isDueSinceOpen: parts.replayedByteCount
        >= max(configuration.checkpointByteThreshold / 4, parts.checkpoint?.byteCount ?? 0),
      usedTick: index.recency.now,
      usedTime: usedTime <= now ? usedTime : Timestamp(millisecondsSinceEpoch: .min))
    processMark = ForkGuard.arm()
    scrubbing = Lock(Self.scrubState(parts, configuration))
    prepareEviction(startingWith: parts.oldest)
    wakeHousekeepingIfNeeded()
    startScrubbing()
  }

  // MARK: Checks

  /// Throws unless the store can be used.
  @inline(__always)
  func checkUsable() throws(StoreError) {
    if processMark.isForeign { throw .usedAfterFork(path: path) }
    if closed.load(ordering: .relaxed) { throw .closed(path: path) }
  }

  /// Throws unless the store can be written to, as far as can be told without a lock.
  func checkWritable() throws(StoreError) {
    try checkUsable()
    if isReadOnly { throw .readOnly(path: path) }
    try checkPlace()
  }

  var isClosed: Bool { closed.load(ordering: .relaxed) }

  /// Marks the store closed; `false` where it was already.
  func markClosed() -> Bool { !closed.exchange(true, ordering: .relaxed) }

  /// From now on nothing is written any more. Called with neither the manifest's lock nor the
  /// appender's lock held by the caller's own closure.
  func poison(_ failure: SystemFailure) {
    appender.withLock { appender in
      if appender.failure == nil { appender.failure = failure }
    }
    commits.fail(failure)
    tell("the store takes no more writes: \(failure)")
  }

  /// Logs a message from where a lock may be held: later, under none, since the log may use the store.
  func tell(_ message: String) {
    guard let log = configuration.log else { return }
    background.run { log(message) }
  }

  // MARK: State

  /// What the store holds, without a system call and without waiting for one.
  package func usage() throws(StoreError) -> StoreUsage {
    try checkUsable()
    var usage = StoreUsage()
    appender.withLock { appender in
      for segment in appender.segments {
        usage.deadByteCount += segment.usage.deadByteCount
        usage.allocatedByteCount += segment.allocatedByteCount
        usage.segmentCount += 1
      }
      usage.allocatedByteCount += appender.prepared?.allocatedByteCount ?? 0
    }
    usage.indexedKeyCount = index.count
    usage.liveByteCount = table.total.liveByteCount
    usage.pinnedByteCount = table.total.pinnedByteCount
    return usage
  }

  package func statistics() throws(StoreError) -> StoreStatistics {
    try checkUsable()
    let (resumable, sealed) = manifest.withLock { state in
      (state.resumable, Set(state.manifest.sealedSegments.map(\.id)))
    }
    let (segments, prepared, lastSequence) = appender.withLock {
      ($0.segments, $0.prepared, $0.nextSequence - 1)
    }
    let known = Set(segments.map(\.id))
    let all = segments + [resumable].compactMap { $0 }.filter { !known.contains($0.id) }
    var allocated = try prepared?.file.openIfNamed()?.status().allocatedByteCount ?? 0
    var shares: [SegmentStatistics] = []
    for segment in all {
      let usage = segment.usage
      // One that was retired since has given its space back.
      let onDisk = try segment.file.openIfNamed()?.status().allocatedByteCount ?? 0
      allocated += onDisk
      shares.append(
        SegmentStatistics(
          id: segment.id.rawValue, liveByteCount: usage.liveByteCount,
          deadByteCount: usage.deadByteCount, tombstoneCount: usage.tombstoneCount,
          byteCount: usage.end, allocatedByteCount: onDisk, isSealed: sealed.contains(segment.id)))
    }
    var statistics = StoreStatistics(
      indexedKeyCount: index.count,
      liveByteCount: shares.reduce(0) { $0 + $1.liveByteCount },
      deadByteCount: shares.reduce(0) { $0 + $1.deadByteCount }, allocatedByteCount: allocated,
      segments: shares, tombstoneCount: shares.reduce(0) { $0 + $1.tombstoneCount },
      pinnedByteCount: table.total.pinnedByteCount,
      indexByteCount: index.byteCount, lastVersion: lastSequence,
      formatVersion: FormatVersion.text, recovery: recovery)
    statistics.clockOffset = clock.offset
    statistics.scrub = scrubStatistics()
    (statistics.reclaimableByteCount, statistics.excessByteCount) = appender.withLock {
      ($0.allowance.reclaimableByteCount, $0.allowance.excess)
    }
    statistics.delayedWriteCount = housekeeping.delayedWriteCount.load(ordering: .relaxed)
    statistics.writeDelay = .milliseconds(housekeeping.writeDelay.load(ordering: .relaxed))
    return statistics
  }
}
