internal import Synchronization

/// Trims: removals of many entries by count, size, age, deadline, free space or predicate.
@usableFromInline
package final class Trimmer: Sendable {
  private let session: Session
  private let lookup: Lookup
  private let reader: Reader
  let expiry: Expiry
  let remover: Remover
  /// Whether free space is being recovered. Recovery continues until there is somewhat more than
  /// the floor.
  private let isWinningSpace = Atomic(false)
  /// How long expired entries stay for readers of stale values, in milliseconds. It only increases.
  let retention = Atomic<Int64>(0)
  /// How many entries the recovery of free space has removed.
  private let evictedCount = Atomic(0)
  private var compactor: Compactor { remover.writer.compactor }

  init(_ remover: Remover, _ reader: Reader, _ expiry: Expiry) {
    session = remover.session
    lookup = remover.lookup
    self.remover = remover
    self.reader = reader
    self.expiry = expiry
  }

  /// Removes entries, and returns a summary of the removed entries.
  package func run(
    _ trim: Trim, durability: Durability?, _ pending: inout PendingWrite
  ) throws(StoreError) -> RemovalSummary {
    let removal: Removal
    switch trim {
    case .toCount(let limit, let order): removal = try self.trim(toCount: limit, order)
    case .toBytes(let limit, let order):
      var begun = try begin(toLimit: limit, order)
      try self.trim(in: &begun, toBytes: max(0, limit), order)
      removal = begun
    case .toFreeDiskSpace(let floor):
      var begun = try remover.begin(.evicted(.freeDiskSpace), sparesRead: true)
      while try makeFreeSpace(floor, in: &begun) {}
      removal = begun
    case .unused(let age) where age <= .zero, .older(let age) where age <= .zero:
      removal = try self.trim(toCount: 0, .leastRecentlyUsed)
    case .unused(let age): removal = try trimUnused(for: age)
    case .older(let age): removal = try trimOlder(than: age)
    case .expired:
      var begun = try remover.begin(.expired, sparesRead: true)
      try removeExpired(in: &begun)
      removal = begun
    }
    return remover.end(removal, durability, &pending)
  }

  // MARK: To a limit

  private func begin(toLimit limit: Int, _ order: TrimOrder) throws(StoreError) -> Removal {
    // Zero means zero, even if others read in the meantime.
    try remover.begin(
      .evicted(.trim), sparesRead: order == .leastRecentlyUsed && limit > 0)
  }

  private func trim(toCount limit: Int, _ order: TrimOrder) throws(StoreError) -> Removal {
    var removal = try begin(toLimit: limit, order)
    let limit = max(0, limit)
    try removeExpired(in: &removal) { lookup.index.count > limit }
    var wanted = lookup.index.count - limit
    try trim(in: &removal, order) { done in
      wanted -= done.count
      // Entries that others remove in the meantime need not be removed here. Entries that others
      // add are not this call's task.
      return (min(wanted, lookup.index.count - limit), .max)
    }
    return removal
  }

  private func trim(
    in removal: inout Removal, toBytes limit: Int, _ order: TrimOrder
  ) throws(StoreError) {
    try removeExpired(in: &removal) { lookup.table.total.liveByteCount > limit }
    var wanted = lookup.table.total.liveByteCount - limit
    var guess = 0
    try trim(in: &removal, order) { done in
      wanted -= done.cost
      let live = lookup.table.total.liveByteCount
      let bytes = min(wanted, live - limit)
      let count = lookup.index.count
      if bytes <= 0 || count == 0 { return (0, 0) }
      // Sizes are not in the index, so remove as many entries as are needed at average size, and
      // more if the last ones were small.
      guess = min(count, max(bytes / max(1, live / count) + 1, guess * 2))
      return (guess, bytes)
    }
  }

  /// Removes entries round by round until `remaining` reports that none are left to remove.
  ///
  /// - Parameter remaining: receives what the last round removed, and returns the maximum number of
  ///   entries and the minimum number of bytes for the next.
  private func trim(
    in removal: inout Removal, _ order: TrimOrder,
    remaining: (RemovalSummary) -> (count: Int, byteCount: Int)
  ) throws(StoreError) {
    var done = RemovalSummary()
    // Give up if every chosen entry is read or rewritten, round after round.
    var idleRounds = 0
    while idleRounds < 3 {
      let (count, byteCount) = remaining(done)
      if count <= 0 { return }
      // Do not choose all entries at once, to limit the memory used.
      let bound = max(1 << 16, lookup.index.count / 8)
      let victims = try select(min(count, bound), order, in: &removal)
      if victims.isEmpty { return }
      let before = removal.summary
      try remover.remove(victims, byteTarget: byteCount, in: &removal)
      done.count = removal.summary.count - before.count
      done.cost = removal.summary.cost - before.cost
      idleRounds = done.count == 0 ? idleRounds + 1 : 0
    }
  }

  /// The entries to remove first, in order.
  private func select(
    _ count: Int, _ order: TrimOrder, in removal: inout Removal
  ) throws(StoreError) -> [RemovalCandidate] {
    var selection = CandidateSelection(limit: count)
    let damaged = removal.damaged
    switch order {
    case .leastRecentlyUsed:
      var entries: [IndexEntry] = []
      for shard in 0..<HashIndex.shardCount {
        try session.checkUsable()
        try lookup.index.copyEntries(ofShard: shard, into: &entries)
        for entry in entries where damaged.isEmpty || !damaged.contains(entry.location) {
          selection.add(RemovalCandidate(entry, inShard: shard, rank: entry.tick))
        }
      }
    case .largestFirst:
      for shard in 0..<HashIndex.shardCount {
        try remover.forEachHead(inShard: shard, in: &removal) { entry, found in
          selection.add(
            RemovalCandidate(
              entry, inShard: shard, rank: .max - UInt64(found.record.header.byteCount),
              sequence: found.record.sequence))
        }
      }
    }
    return selection.sorted()
  }

  // MARK: Free space on the disk

  /// Takes one step towards this much free space on the disk. A step is a round of compaction,
  /// which removes no entries, or else a removal of the least recently used entries. On a full
  /// disk, each makes room for the other.
  ///
  /// - Returns: whether there may be more to do.
  func makeFreeSpace(_ floor: Int, in removal: inout Removal) throws(StoreError) -> Bool {
    if try missingByteCount(floor) <= 0 { return false }
    do throws(StoreError) {
      if try compactor.reclaimDeadSpace() { return true }
    } catch {
      guard case .noSpace = error else { throw error }
    }
    let missing = try missingByteCount(floor)
    if missing <= 0 || lookup.index.count == 0 { return false }
    let count = removal.summary.count
    do throws(StoreError) {
      let limit = max(0, lookup.table.total.liveByteCount - missing)
      try trim(in: &removal, toBytes: limit, .leastRecentlyUsed)
    } catch {
      guard case .noSpace = error, removal.summary.count > count else { throw error }
    }
    // If no entry was removed, those that are left are damaged and cannot be removed.
    return removal.summary.count > count
  }

  /// How many more bytes must become free, in addition to those that readers will release.
  func missingByteCount(_ floor: Int) throws(StoreError) -> Int {
    let free = try session.directory.diskFreeByteCount()
    return max(0, floor) - free - min(lookup.table.total.pinnedByteCount, .max - free)
  }

  /// Takes one step towards the free-space floor, if there is less free space.
  func approach(_ floor: Int) throws(StoreError) -> Bool {
    let free = try session.directory.diskFreeByteCount()
    if free >= floor, !isWinningSpace.load(ordering: .relaxed) { return false }
    // Go beyond the floor by as much as the log preallocates, but no further: the fewer bytes are
    // dead, the more must be copied for each byte reclaimed.
    let more = min(max(floor / 64, 2 * Appender.firstAllocation), Appender.largestGrowth)
    let (target, isTooLarge) = floor.addingReportingOverflow(more)
    var removal = try remover.begin(.evicted(.freeDiskSpace), sparesRead: true)
    let hasMore = try makeFreeSpace(isTooLarge ? floor : target, in: &removal)
    isWinningSpace.store(hasMore, ordering: .relaxed)
    let summary = remover.end(removal)
    evictedCount.wrappingAdd(summary.count, ordering: .relaxed)
    if hasMore { return true }
    let count = evictedCount.exchange(0, ordering: .relaxed)
    if count > 0, try missingByteCount(floor) > 0 {
      session.tell(
        .warning, .maintenance,
        "freeDiskSpaceFloor: \(count) entries were removed, but free space is still below it")
    }
    return false
  }

  // MARK: By age

  private func trimUnused(for age: Duration) throws(StoreError) -> Removal {
    var removal = try remover.begin(.evicted(.trim), sparesRead: true)
    let times = lookup.index.recency.times
    // A read may have left an entry its stamp.
    let oldest = removal.now.advanced(by: .zero - age)
      .advanced(by: .zero - lookup.index.recency.slack)
    var entries: [IndexEntry] = []
    try remover.removeShardByShard(in: &removal) { (shard, _) throws(StoreError) in
      try lookup.index.copyEntries(ofShard: shard, into: &entries)
      return entries.filter { times.time(of: $0.tick) < oldest }
        .map { RemovalCandidate($0, inShard: shard, rank: $0.tick) }
    }
    return removal
  }

  private func trimOlder(than age: Duration) throws(StoreError) -> Removal {
    var removal = try remover.begin(.evicted(.trim), sparesRead: false)
    let oldest = removal.now.advanced(by: .zero - age)
    try remover.removeShardByShard(in: &removal) { (shard, removal) throws(StoreError) in
      var victims: [RemovalCandidate] = []
      // No record is older than its segment.
      try remover.forEachHead(inShard: shard, in: &removal, where: { $0.created < oldest }) {
        entry, found in
        if found.record.segment.written(found.record.header) < oldest {
          let sequence = found.record.sequence
          victims.append(
            RemovalCandidate(entry, inShard: shard, rank: sequence, sequence: sequence))
        }
      }
      return victims
    }
    return removal
  }

  /// Removes the entries that expired so long ago that no call accepts them.
  func removeUnretained() throws(StoreError) -> RemovalSummary {
    var removal = try remover.begin(.expired, sparesRead: true)
    try removeExpired(in: &removal, retention: retention.load(ordering: .relaxed))
    return remover.end(removal)
  }

  /// Removes expired entries if `isNeeded` returns true.
  private func removeExpired(
    in removal: inout Removal, retention: Int64 = 0, while isNeeded: () -> Bool = { true }
  ) throws(StoreError) {
    if lookup.index.expirableCount == 0 || !isNeeded() { return }
    // Spare entries that a read, at an earlier time, has found alive in the meantime.
    let end = removal.now.advanced(byMilliseconds: -retention)
    var expired = Removal(.expired, now: end, written: removal.now, sparesRead: true)
    let look = expiry.look(at: end, present: removal.now)
    _ = try expiry.settleDeadlines(look)
    try remover.removeShardByShard(in: &expired) { (shard, _) throws(StoreError) in
      var victims: [RemovalCandidate] = []
      _ = try expiry.forEachDue(inShard: shard, look, visitsPassed: true) { entry, _ in
        victims.append(RemovalCandidate(entry, inShard: shard, rank: entry.tick))
      }
      return victims
    }
    removal.add(expired)
  }

  // MARK: By predicate

  /// Removes every entry for which `isVictim` returns true. The closure is called with no lock
  /// held.
  package func remove(
    durability: Durability?, _ pending: inout PendingWrite,
    where isVictim: (_ key: RawSpan, _ metadata: RawSpan, EntryInfo) throws -> Bool
  ) throws -> RemovalSummary {
    var removal = try remover.begin(.removed, sparesRead: false)
    var victims: [RemovalCandidate] = []
    for shard in 0..<HashIndex.shardCount {
      victims += try self.victims(inShard: shard, in: &removal, sparesExpired: true) { found in
        try isVictim(found.record.key, found.record.metadata, reader.info(of: found))
      }.victims
    }
    victims.sort { $0.goesBefore($1) }
    try remover.remove(victims, in: &removal)
    return remover.end(removal, durability, &pending)
  }

  /// Removes entries for which `isVictim` returns true, including expired ones, from some shards.
  /// Does not wait for a sync.
  ///
  /// - Parameters:
  ///   - start: the first shard.
  ///   - limit: after this many entries, no further shard is begun.
  /// - Returns: the next shard, or `nil` if there is none; and whether every entry that existed at
  ///   the start could be read and every victim was removed.
  func removeRound(
    fromShard start: Int, lookingAt limit: Int,
    where isVictim: (_ metadata: RawSpan, SequenceNumber) -> Bool
  ) throws(StoreError) -> (next: Int?, isWhole: Bool) {
    var removal = try remover.begin(.removed, sparesRead: false)
    // A batch in the log may not be completely in the index yet.
    remover.writer.supply.log.waitUntil { $0.unpublished == nil ? () : nil }
    var seenCount = 0
    var isWhole = true
    for shard in start..<HashIndex.shardCount {
      if seenCount >= limit {
        remover.end(removal)
        return (shard, isWhole && !removal.hasUnreadable)
      }
      // A compaction may move a victim just before its removal, so the shard is searched again.
      var vainCount = 0
      while vainCount < 2 {
        let found: (victims: [RemovalCandidate], seenCount: Int)
        do {
          found = try victims(inShard: shard, in: &removal, sparesExpired: false) {
            isVictim($0.record.metadata, $0.record.sequence)
          }
        } catch let error as StoreError { throw error } catch {
          preconditionFailure("the closure throws nothing")
        }
        seenCount += found.seenCount
        if found.victims.isEmpty { break }
        let count = removal.summary.count
        try remover.remove(found.victims, in: &removal)
        if removal.summary.count == count { vainCount += 1 }
      }
      if vainCount == 2 { isWhole = false }
    }
    remover.end(removal)
    return (nil, isWhole && !removal.hasUnreadable)
  }

  /// The entries to remove from a shard.
  private func victims(
    inShard shard: Int, in removal: inout Removal, sparesExpired: Bool,
    where isVictim: (borrowing FoundRecord) throws -> Bool
  ) throws -> (victims: [RemovalCandidate], seenCount: Int) {
    var victims: [RemovalCandidate] = []
    var seenCount = 0
    var failure: (any Error)?
    let now = removal.now
    try remover.forEachHead(inShard: shard, in: &removal) { entry, found in
      if failure != nil { return }
      seenCount += 1
      if sparesExpired, entry.flags.contains(.canExpire),
        lookup.hasExpired(found.header, tick: entry.tick, now: now)
      {
        return
      }
      do {
        if try isVictim(found) {
          victims.append(
            RemovalCandidate(
              entry, inShard: shard, rank: entry.tick, sequence: found.record.sequence))
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return (victims, seenCount)
  }
}
