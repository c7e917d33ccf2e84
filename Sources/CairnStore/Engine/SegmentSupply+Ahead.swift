internal import Synchronization

// These jobs run ahead of the writers, so that writers need not wait. A job ends at once if the
// store has been closed. A failure is logged; the next write that needs the result gets the error
// itself. If no thread can be started, the job is dropped, because the caller's thread may hold a
// lock that the job takes.
extension SegmentSupply {
  /// Schedules the preparation of the next segment. Without a thread, the write that needs the
  /// segment makes it.
  private func requestNextSegment() {
    let isAsked = session.environment.background.runIfPossible { [self] in
      let isDone = session.attempt("preparing a segment", .warning) { () throws(StoreError) in
        try prepareNextSegment()
      }
      if isDone { return prefaultNextSegment() }
      // Allow another request after a while. Do not keep a closed store alive until then.
      let queue = session.environment.background
      let isAsked = queue.runIfPossible(after: HousekeepingAlarm.pauseAfterFailure) { [weak self] in
        self?.allowRequest()
      }
      if !isAsked { allowRequest() }
    }
    if !isAsked { allowRequest() }
  }

  private func allowRequest() { log.withLock { $0.isNextRequested = false } }

  /// Touches the pages of the next segment, unless large records bypass the mapping.
  private func prefaultNextSegment() {
    guard prefaults, !session.isClosed,
      let next = log.withLock({ $0.isAppendedByCalls ? nil : $0.prepared })
    else {
      return
    }
    next.mapping?.prefault(at: 0, count: next.allocatedByteCount & ~4095)
  }

  /// Schedules the chores that an append left.
  @inline(never)
  func run(_ chores: Appender.Chores) {
    if chores.needsNextSegment { requestNextSegment() }
    if chores.needsSealing, !session.wakeHousekeeping() { log.withLock { $0.isSealingDue = true } }
    guard let stretch = chores.prefault,
      !isPrefaulting.exchange(true, ordering: .relaxed)
    else { return }
    // Do not hold the segment: once it is rolled, a compaction may have to reclaim its space.
    let (id, offset, count) = (stretch.segment.id, stretch.offset, stretch.count)
    let isAsked = session.environment.background.runIfPossible { [self] in
      let active = log.withLock { $0.active }
      if !session.isClosed, let active, active.id == id {
        active.mapping?.prefault(at: offset, count: count)
      }
      isPrefaulting.store(false, ordering: .relaxed)
    }
    if !isAsked { isPrefaulting.store(false, ordering: .relaxed) }
  }

  /// Whether a background job touches pages ahead of the writer, so that writes cause no page
  /// faults.
  ///
  /// Only in a `.process` store: elsewhere, the next sync would also write out the pages touched
  /// ahead. In a measurement, that took 14 ms instead of 75 µs.
  var prefaults: Bool {
    if case .process = session.configuration.durability { return true }
    return false
  }
}
