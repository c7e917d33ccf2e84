internal import Synchronization

/// Compaction: what is live in segments with dead records is copied into new segments, which take
/// their place in the log, so that the space of the dead is given back.
///
/// A round copies at most a few segments, replaces the manifest once, and moves the entries of the
/// index. A round that ends early leaves the log as it was. Readers and writers wait only while it
/// moves entries, a few at a time.
extension Engine {
  /// The most bytes that a round copies, but for a segment that holds more by itself.
  ///
  /// A kill throws a round away, so a round must not grow with the store or with its backlog.
  var roundByteLimit: Int { 2 * configuration.segmentByteLimit }

  /// Runs one round if the segments take more than the space bound allows, if a whole segment is
  /// dead, or if small segments have piled up.
  ///
  /// - Returns: whether there may be more to do.
  func compactIfNeeded() throws(StoreError) -> Bool {
    giveBackLeft()
    // Its records count as dead until they are in the index. Its writer wakes housekeeping then.
    if appender.withLock({ $0.unpublished != nil }) { return false }
    return try maintenance.withLock { (state) throws(StoreError) -> Bool in
      let (planner, allocated, live) = plan(state.compaction)
      let allowed = allowedGarbage(live: live)
      let garbage = allocated - live
      let isOverBound = garbage > allowed - allowed / 4
      updateAllowance(planner, allowed: allowed, state.compaction)
      let reclaimed = state.compaction.reclaimedByteCount
      defer {
        if state.compaction.reclaimedByteCount == reclaimed,
          appender.withLock({ $0.allowance.excess > 0 })
        {
          liftAllowance()
        }
      }
      // Beyond the bound there is no time to lose.
      return try runRound(
        of: planner, isOverBound: isOverBound, highestCost: CompactionPlanner.highestCost,
        goal: garbage - allowed + allowed / 4,
        pace: garbage > allowed ? nil : CompactionPace(pause),
        &state.compaction)
    }
  }

  /// Whether a round would be run now.
  var needsCompaction: Bool {
    maintenance.withLock { state in
      let (planner, allocated, live) = plan(state.compaction)
      let allowed = allowedGarbage(live: live)
      return !planner.wholeDeadSegments().isEmpty
        || !planner.nextRound(isOverBound: allocated - live > allowed - allowed / 4).isEmpty
    }
  }

  /// Runs one round that gives back dead space, however much has to be copied for it.
  ///
  /// - Returns: whether it gave back anything.
  func reclaimDeadSpace() throws(StoreError) -> Bool {
    giveBackLeft()
    return try maintenance.withLock { (state) throws(StoreError) -> Bool in
      let planner = plan(state.compaction).planner
      if try runRound(
        of: planner, isOverBound: true, highestCost: .max, goal: roundByteLimit,
        pace: CompactionPace(pause), &state.compaction)
      {
        return true
      }
      // What the active segment holds can be compacted once it is left for the next.
      let least = 2 * Segment.slack
      guard planner.hasGainWhereWritten(atLeast: least, highestCost: .max) else { return false }
      do throws(StoreError) {
        try leaveActiveSegment { $0.deadByteCount >= least }
        try sealRolledSegments()
      } catch {
        guard case .noSpace = error else { throw error }
        return false
      }
      return true
    }
  }

  /// Runs the round that a planner proposes. On a full disk it gives back up to `goal` bytes by
  /// pieces instead.
  private func runRound(
    of planner: CompactionPlanner, isOverBound: Bool, highestCost: Int, goal: Int,
    pace: CompactionPace?, _ state: inout CompactionState
  ) throws(StoreError) -> Bool {
    var report = CompactionReport()
    let dead = planner.wholeDeadSegments()
    if !dead.isEmpty {
      try run(Array(dead), pace: nil, &state, &report)
      return report.removedSegmentCount > 0
    }
    let inputs = planner.nextRound(isOverBound: isOverBound, highestCost: highestCost)
    if inputs.isEmpty { return false }
    do throws(StoreError) { try run(inputs, pace: pace, &state, &report) } catch {
      guard case .noSpace = error, isOverBound else { throw error }
      let gained = try compactInLittleRoom(
        goal: min(goal, roundByteLimit), highestCost: highestCost, &state, &report)
      if gained <= 0 { throw error }
      return true
    }
    return report.removedSegmentCount > 0
  }

