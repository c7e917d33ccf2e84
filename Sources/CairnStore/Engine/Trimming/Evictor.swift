internal import Synchronization

/// Enforces the limits of the configuration: no write returns before they hold.
///
/// 1. Every entry in the list was used before all others, or has been used since the list was
///    collected.
/// 2. The list is used only under its lock, which is taken before the locks of compaction,
///    checkpoints, the catalog and the log.
final class Evictor: Sendable {
  private let session: Session
  private let lookup: Lookup
  private let remover: Remover
  private let eviction = Lock(EvictionList())
  private let start: EvictionStart

  init(_ remover: Remover) {
    session = remover.session
    lookup = remover.lookup
    self.remover = remover
    start = EvictionStart(session.limits)
  }

  /// The maximum number of entries removed at a time.
  private static let groupLimit = 64
  /// The same limit while shards may still have to be loaded for the removal.
  private static let loadingGroupLimit = 4

  /// The bytes of all entries, as limits count them.
  private var byteCount: Int {
    session.limits.byteCount(live: lookup.table.total.liveByteCount, count: lookup.index.count)
  }

  private var isOverLimit: Bool { isOver(session.limits.bounds) }

  private func isOver(_ bounds: WriteLimits.Bounds) -> Bool {
    lookup.index.count > bounds.count || byteCount > bounds.byteCount
  }

  /// Throws if the limits could not be enforced after an earlier write and still cannot be. Call
  /// before each write, with no lock held.
  ///
  /// - Parameter removals: receives what was removed, for the caller to report.
  @inline(__always)
  func retryFailedEviction(_ removals: inout [RemovalEvent]) throws(StoreError) {
    if start.hasFailed.load(ordering: .relaxed) { try evictAgain(&removals) }
  }

  @inline(never)
  private func evictAgain(_ removals: inout [RemovalEvent]) throws(StoreError) {
    try remover.writer.log.checkWritable()
    try evict(&removals)
    start.hasFailed.store(false, ordering: .relaxed)
  }

  /// Removes the least recently used entries while the limits are exceeded. Call after each write,
  /// with no lock held.
  ///
  /// Throws nothing: the write has happened, and a caller that gets an error assumes that nothing
  /// was written. The next write fails instead.
  ///
  /// - Parameter removals: receives what was removed, for the caller to report.
  @inline(__always)
  func enforceLimits(_ removals: inout [RemovalEvent]) {
    if mayReachStart(adding: 0) { comeCloseToLimits(&removals) }
  }

  /// A cheap form of `start.isReached`, which may be true too early.
  @inline(__always)
  private func mayReachStart(adding count: Int) -> Bool {
    let count = lookup.index.count + count
    return count > start.count.load(ordering: .relaxed)
      || lookup.table.total.liveByteCount + count * start.entryByteCount
        > start.byteCount.load(ordering: .relaxed)
  }

  private func reachesStart(adding count: Int) -> Bool {
    start.isReached(
      count: lookup.index.count + count, live: lookup.table.total.liveByteCount, session.limits)
  }

  /// Whether adding this many entries would require work to enforce the limits.
  func mustEvict(adding count: Int) -> Bool {
    mayReachStart(adding: count) && reachesStart(adding: count)
      || start.hasFailed.load(ordering: .relaxed)
  }

  /// Like the other form, but reports removals to the observer.
  func enforceLimits() {
    var removals: [RemovalEvent] = []
    enforceLimits(&removals)
    remover.tell(removals)
  }

  /// Makes a list in the background if the store was opened near its limits. Otherwise one of the
  /// first writes would have to scan the whole index.
  ///
  /// - Parameter oldest: the entries to remove first until the list is ready, if known.
  func prepare(startingWith oldest: [RemovalCandidate], _ recovery: RecoveryReport) {
    guard !session.isReadOnly, reachesStart(adding: 0)
    else { return }
    if recovery.source == .scan {
      // The open has read every record, so scanning the index adds little.
      while !((try? eviction.withLock { (list) throws(StoreError) in
        try list.collectFirst(from: lookup.index)
      }) ?? true) {}
      return start.wait(for: session.limits)
    }
    eviction.withLock { $0.start(with: oldest) }
    session.environment.background.run { [weak self] in
      while let evictor = self, !evictor.session.isClosed {
        // If a shard cannot be loaded now, the error is thrown once something must be evicted.
        let isReady = try? evictor.eviction.withLock { (list) throws(StoreError) in
          try list.collectFirst(from: evictor.lookup.index)
        }
        if isReady ?? true { return evictor.start.wait(for: evictor.session.limits) }
        // A write that must evict now takes precedence. A thread that releases a lock and takes it
        // again at once would keep every other thread out.
        evictor.session.environment.pause(.microseconds(100))
      }
    }
  }

