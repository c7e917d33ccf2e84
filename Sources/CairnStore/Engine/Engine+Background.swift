internal import Synchronization

/// Which jobs wait to be run, so that none is queued twice.
final class BackgroundFlags: Sendable {
  let preparing = Atomic(false)
  /// The shortest interval, in milliseconds, after which a sync that waits will be run.
  let syncDelay = Atomic(Int64.max)
  let prefaulting = Atomic(false)
  /// Whether it was noticed that the store's directory is gone.
  let vanished = Atomic(false)
  /// When that was last looked at, in milliseconds.
  let lookTime: Atomic<Int64>
  /// The offset of the clock that the log was told, in milliseconds.
  let toldClockOffset: Atomic<Int64>
  /// Why the log was told that no checkpoint can be made, since the last that was.
  let toldOfNoCheckpoint = Atomic(CheckpointHindrance.none)

  init(_ clock: StoreClock) {
    toldClockOffset = Atomic(clock.offset.milliseconds)
    lookTime = Atomic(clock.now().millisecondsSinceEpoch)
  }
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
// next write. Where no thread can be started, nothing that others may have asked for is run here: it could
// take a lock that is held.
extension Engine {
  /// Makes the next segment, soon, where the active one is more than half full.
  func requestNextSegment() {
    guard !backgroundFlags.preparing.exchange(true, ordering: .relaxed) else { return }
    let isAsked = background.runIfPossible { [self] in
      let isDone = attempt("preparing a segment") { () throws(StoreError) in
        try prepareNextSegment()
      }
      if isDone {
        backgroundFlags.preparing.store(false, ordering: .relaxed)
        return
      }
      afterPause(on: background) { $0.preparing.store(false, ordering: .relaxed) }
    }
    // The write that needs it makes it then.
    if !isAsked { backgroundFlags.preparing.store(false, ordering: .relaxed) }
  }

  /// Syncs the log after at most `interval`.
  func requestSync(within interval: Duration) {
    let delay = interval.milliseconds
    guard backgroundFlags.syncDelay.min(delay, ordering: .relaxed).oldValue > delay else { return }
    handle.hold(self)
    let isAsked = syncQueue.runIfPossible(after: interval) { [handle] in
      guard let engine = handle.engine else { return }
      // From here on a write asks for a sync of its own, since this one may miss it.
      engine.backgroundFlags.syncDelay.store(.max, ordering: .relaxed)
      engine.attempt("syncing") { () throws(StoreError) in try engine.sync() }
    }
    if isAsked { return }
    // With no thread to wait, the interval can only be kept by a sync now. One that fails poisons the store.
    backgroundFlags.syncDelay.store(.max, ordering: .relaxed)
    try? sync()
  }

  /// Has the chores done that an append left.
  @inline(never)
  func run(_ chores: Appender.Chores) {
    if chores.needsNextSegment { requestNextSegment() }
    if chores.needsSealing { wakeHousekeeping() }
    guard let stretch = chores.prefault,
      !backgroundFlags.prefaulting.exchange(true, ordering: .relaxed)
    else { return }
    // The segment is not held: once it was left, a compaction may have to give its space back.
    let (id, offset, count) = (stretch.segment.id, stretch.offset, stretch.count)
    let isAsked = background.runIfPossible { [self] in
      let active = appender.withLock { $0.active }
      if !isClosed, let active, active.id == id {
        active.mapping?.prefault(at: offset, count: count)
      }
      backgroundFlags.prefaulting.store(false, ordering: .relaxed)
    }
    if !isAsked { backgroundFlags.prefaulting.store(false, ordering: .relaxed) }
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
  static let pauseAfterFailure = Duration.seconds(1)

  /// Lets a job be asked for again, after a while. The files of a store that was closed are not held until then.
  private func afterPause(
    on queue: any BackgroundQueue, _ body: @escaping @Sendable (BackgroundFlags) -> Void
  ) {
    let isAsked = queue.runIfPossible(after: Self.pauseAfterFailure) { [backgroundFlags] in
      body(backgroundFlags)
    }
    if !isAsked { body(backgroundFlags) }
  }

  /// Runs a job unless the store is closed; `false` where it failed.
  @discardableResult
  func attempt(_ what: String, _ job: () throws(StoreError) -> Void) -> Bool {
    if isClosed { return true }
    do { try job() } catch {
      if isClosed { return true }
      // That was said once.
      if case .vanished = error { return false }
      configuration.log?("\(what): \(error)")
      return false
    }
    return true
  }
}
