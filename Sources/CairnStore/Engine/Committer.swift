internal import Synchronization

/// Gives acknowledged writes their promised durability.
final class Committer: Sendable {
  private let session: Session
  private let log: LogWriter
  /// The shortest interval, in milliseconds, of the scheduled syncs.
  private let syncDelay = Atomic(Int64.max)

  init(_ session: Session, _ log: LogWriter) {
    self.session = session
    self.log = log
  }

  /// Gives an acknowledged write its promised durability.
  @inline(__always)
  func commit(_ sequence: SequenceNumber, _ durability: Durability) throws(StoreError) {
    switch durability {
    case .process: break
    case .interval(let interval): requestSync(within: interval)
    case .durable: try log.waitForSync { $0 >= sequence }
    }
  }

  /// Gives an acknowledged write of a task its promised durability, without blocking a thread.
  nonisolated(nonsending) func commit(
    _ sequence: SequenceNumber, _ durability: Durability
  ) async throws(StoreError) {
    guard durability == .durable else {
      return try { () throws(StoreError) in try commit(sequence, durability) }()
    }
    try await log.waitForSync(through: sequence)
  }

  /// What a removal that found nothing waits for. The write that made the key absent may be recent
  /// and not synced yet, and a power cut must not undo it.
  func absence(_ durability: Durability) -> PendingWrite {
    if durability == .process { return PendingWrite() }
    return PendingWrite(sequence: log.lastSequence, durability: durability)
  }

  /// Syncs the log after at most `interval`.
  func requestSync(within interval: Duration) {
    let delay = interval.milliseconds
    // SAFETY: this change of the word and the one that ends the interval are both
    // read-modify-writes, so one of them reads what the other left. If the end comes later, its
    // sync sees this thread's write. If it came first, this thread sees that it must ask again. A
    // plain store could wait in the processor's store buffer until the sync has looked.
    guard syncDelay.min(delay, ordering: .acquiringAndReleasing).oldValue > delay else { return }
    let isAsked = session.environment.syncing.runIfPossible(after: interval) { [weak self] in
      // If this object is gone, the store has been closed, and the close syncs.
      guard let self else { return }
      session.attempt("syncing", .error) { () throws(StoreError) in try syncAtEnd() }
    }
    if isAsked { return }
    // If no thread can wait, only an immediate sync keeps the interval. If the sync fails, the
    // store is poisoned.
    try? syncAtEnd()
  }

  /// Ends the interval, then syncs.
  private func syncAtEnd() throws(StoreError) {
    // From here on, writes request their own syncs, because this sync may miss them.
    _ = syncDelay.exchange(.max, ordering: .acquiringAndReleasing)
    try log.sync()
  }
}