  /// Sets new limits.
  func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    // First evict under the old limits, so that no write has to wait for all of these evictions.
    let bounds = session.limits.bounds(countLimit: countLimit, byteLimit: byteLimit)
    let result = Result { () throws(StoreError) in try evictStepByStep(to: bounds) }
    session.limits.set(countLimit: countLimit, byteLimit: byteLimit)
    start.restart(for: session.limits)
    try result.get()
    var removals: [RemovalEvent] = []
    defer { remover.tell(removals) }
    guard isOverLimit else { return }
    try evict(&removals)
  }

  /// Evicts down to bounds below the limits, and reports each step to the observer.
  private func evictStepByStep(to bounds: WriteLimits.Bounds) throws(StoreError) {
    var pass = makePass()
    defer { remover.tell(&pass.removal) }
    // Other writes may add entries meanwhile. Those are not this call's task.
    let count = lookup.index.count
    var stepCount = 0
    while pass.removal.summary.count < count, try step(&pass, to: bounds) {
      remover.tell(&pass.removal)
      stepCount += 1
      // Let threads that wait for the lock take it.
      if stepCount % 32 == 0 { session.environment.pause(.microseconds(50)) }
    }
  }

  /// Excludes this many entries from the limit.
  func reserve(count: Int) {
    session.limits.reserve(count: count)
    start.restart(for: session.limits)
  }

  /// Starts over after `removeAll`, which has removed the chosen entries.
  func restart() {
    eviction.withLock { $0 = EvictionList() }
    lookup.index.recency.setOldestTick(lookup.index.recency.now)
    start.restart(for: session.limits)
  }

  @inline(never)
  private func comeCloseToLimits(_ removals: inout [RemovalEvent]) {
    guard reachesStart(adding: 0) else { return }
    if isOverLimit {
      do throws(StoreError) { try evict(&removals) } catch {
        start.hasFailed.store(true, ordering: .relaxed)
        // The caller may have a reason to let no log run now.
        if !session.isClosed {
          session.tell(.error, .maintenance, "enforcing the limits: \(error)")
        }
      }
      return
    }
    // The first list takes a scan of the whole index. Each of the last writes before an eviction
    // scans a part.
    let isReady = try? eviction.withLock { (list) throws(StoreError) in
      try list.collectFirst(from: lookup.index)
    }
    // If a shard cannot be loaded now, the error is thrown once something must be evicted.
    if isReady ?? true { start.wait(for: session.limits) }
  }

  /// Several steps of eviction by one thread.
  private struct Pass {
    var removal: Removal
    /// How many lists its steps have begun.
    var listCount = 0
    /// How many of them spare entries that have been read since they were chosen.
    var sparingCount = 3
  }

  private func makePass() -> Pass {
    var removal = Removal(.evicted(.countLimit), now: session.clock.now(), sparesRead: true)
    removal.holdsEvents = true
    return Pass(removal: removal)
  }

  /// Makes room before a large write if disk space is limited. Other writes evict afterwards, but the
  /// limit leaves no room for a large one.
  ///
  /// - Parameter removals: receives what was removed, for the caller to report.
  func makeRoom(
    forByteCount byteCount: Int, _ removals: inout [RemovalEvent]
  ) throws(StoreError) {
    if session.configuration.diskByteLimit == nil { return }
    var bounds = session.limits.bounds
    // A batch may be larger than the limit. Evicting everything would not make room for it.
    if byteCount > bounds.byteCount { return }
    bounds.byteCount -= byteCount
    if isOver(bounds) { try evict(&removals, to: bounds) }
  }

  private func evict(
    _ removals: inout [RemovalEvent], to bounds: WriteLimits.Bounds? = nil
  ) throws(StoreError) {
    start.wait(for: session.limits)
    var pass = makePass()
    defer { removals += pass.removal.takeEvents() }
    while try step(&pass, to: bounds ?? session.limits.bounds) {}
  }

  /// Removes a few entries if the bounds are exceeded. Releases the lock afterwards, so that
  /// another thread waits for this step at most.
  ///
  /// - Returns: whether there may be more to do.
  private func step(
    _ pass: inout Pass, to bounds: WriteLimits.Bounds
  ) throws(StoreError) -> Bool {
    try eviction.withLock { (list) throws(StoreError) in
      // If every chosen entry is read again and again, the limits take precedence after a few
      // lists. If a compaction moves an entry that is then read, the next list finds the entry
      // again. If an entry is rewritten again and again, those writes make room.
      guard isOver(bounds), pass.listCount <= pass.sparingCount + 10 else { return false }
      let (count, byteCount) = excess(over: bounds)
      // A byte count of `.max` means that the number of entries exceeds its limit.
      pass.removal.cause = .evicted(byteCount == .max ? .countLimit : .byteLimit)
      let number = list.number
      let victims = try list.take(count, from: lookup.index)
      pass.listCount += list.number - number
      guard let oldest = victims.first else { return false }
      lookup.index.recency.setOldestTick(oldest.rank)
      // Entries that have been read since they were chosen come back in the next lists.
      pass.removal.sparesRead = pass.listCount < pass.sparingCount
      let removedCount = pass.removal.summary.count
      do throws(StoreError) {
        let seenCount = try remover.remove(victims, byteTarget: byteCount, in: &pass.removal)
        list.putBack(victims.count - seenCount)
      } catch {
        // The next attempt recognises the entries that were removed.
        list.putBack(victims.count)
        throw error
      }
      if pass.removal.summary.count > removedCount { pass.sparingCount = pass.listCount + 3 }
      return true
    }
  }

  private var groupLimit: Int { lookup.index.isLoaded ? Self.groupLimit : Self.loadingGroupLimit }

  /// The maximum number of entries and the minimum number of bytes to remove now. An eviction goes
  /// down to 1 % below the limits, so that few writes have to evict.
  private func excess(over bounds: WriteLimits.Bounds) -> (count: Int, byteCount: Int) {
    let count = lookup.index.count
    // The newest entry stays, however large it is, because alone it is within the limits.
    let most = min(groupLimit, max(1, count - 1))
    if count > bounds.count {
      let excess = count - bounds.count + bounds.count / 100
      return (min(excess, most), .max)
    }
    let live = byteCount
    // Other threads may have made room in the meantime.
    let excess = max(
      1, live - bounds.byteCount + min(bounds.byteCount / 100, 64 << 10))
    let meanByteCount = max(1, live / max(1, count))
    return (min(excess / meanByteCount + 1, most), excess)
  }
}
