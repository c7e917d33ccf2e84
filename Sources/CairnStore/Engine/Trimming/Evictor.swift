internal import Synchronization

/// Keeping the limits of the configuration: no write returns before they hold.
///
/// 1. What is in the list was used before all that is not, or was used since it was collected.
/// 2. The list is touched under its lock only, which is taken before those of compaction, checkpoints, the catalog and the log.
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

  /// The most entries that go at a time.
  private static let groupLimit = 64
  /// The same while shards may have to be read for it.
  private static let loadingGroupLimit = 4

  /// Whether a write of so many entries may make others go, which have so many bytes, and some beside.
  func isNearLimit(adding count: Int, byteCount: Int) -> Bool {
    lookup.index.count > session.limits.countLimit - min(count, session.limits.countLimit)
      || lookup.table.total.liveByteCount
        >= session.limits.byteLimit - session.limits.byteLimit / 64
        - min(byteCount, session.limits.byteLimit)
  }

  private var isOverLimit: Bool {
    lookup.index.count > session.limits.countLimit
      || lookup.table.total.liveByteCount > session.limits.byteLimit
  }

  /// Throws where the limits do not hold since they could not be kept after an earlier write, and
  /// still cannot. To be called before each write, with no lock held.
  ///
  /// - Parameter removals: what went is added, for the caller to tell.
  @inline(__always)
  func checkLimits(_ removals: inout [RemovalEvent]) throws(StoreError) {
    if start.hasFailed.load(ordering: .relaxed) { try evictAgain(&removals) }
  }

  /// The same, and tells the observer what went.
  func checkLimits() throws(StoreError) {
    var removals: [RemovalEvent] = []
    defer { remover.tell(removals) }
    try checkLimits(&removals)
  }

  @inline(never)
  private func evictAgain(_ removals: inout [RemovalEvent]) throws(StoreError) {
    try remover.writer.log.checkWritable()
    try evict(&removals)
    start.hasFailed.store(false, ordering: .relaxed)
  }

  /// Removes the least recently used entries as long as there is more than the limits allow. To be
  /// called after each write, with no lock held.
  ///
  /// Throws nothing: the write has happened, and who is told of an error takes it that nothing was
  /// written. The next write fails in its place.
  ///
  /// - Parameter removals: what went is added, for the caller to tell.
  @inline(__always)
  func keepLimits(_ removals: inout [RemovalEvent]) {
    if lookup.index.count > start.count.load(ordering: .relaxed)
      || lookup.table.total.liveByteCount > start.byteCount.load(ordering: .relaxed)
    {
      comeCloseToLimits(&removals)
    }
  }

  /// Whether there is something to do to keep the limits, with so many entries more.
  func isAsked(adding count: Int) -> Bool {
    lookup.index.count + count > start.count.load(ordering: .relaxed)
      || lookup.table.total.liveByteCount > start.byteCount.load(ordering: .relaxed)
      || start.hasFailed.load(ordering: .relaxed)
  }

  /// The same, and tells the observer what went.
  func keepLimits() {
    var removals: [RemovalEvent] = []
    keepLimits(&removals)
    remover.tell(removals)
  }

  /// Has a list made in the background where the store was opened near its limits: one of the first
  /// writes would have to look through all of the index otherwise.
  ///
  /// - Parameter oldest: what goes first until then, as far as that is known.
  func prepare(startingWith oldest: [RemovalCandidate], _ recovery: RecoveryReport) {
    guard !session.isReadOnly, start.isReached(by: lookup.index, lookup.table.total) else { return }
    if recovery.source == .scan {
      // The open has looked at every record, so that a look at the index is little more.
      while !((try? eviction.withLock { (list) throws(StoreError) in
        try list.collectFirst(from: lookup.index)
      }) ?? true) {}
      return start.wait(for: session.limits)
    }
    eviction.withLock { $0.start(with: oldest) }
    session.environment.background.run { [weak self] in
      while let evictor = self, !evictor.session.isClosed {
        // Where a part of the index cannot be read now, that comes out once something has to go.
        let isReady = try? evictor.eviction.withLock { (list) throws(StoreError) in
          try list.collectFirst(from: evictor.lookup.index)
        }
        if isReady ?? true { return evictor.start.wait(for: evictor.session.limits) }
        // A write that has to evict now comes before the rest: who gives a lock up and takes it at once
        // lets nobody in.
        evictor.session.environment.pause(.microseconds(100))
      }
    }
  }

  /// Has other limits hold from now on.
  func setLimits(countLimit: Int?, byteLimit: Int?) throws(StoreError) {
    session.limits.set(countLimit: countLimit, byteLimit: byteLimit)
    start.restart(for: session.limits)
    var removals: [RemovalEvent] = []
    defer { remover.tell(removals) }
    guard isOverLimit else { return }
    try evict(&removals)
  }

  /// Has so many entries not count for the limit.
  func reserve(count: Int) {
    session.limits.reserve(count: count)
    start.restart(for: session.limits)
  }

  /// All is gone, and so is what was chosen to go.
  func restart() {
    eviction.withLock { $0 = EvictionList() }
    start.restart(for: session.limits)
  }

  @inline(never)
  private func comeCloseToLimits(_ removals: inout [RemovalEvent]) {
    if isOverLimit {
      do throws(StoreError) { try evict(&removals) } catch {
        start.hasFailed.store(true, ordering: .relaxed)
        if !session.isClosed { session.log(.error, .maintenance, "keeping the limits: \(error)") }
      }
      return
    }
    // The first list takes a look at all of the index: a part of it with each of the last writes
    // before there is something to evict.
    let isReady = try? eviction.withLock { (list) throws(StoreError) in
      try list.collectFirst(from: lookup.index)
    }
    // Where a part of the index cannot be read now, that comes out once something has to go.
    if isReady ?? true { start.wait(for: session.limits) }
  }

  private func evict(_ removals: inout [RemovalEvent]) throws(StoreError) {
    start.wait(for: session.limits)
    var removal = Removal(.evicted(.countLimit), now: session.clock.now(), sparesRead: true)
    removal.holdsEvents = true
    defer { removals += removal.takeEvents() }
    try eviction.withLock { (list) throws(StoreError) in
      // Where all that is chosen is read again and again, limits come first from some list on. What a
      // compaction has moved and somebody read meanwhile is found again in a list after that; where it is
      // written again and again, those writes make room.
      var lastSparing = list.number + 3
      var lastAskedNumber: Int?
      while isOverLimit, list.number <= lastSparing + 10 {
        let (count, byteCount) = excess
        // Without a number of bytes, it is the number of entries that is too large.
        removal.cause = .evicted(byteCount == .max ? .countLimit : .byteLimit)
        let victims = try list.take(count, from: lookup.index)
        if victims.isEmpty { return }
        // What was spared counts as just read. If that is all there is, it comes back in the next lists in
        // its order, and the limits come first.
        let lastAsked = lastAskedNumber ?? list.number + 1
        lastAskedNumber = lastAsked
        removal.asksForUse = list.number <= lastAsked
        removal.sparesRead = list.number < lastSparing
        let removedCount = removal.summary.count
        do throws(StoreError) {
          let seenCount = try remover.remove(victims, byteTarget: byteCount, in: &removal)
          list.putBack(victims.count - seenCount)
        } catch {
          // Those of them that did go are found gone.
          list.putBack(victims.count)
          throw error
        }
        if removal.summary.count > removedCount { lastSparing = list.number + 3 }
      }
    }
  }

  private var groupLimit: Int { lookup.index.isLoaded ? Self.groupLimit : Self.loadingGroupLimit }

  /// How many entries are to go now at most, and how many bytes at least: up to 1 % below the
  /// limits, so that not every write has to look for one.
  private var excess: (count: Int, byteCount: Int) {
    let count = lookup.index.count
    // The newest stays, however large it is: by itself it is within the limits.
    let most = min(groupLimit, max(1, count - 1))
    if count > session.limits.countLimit {
      let excess = count - session.limits.countLimit + session.limits.countLimit / 100
      return (min(excess, most), .max)
    }
    let live = lookup.table.total.liveByteCount
    // Others may have made room meanwhile.
    let excess = max(
      1, live - session.limits.byteLimit + min(session.limits.byteLimit / 100, 64 << 10))
    let meanByteCount = max(1, live / max(1, count))
    return (min(excess / meanByteCount + 1, most), excess)
  }
}
