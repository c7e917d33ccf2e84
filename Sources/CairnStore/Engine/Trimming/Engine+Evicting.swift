internal import Synchronization

/// Keeping the limits of the configuration: no write returns before they hold.
extension Engine {
  /// The most entries that go at a time.
  private static let groupLimit = 64
  /// The same while shards may have to be read for it.
  private static let loadingGroupLimit = 4

  /// Whether a write of so many entries may make others go, which have so many bytes, and some beside.
  package func isNearLimit(adding count: Int, byteCount: Int) -> Bool {
    index.count > limits.countLimit - min(count, limits.countLimit)
      || table.total.liveByteCount
        >= limits.liveByteLimit - limits.liveByteLimit / 64 - min(byteCount, limits.liveByteLimit)
  }

  private var isOverLimit: Bool {
    index.count > limits.countLimit || table.total.liveByteCount > limits.liveByteLimit
  }

  /// Throws where the limits do not hold since they could not be kept after an earlier write, and
  /// still cannot. To be called before each write, under no lock.
  @inline(__always)
  func checkLimits() throws(StoreError) {
    if evictionStart.hasFailed.load(ordering: .relaxed) { try evictAgain() }
  }

  @inline(never)
  private func evictAgain() throws(StoreError) {
    try appender.withLock { (appender) throws(StoreError) in try appender.checkWritable(path: path)
    }
    try evict()
    evictionStart.hasFailed.store(false, ordering: .relaxed)
  }

  /// Removes the least recently used entries as long as there is more than the limits allow. To be
  /// called after each write, under no lock.
  ///
  /// Throws nothing: the write has happened, and who is told of an error takes it that nothing was
  /// written. The next write fails in its place.
  @inline(__always)
  func keepLimits() {
    if index.count > evictionStart.count.load(ordering: .relaxed)
      || table.total.liveByteCount > evictionStart.byteCount.load(ordering: .relaxed)
    {
      comeCloseToLimits()
    }
  }

  /// Has a list made in the background where the store was opened near its limits: one of the first
  /// writes would have to look through all of the index otherwise.
  ///
  /// - Parameter oldest: what goes first until then, as far as that is known.
  func prepareEviction(startingWith oldest: [RemovalCandidate]) {
    guard !isReadOnly, evictionStart.isReached(by: index, table.total) else { return }
    if recovery.source == .scan {
      // The open has looked at every record, so that a look at the index is little more.
      while !((try? eviction.withLock { (list) throws(StoreError) in
        try list.collectFirst(from: index)
      }) ?? true) {}
      return evictionStart.wait(for: limits)
    }
    eviction.withLock { $0.start(with: oldest) }
    background.run { [weak self] in
      while let engine = self, !engine.isClosed {
        // Where a part of the index cannot be read now, that comes out once something has to go.
        let isReady = try? engine.eviction.withLock { (list) throws(StoreError) in
          try list.collectFirst(from: engine.index)
        }
        if isReady ?? true { return engine.evictionStart.wait(for: engine.limits) }
        // A write that has to evict now comes before the rest: who gives a lock up and takes it at once
        // lets nobody in.
        engine.pause(.microseconds(100))
      }
    }
  }

  @inline(never)
  private func comeCloseToLimits() {
    if isOverLimit {
      do throws(StoreError) { try evict() } catch {
        evictionStart.hasFailed.store(true, ordering: .relaxed)
        if !isClosed { configuration.log?("keeping the limits: \(error)") }
      }
      return
    }
    // The first list takes a look at all of the index: a part of it with each of the last writes
    // before there is something to evict.
    let isReady = try? eviction.withLock { (list) throws(StoreError) in
      try list.collectFirst(from: index)
    }
    // Where a part of the index cannot be read now, that comes out once something has to go.
    if isReady ?? true { evictionStart.wait(for: limits) }
  }

  private func evict() throws(StoreError) {
    evictionStart.wait(for: limits)
    var removal = Removal(.evicted(.countLimit), now: clock.now(), sparesRead: true)
    removal.holdsEvents = true
    defer { tell(&removal) }
    try eviction.withLock { (list) throws(StoreError) in
      // Where all that is chosen is read again and again, limits come first from some list on. What a
      // compaction has moved and somebody read meanwhile is found again in a list after that; where it is
      // written again and again, those writes make room.
      var lastSparing = list.number + 3
      var lastAskedNumber: Int?
      while isOverLimit, list.number <= lastSparing + 10 {
        let (count, byteCount) = excess
        // Without a number of bytes, it is the number of entries that is too large.
        removal.cause = .evicted(byteCount == .max ? .countLimit : .liveByteLimit)
        let victims = try list.take(count, from: index)
        if victims.isEmpty { return }
        // What was spared counts as just read. If that is all there is, it comes back in the next lists in
        // its order, and the limits come first.
        let lastAsked = lastAskedNumber ?? list.number + 1
        lastAskedNumber = lastAsked
        removal.asksForUse = list.number <= lastAsked
        removal.sparesRead = list.number < lastSparing
        let removedCount = removal.summary.count
        do throws(StoreError) {
          let seenCount = try remove(victims, byteTarget: byteCount, in: &removal)
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

  private var groupLimit: Int { index.isLoaded ? Self.groupLimit : Self.loadingGroupLimit }

  /// How many entries are to go now at most, and how many bytes at least: up to 1 % below the
  /// limits, so that not every write has to look for one.
  private var excess: (count: Int, byteCount: Int) {
    let count = index.count
    // The newest stays, however large it is: by itself it is within the limits.
    let most = min(groupLimit, max(1, count - 1))
    if count > limits.countLimit {
      let excess = count - limits.countLimit + limits.countLimit / 100
      return (min(excess, most), .max)
    }
    let live = table.total.liveByteCount
    // Others may have made room meanwhile.
    let excess = max(1, live - limits.liveByteLimit + min(limits.liveByteLimit / 100, 64 << 10))
    let meanByteCount = max(1, live / max(1, count))
    return (min(excess / meanByteCount + 1, most), excess)
  }
}
