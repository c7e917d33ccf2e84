internal import Synchronization

/// Gives acknowledged writes the durability that they were promised.
final class Committer: Sendable {
  private let session: Session
  private let log: LogWriter
  /// The shortest interval, in milliseconds, after which a sync that waits will be run.
  private let syncDelay = Atomic(Int64.max)

  init(_ session: Session, _ log: LogWriter) {
    self.session = session
    self.log = log
  }

  /// Gives an acknowledged write the durability it was promised.
  @inline(__always)
  func commit(_ sequence: SequenceNumber, _ durability: Durability) throws(StoreError) {
    switch durability {
    case .process: break
    case .interval(let interval): requestSync(within: interval)
    case .durable: try log.waitForSync { $0 >= sequence }
    }
  }

  /// Gives a write that was acknowledged to a task the durability it was promised, without a thread that waits.
  nonisolated(nonsending) func commit(
    _ sequence: SequenceNumber, _ durability: Durability
  ) async throws(StoreError) {
    guard durability == .durable else {
      return try { () throws(StoreError) in try commit(sequence, durability) }()
    }
    try await log.waitForSync(through: sequence)
  }

  /// Gives a removal that found nothing the durability it was promised: what has made the key absent, perhaps a
  /// moment ago and without a sync, must not be undone by a power failure either.
  func commitAbsence(_ durability: Durability) throws(StoreError) {
    if durability == .process { return }
    try commit(log.lastSequence, durability)
  }

  /// Syncs the log after at most `interval`.
  func requestSync(within interval: Duration) {
    let delay = interval.milliseconds
    guard syncDelay.min(delay, ordering: .relaxed).oldValue > delay else { return }
    let isAsked = session.environment.syncing.runIfPossible(after: interval) { [weak self] in
      // The session has closed then, and the close syncs.
      guard let self else { return }
      // From here on a write asks for a sync of its own, since this one may miss it.
      syncDelay.store(.max, ordering: .relaxed)
      session.attempt("syncing", .error) { () throws(StoreError) in try log.sync() }
    }
    if isAsked { return }
    // With no thread to wait, the interval can only be kept by a sync now. One that fails poisons the store.
    syncDelay.store(.max, ordering: .relaxed)
    try? log.sync()
  }
}
