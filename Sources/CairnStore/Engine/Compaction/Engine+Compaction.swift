internal import Synchronization

/// Compaction: what is live in segments with dead records is copied into new segments, which take
/// their place in the log, so that the space of the dead is given back.
///
/// It goes by rounds. A round copies some segments' worth, replaces the manifest once, and moves the
/// entries of the index; whatever ends it early leaves the log as it was. Nobody waits for it but
/// for the moments in which it moves entries, a few at a time.
extension Engine {
  /// Gives back space until what the segments take is within the bound again, or nothing is gained.
  /// Slowly, so that others get on.
  func compactIfNeeded() throws(StoreError) {
    try checkWritable()
    giveBackLeft()
    var report = CompactionReport()
    let failure = maintenance.withLock { state -> StoreError? in
      do throws(StoreError) {
        try compactToBound(&state.compaction, &report)
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
  }

  private func compactToBound(
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    // More rounds than this cannot all have gained something.
    var roundsLeft = 64 + 2 * appender.withLock { $0.sealed.count }
    while roundsLeft > 0 {
      roundsLeft -= 1
      let (planner, allocated, live) = plan(state)
      let dead = planner.wholeDeadSegments()
      if !dead.isEmpty {
        try run(Array(dead), pace: nil, &state, &report)
        continue
      }
      let allowed = allowedGarbage(live: live)
      let garbage = allocated - live
      let isOverBound = garbage > allowed - allowed / 4
      let inputs = planner.nextRound(isOverBound: isOverBound)
      if inputs.isEmpty { return }
      do throws(StoreError) {
        // Once the bound is passed there is no time to lose.
        let pace = CompactionPace { [self] duration in
          if roomSeekers.load(ordering: .relaxed) == 0 { pause(duration) }
        }
        try run(inputs, pace: garbage > allowed ? nil : pace, &state, &report)
        // What a round has written is read by the next open until there is a checkpoint, and there may
        // be many more rounds.
        try checkpointIfNeeded()
      } catch {
        guard case .noSpace = error, isOverBound else { throw error }
        let excess = garbage - allowed + allowed / 4
        let gained = try compactInLittleRoom(
          goal: excess, highestCost: CompactionPlanner.highestCost, &state, &report)
        if gained <= 0 { throw error }
      }
    }
  }

  /// Compacts every segment with a dead byte.
  package func compact() throws(StoreError) -> CompactionReport {
    try checkWritable()
    var report = CompactionReport()
    let failure = maintenance.withLock { state -> StoreError? in
      do throws(StoreError) {
        try compactAll(&state.compaction, &report)
        return nil
      } catch { return error }
    }
    if let failure { throw failure.located(in: path) }
    report.pinnedByteCount = table.total.pinnedByteCount
    return report
  }

  private func compactAll(
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    report.byteCountBefore = allocatedByteCount
    // Asked for by a person: what could not be read before is tried again.
    state.unreadable = []
    state.isByHand = true
    defer { state.isByHand = false }
    var isActiveLeft = true
    do throws(StoreError) { try leaveActiveSegment { $0.deadByteCount > 0 } } catch {
      // On a full disk it stays at first, and others may go.
      guard case .noSpace = error else { throw error }
      isActiveLeft = false
    }
    var isSealed = true
    do throws(StoreError) { try sealRolledSegments() } catch {
      // It makes the manifest longer, and what is dead as a whole makes it shorter.
      guard case .noSpace = error else { throw error }
      isSealed = false
    }
    var gainedInAll = 0
    while true {
      do throws(StoreError) {
        try compactInRounds(&state, &report)
        if !isActiveLeft {
          isActiveLeft = true
          // It is left with what the reserve lends, if that gives something back.
          let gained = try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
          gainedInAll += max(0, gained)
          if gained >= 4096 { continue }
        }
        if isSealed { break }
        isSealed = true
        try sealRolledSegments()
      } catch {
        guard case .noSpace = error else { throw error }
        let gained = try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
        // With room again, what has to be looked at together is. Where nothing was to be had, who asked is told.
        gainedInAll += max(0, gained)
        if gainedInAll == 0 { throw error }
        if gained < 4096 { break }
      }
    }
    // A sync may have failed after it had been through all that a round waited for, and what follows a
    // failure does nothing and says nothing.
    if !planted(.compactionKeepsQuiet) {
      try appender.withLock { (appender) throws(StoreError) in
        try appender.checkWritable(path: path)
      }
    }
    report.byteCountAfter = allocatedByteCount
    report.unreadableSegmentCount = state.unreadable.count
  }

  private func compactInRounds(
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    let planner = plan(state).planner
    let dead = planner.wholeDeadSegments()
    if !dead.isEmpty { try run(Array(dead), pace: nil, &state, &report) }
    for inputs in planner.allRounds() {
      try run(inputs.filter { !dead.contains($0) }, pace: nil, &state, &report)
    }
    try compactRemainders(&state, &report)
  }

  /// Compacts what the rounds before have made worth it: tombstones that waited for a segment of a later
  /// round, and extensions whose puts were copied and took the end along. These may lie anywhere, also
  /// in the segment that is written to.
  private func compactRemainders(
    _ state: inout CompactionState, _ report: inout CompactionReport
  ) throws(StoreError) {
    // What is copied here may have its extensions in yet other segments. Each pass leaves fewer in
    // force, but for those of writers: what these leave is for another compaction.
    var passesLeft = appender.withLock { $0.segments.count } + 1
    let next = appender.withLock { $0.nextSequence }
    repeat {
      passesLeft -= 1
      try leaveActiveSegment { $0.deadExtensionCount > 0 }
      try sealRolledSegments()
      let rounds = plan(state).planner.remainingRounds()
      if rounds.isEmpty { return }
      for inputs in rounds { try run(inputs, pace: nil, &state, &report) }
    } while passesLeft > 0 && appender.withLock { $0.nextSequence } == next
  }

  // MARK: What is there

  /// Bytes that the segments of the log may take beside what is live.
  ///
  /// Below the size of two segments nothing is done: the active segment cannot be compacted, and one
  /// is being written while others are still there.
  private func allowedGarbage(live: Int) -> Int {
    let share = Double(live) * (configuration.spaceBound - 1)
    return max(
      configuration.deadByteFloor ?? 2 * configuration.segmentByteLimit, Int(min(share, 1e18)))
  }

  var allocatedByteCount: Int {
    appender.withLock { appender in
      appender.segments.reduce(appender.prepared?.allocatedByteCount ?? 0) {
        $0 + $1.allocatedByteCount
      }
    }
  }

  func plan(
    _ state: CompactionState
  ) -> (planner: CompactionPlanner, allocated: Int, live: Int) {
    let sealed = manifest.withLock { Set($0.manifest.sealedSegments.map(\.id)) }
    let live = table.total.liveByteCount
    // Under the lock: a segment that is held for longer would keep its space in a removal of all.
    let facts = appender.withLock { appender in
      appender.segments.map {
        SegmentFacts(
          $0,
          // Places of what is copied are kept in 32 bits; no writer makes a segment as long as that.
          isCandidate: sealed.contains($0.id) && !state.unreadable.contains($0.id)
            && $0.usage.end <= Int(UInt32.max) << 3)
      }
    }
    let limit = configuration.segmentByteLimit
    let allocated = allocatedByteCount
    // What a round costs beside its bytes, the syncs above all, weighs less where it is large; it is
    // so where writers are faster than compaction.
    let excess = allocated - live - allowedGarbage(live: live)
    return (
      CompactionPlanner(
        facts, segmentByteLimit: limit, budget: max(limit, live / 16, excess / 2)),
      allocated, live
    )
  }

  /// Leaves the active segment for the next where it holds dead records, so that it can be sealed.
  func leaveActiveSegment(
    where hasDead: (SegmentUsage) -> Bool
  ) throws(StoreError) {
    let sealed = manifest.withLock { Set($0.manifest.sealedSegments.map(\.id)) }
    let isNeeded = appender.withLock { appender in
      appender.segments.contains { !sealed.contains($0.id) && hasDead($0.usage) }
    }
    guard isNeeded else { return }
    // Begins a session where there is none, and with it seals what a close left open and full.
    try withRoom(byteCount: 0, isRemoval: true, isPart: true, mayCompact: false) { _ in }
    var hasLeft = false
    while !hasLeft {
      try prepareNextSegment()
      hasLeft = try appender.withLock { (appender) throws(StoreError) in
        try appender.checkWritable(path: path)
        guard let active = appender.active, hasDead(active.usage) else { return true }
        // A writer may have taken it meanwhile.
        guard let next = appender.prepared else { return false }
        try appender.roll(to: next)
        appender.prepared = nil
        return true
      }
    }
  }

  /// Whether the index has an entry of the key.
  func hasLivePut(of key: RawSpan) throws(StoreError) -> Bool {
    let found = try firstPlace(of: hash.hash(key)) { (place) throws(StoreError) in
      // What cannot be read is no reason to drop anything.
      let record = try? Record(
        in: place.segment, at: place.segment.offset(of: place.entry.location), part: .head,
        byCalls: true)
      return record?.hasKey(key) ?? false
    }
    return found != nil
  }
}

/// What the compactions of a session know.
struct CompactionState: Sendable {
  /// Segments that are damaged or could not be read: they are left as they are.
  var unreadable: Set<SegmentID> = []
  /// Whether somebody waits who is to be told of a disk that does not give its bytes.
  var isByHand = false
}

/// Rests after each piece for as long as it took.
final class CompactionPace {
  private var began = ContinuousClock.now
  private let pause: @Sendable (Duration) -> Void

  init(_ pause: @escaping @Sendable (Duration) -> Void) { self.pause = pause }

  func rest() {
    pause(min(began.duration(to: .now), .milliseconds(100)))
    began = .now
  }
}
