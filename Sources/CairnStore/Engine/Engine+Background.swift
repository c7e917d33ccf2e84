internal import Synchronization

/// Which jobs wait to be run, so that none is queued twice.
final class BackgroundFlags: Sendable {
  let sealing = Atomic(false)
  let preparing = Atomic(false)
  /// The shortest interval, in milliseconds, after which a sync that waits will be run.
  let syncDelay = Atomic(Int64.max)
  let prefaulting = Atomic(false)
  let compacting = Atomic(false)
  /// Whether a session has begun and its first round of maintenance was not asked for yet.
  let firstRoundDue = Atomic(false)
  /// Whether rounds of maintenance are run.
  let maintaining = Atomic(false)
  /// Why the log was told that no checkpoint can be made, since the last that was.
  let toldOfNoCheckpoint = Atomic(CheckpointHindrance.none)
}

/// Why no checkpoint can be made, as far as the log is told of it anew.
enum CheckpointHindrance: UInt8, AtomicRepresentable {
  case none, noSpace, other
}

/// What a job holds that waits for a long time, in place of the engine: a store that was closed is
/// freed at once.
final class EngineHandle: Sendable {
  private let held = Lock<Engine?>(nil)

  var engine: Engine? { held.withLock { $0 } }

  /// Holds the engine until it is closed.
  func hold(_ engine: Engine) {
    held.withLock { $0 = engine }
    if engine.isClosed { drop() }
  }

  func drop() {
    let engine = held.withLock { held in
      defer { held = nil }
      return held
    }
    // Out of the lock, since it may be the last reference.
    withExtendedLifetime(engine) {}
  }
}

// What is done ahead or behind, so that writers need not wait. A job holds the engine (a weak
// reference would make every retain of it slow) and ends at once where it was closed, as a store
// is when its last user lets go. A job's failure is logged; what matters of it comes out at the
// next write.
extension Engine {
  /// Seals what was left, soon.
  func requestSealing() {
    guard !backgroundFlags.sealing.exchange(true, ordering: .relaxed) else { return }
    background.run { [self] in
      backgroundFlags.sealing.store(false, ordering: .relaxed)
      let isDone = attempt("sealing a segment") { () throws(StoreError) in
        try sealRolledSegments()
      }
      if isDone { return requestCompaction() }
      backgroundFlags.sealing.store(true, ordering: .relaxed)
      afterPause(on: background) { $0.sealing.store(false, ordering: .relaxed) }
    }
  }

  /// Gives back space, soon, where there is enough to be given back.
  func requestCompaction() {
    if isClosed { return }
    guard !backgroundFlags.compacting.exchange(true, ordering: .relaxed) else { return }
    maintenanceQueue.run { [self] in
      backgroundFlags.compacting.store(false, ordering: .relaxed)
      let isDone = attempt("compacting") { () throws(StoreError) in try compactIfNeeded() }
      if isDone { return }
      backgroundFlags.compacting.store(true, ordering: .relaxed)
      afterPause(on: maintenanceQueue) { $0.compacting.store(false, ordering: .relaxed) }
    }
  }

  /// Makes the next segment, soon, where the active one is more than half full.
  func requestNextSegment() {
    guard !backgroundFlags.preparing.exchange(true, ordering: .relaxed) else { return }
    background.run { [self] in
      let isDone = attempt("preparing a segment") { () throws(StoreError) in
        try prepareNextSegment()
      }
      if isDone {
        backgroundFlags.preparing.store(false, ordering: .relaxed)
        return
      }
      afterPause(on: background) { $0.preparing.store(false, ordering: .relaxed) }
    }
  }

  /// Syncs the log after at most `interval`.
  func requestSync(within interval: Duration) {
    let delay = interval.milliseconds
    let bound = planted(.shorterIntervalIgnored) ? Int64.max - 1 : delay
    guard backgroundFlags.syncDelay.min(delay, ordering: .relaxed).oldValue > bound else { return }
    handle.hold(self)
    background.run(after: interval) { [handle] in
      guard let engine = handle.engine else { return }
      // From here on a write asks for a sync of its own, since this one may miss it.
      engine.backgroundFlags.syncDelay.store(.max, ordering: .relaxed)
      engine.attempt("syncing") { () throws(StoreError) in try engine.sync() }
    }
  }

  /// Has the chores done that an append left.
  @inline(never)
  func run(_ chores: Appender.Chores) {
    if chores.needsNextSegment { requestNextSegment() }
    if chores.needsSealing { requestSealing() }
    guard let stretch = chores.prefault,
      !backgroundFlags.prefaulting.exchange(true, ordering: .relaxed)
    else { return }
    // The segment is not held: once it was left, a compaction may have to give its space back.
    let (id, offset, count) = (stretch.segment.id, stretch.offset, stretch.count)
    background.run { [self] in
      let active = appender.withLock { $0.active }
      if !isClosed, let active, active.id == id {
        active.mapping?.prefault(at: offset, count: count)
      }
      backgroundFlags.prefaulting.store(false, ordering: .relaxed)
    }
  }

  /// Whether pages ahead of the writer are touched in the background, so that it meets no faults.
  ///
  /// Not in a durable store: pages made writable ahead are written out by the next sync, which
  /// took 14 ms instead of 75 µs when measured.
  var prefaults: Bool {
    if case .process = configuration.durability { return true }
    return false
  }

  /// What failed, on a full disk say, is not asked for again with every write.
  private static let pauseAfterFailure = Duration.seconds(1)

  /// Lets a job be asked for again, after a while. The files of a store that was closed are not held until then.
  private func afterPause(
    on queue: any BackgroundQueue, _ body: @escaping @Sendable (BackgroundFlags) -> Void
  ) {
    queue.run(after: Self.pauseAfterFailure) { [backgroundFlags] in body(backgroundFlags) }
  }

  /// Runs a job unless the store is closed; `false` where it failed.
  @discardableResult
  func attempt(_ what: String, _ job: () throws(StoreError) -> Void) -> Bool {
    if isClosed { return true }
    do { try job() } catch {
      if isClosed { return true }
      configuration.log?("\(what): \(error)")
      return false
    }
    return true
  }
}
