internal import Synchronization

/// Makes room for a cache's writes on a full disk, by evicting the cache's coldest segments.
///
/// 1. Entries are removed by ordinary removals before their space is reclaimed.
/// 2. One write evicts at most a tenth of the entries, and none if that would not make enough room.
/// 3. After a failed attempt, it pauses, because other programs may take the room that the cache
///    frees.
///
/// A store that is not a cache never does this. The lock is taken before compaction's.
final class SegmentEvictor: Sendable {
  private struct State {
    /// No attempt is made before this time.
    var rest: Timestamp?
    /// When the last message was logged.
    var told: Timestamp?
  }

  /// The space to reclaim beyond the write's request and the reserve: the first blocks of a
  /// segment, and a manifest.
  private static let spareByteCount = 128 << 10
  private static let restAfterFailure = Duration.seconds(10)

  private let session: Session
  private let lookup: Lookup
  private let remover: Remover
  private let attempts = Atomic(0)
  private let state = Lock(State())
  private var compactor: Compactor { remover.writer.compactor }

  init(_ remover: Remover) {
    session = remover.session
    lookup = remover.lookup
    self.remover = remover
  }

  /// Makes writes that find no room call this evictor.
  func start() {
    compactor.lastResort.withLock {
      $0 = LastResort(
        makeRoom: { [weak self] (byteCount, allowance) throws(StoreError) in
          try self?.makeRoom(forByteCount: byteCount, &allowance) ?? false
        }, noteFailure: { [weak self] in self?.noteFailure() })
    }
  }

  /// Makes room for a write that found none. Returns `false` if the cache evicts nothing for it.
  /// The caller must hold no lock.
  ///
  /// - Parameter allowance: how many entries may be evicted for this write, or `nil` for a tenth of
  ///   all.
  private func makeRoom(
    forByteCount byteCount: Int, _ allowance: inout Int?
  ) throws(StoreError) -> Bool {
    let attempt = attempts.load(ordering: .acquiring)
    var removal = try remover.begin(.evicted(.freeDiskSpace), sparesRead: false)
    removal.holdsEvents = true
    defer { remover.tell(&removal) }
    return try state.withLock { (state) throws(StoreError) -> Bool in
      // Another write has made room in the meantime.
      if attempts.load(ordering: .acquiring) != attempt { return true }
      // If the clock was set back, the rest may seem far away.
      if let rest = state.rest, removal.now < rest,
        rest <= removal.now.advanced(by: Self.restAfterFailure)
      {
        return false
      }
      defer { attempts.wrappingAdd(1, ordering: .releasing) }
      let gained = try giveUp(byteCount, in: &removal, &allowance)
      if gained < byteCount { state.rest = removal.now.advanced(by: Self.restAfterFailure) }
      if removal.summary.count > 0 { note(removal.summary, &state, removal.now) }
      return gained > 0
    }
  }

  /// Call if the write still finds no room.
  func noteFailure() {
    let rest = session.clock.now().advanced(by: Self.restAfterFailure)
    state.withLock { $0.rest = rest }
  }

  private func note(_ summary: RemovalSummary, _ state: inout State, _ now: Timestamp) {
    if let told = state.told, now < told.advanced(by: .seconds(60)), now >= told { return }
    state.told = now
    session.tell(
      .warning, .maintenance,
      "the disk is full: a write evicted \(summary.count) entries, \(summary.cost) bytes in all")
  }

  /// - Returns: the number of bytes reclaimed.
  private func giveUp(
    _ neededByteCount: Int, in removal: inout Removal, _ allowed: inout Int?
  ) throws(StoreError) -> Int {
    try lookup.index.loadAll()
    let count = lookup.index.count
    var allowance = allowed ?? max(1, count / 10)
    defer { allowed = allowance }
    let mean = lookup.table.total.liveByteCount / max(1, count)
    guard count > 0, mean * allowance >= neededByteCount else { return 0 }
    let allocated = compactor.log.allocatedByteCount
    // Keep some of the allowance, in case other programs take the room.
    let spare = compactor.log.reserveSize.byteCount + Self.spareByteCount
    let byteCount = neededByteCount + min(spare, mean * allowance / 3)
    let pinned = lookup.table.total.pinnedByteCount
    // Measure the log, because a background round may reclaim what this call has made dead. Bytes
    // that a reader still holds are not reclaimed.
    var newlyPinned: Int { max(0, lookup.table.total.pinnedByteCount - pinned) }
    var gained: Int { allocated - compactor.log.allocatedByteCount - newlyPinned }
    while gained < byteCount, allowance > 0 {
      guard let victim = try coldestSegment() else { break }
      let victims = try entries(in: victim.granules).prefix(allowance)
      let before = removal.summary.count
      do throws(StoreError) { try remover.remove(Array(victims), in: &removal) } catch {
        guard case .noSpace = error, removal.summary.count > before else { throw error }
      }
      let removedCount = removal.summary.count - before
      allowance -= removedCount
      let wasGained = gained
      try compactor.giveBack(victim.id)
      if gained <= wasGained, removedCount == 0 || newlyPinned > 0 { break }
    }
    return gained
  }

  /// The segment that is needed least, by the average access time of its live records and its share
  /// of live bytes.
  ///
  /// Returns no reference to the segment, because the space of a referenced segment cannot be
  /// reclaimed.
  ///
  /// - Complexity: O(keys).
  private func coldestSegment() throws(StoreError) -> (id: SegmentID, granules: Range<Int>)? {
    var sums: [SegmentID: (ticks: Double, count: Double)] = [:]
    var oldest = UInt64.max
    try lookup.forEachEntry { entry, _ in
      guard let segment = lookup.table.segment(at: entry.location) else { return }
      sums[segment.id, default: (0, 0)].ticks += Double(entry.tick)
      sums[segment.id, default: (0, 0)].count += 1
      oldest = min(oldest, entry.tick)
    }
    let span = max(1, Double(lookup.index.recency.now) - Double(oldest))
    func heat(_ segment: Segment) -> Double {
      let sum = sums[segment.id] ?? (0, 0)
      let age = sum.count == 0 ? 0 : (sum.ticks / sum.count - Double(oldest)) / span
      let share =
        Double(segment.usage.liveByteCount) / Double(max(1, segment.allocatedByteCount))
      return age * share
    }
    let candidates = try compactor.segmentsToGiveUp().filter { sums[$0.id] != nil }
    return candidates.min { heat($0) < heat($1) }.map { ($0.id, $0.granules) }
  }

  /// The entries of a segment, the least recently used first.
  private func entries(in granules: Range<Int>) throws(StoreError) -> [RemovalCandidate] {
    var found: [RemovalCandidate] = []
    try lookup.forEachEntry { entry, shard in
      guard granules.contains(entry.location.granule) else { return }
      found.append(
        RemovalCandidate(entry, inShard: shard, rank: entry.tick))
    }
    return found.sorted { $0.goesBefore($1) }
  }
}