  /// Compacts every segment with a dead byte.
  package func compact() throws(StoreError) -> CompactionReport {
    try checkWritable()
    // What it does is in its report, and not done beside it.
    let isHeldBack = !housekeeping.isQueued.exchange(true, ordering: .relaxed)
    defer {
      if isHeldBack { housekeeping.isQueued.store(false, ordering: .relaxed) }
      wakeHousekeeping()
    }
    var report = CompactionReport()
    do throws(StoreError) { try compactAll(&report) } catch { throw error.located(in: path) }
    report.pinnedByteCount = table.total.pinnedByteCount
    return report
  }

  /// Runs one step of a compaction by hand. Between steps others get the lock.
  func byHand<Value>(
    _ step: (inout CompactionState) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try maintenance.withLock { (state) throws(StoreError) -> Value in
      state.compaction.isByHand = true
      defer { state.compaction.isByHand = false }
      return try step(&state.compaction)
    }
  }

  private func compactAll(_ report: inout CompactionReport) throws(StoreError) {
    report.byteCountBefore = allocatedByteCount
    // The caller asked for it: what could not be read before is tried again.
    maintenance.withLock { $0.compaction.unreadable = [] }
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
        try compactInRounds(&report)
        if !isActiveLeft {
          isActiveLeft = true
          // It is left with what the reserve lends, if that gives something back.
          let gained = try byHand { (state) throws(StoreError) in
            try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
          }
          gainedInAll += max(0, gained)
          if gained >= 4096 { continue }
        }
        if isSealed { break }
        isSealed = true
        try sealRolledSegments()
      } catch {
        guard case .noSpace = error else { throw error }
        let gained = try byHand { (state) throws(StoreError) in
          try compactInLittleRoom(goal: .max, highestCost: .max, &state, &report)
        }
        // With room again, what has to be looked at together is. Where nothing was to be had, who asked is told.
        gainedInAll += max(0, gained)
        if gainedInAll == 0 { throw error }
        if gained < 4096 { break }
      }
    }
    // A sync may have failed after it had been through all that a round waited for, and what follows a
    // failure does nothing and says nothing.
    try appender.withLock { (appender) throws(StoreError) in
      try appender.checkWritable(path: path)
    }
    report.byteCountAfter = allocatedByteCount
    report.unreadableSegmentCount = maintenance.withLock { $0.compaction.unreadable.count }
  }

  private func compactInRounds(_ report: inout CompactionReport) throws(StoreError) {
    func run(_ inputs: [SegmentID]) throws(StoreError) {
      try byHand { (state) throws(StoreError) in
        try self.run(inputs, pace: nil, &state, &report)
      }
    }
    let planner = try byHand { (state) throws(StoreError) in plan(state).planner }
    let dead = planner.wholeDeadSegments()
    if !dead.isEmpty { try run(Array(dead)) }
    for inputs in planner.allRounds() { try run(inputs.filter { !dead.contains($0) }) }
    try compactRemainders(&report)
  }

  /// Compacts what the rounds before have made worth it: tombstones that waited for a segment of a later
  /// round, and extensions whose puts were copied and took the end along. These may lie anywhere, also
  /// in the segment that is written to.
  private func compactRemainders(_ report: inout CompactionReport) throws(StoreError) {
    // What is copied here may have its extensions in yet other segments. Each pass leaves fewer in
    // force, but for those of writers: what these leave is for another compaction.
    var passesLeft = appender.withLock { $0.segments.count } + 1
    let next = appender.withLock { $0.nextSequence }
    repeat {
      passesLeft -= 1
      try leaveActiveSegment { $0.deadExtensionCount > 0 }
      try sealRolledSegments()
      let rounds = try byHand { (state) throws(StoreError) in
        plan(state).planner.remainingRounds()
      }
      if rounds.isEmpty { return }
      for inputs in rounds {
        try byHand { (state) throws(StoreError) in
          try run(inputs, pace: nil, &state, &report)
        }
      }
    } while passesLeft > 0 && appender.withLock { $0.nextSequence } == next
  }

  // MARK: What is there

  /// Bytes that the segments of the log may take beside what is live.
  ///
  /// Below the size of two segments nothing is done: the active segment cannot be compacted, and one
  /// is being written while others are still there.
  func allowedGarbage(live: Int) -> Int {
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
    return (
      CompactionPlanner(
        facts, segmentByteLimit: configuration.segmentByteLimit, budget: roundByteLimit),
      allocatedByteCount, live
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
    try withRoom(byteCount: 0, isRemoval: true, mayCompact: false) { _ in }
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
  /// Bytes that the rounds of the session have given back.
  var reclaimedByteCount = 0
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
