internal import Synchronization

/// Group commit: threads and tasks that wait for durability share syncs. The first thread syncs
/// everything appended so far. Threads that arrive meanwhile wait, and one of them syncs next.
/// Tasks hold no thread while they wait, so a background thread syncs for them.
///
/// 1. One thread syncs at a time: if two threads sync a file, the kernel reports an error to only
///    one of them.
/// 2. `durableSequence` never decreases. It rises only after a sync of all records up to it, and of
///    the names that they rely on.
/// 3. A failed sync is never retried: the kernel forgets the failed pages, and the next sync would
///    report success.
/// 4. A name counts as unsynced from the moment it is created. A sync of the directory clears this
///    state before it begins, so a name that is created during the sync is left to the next one.
/// 5. While tasks wait, some thread will sync for them (`isLed`).
final class GroupCommit: Sendable {
  private struct State {
    var durableSequence: SequenceNumber
    var isSyncing = false
    var failure: SystemFailure?
    /// Waiting tasks, and the sequence number that each waits for.
    var waiters: [Waiter] = []
    var isLed = false
    /// Whether the thread that syncs for tasks is waiting for more of them.
    var isLingering = false

    /// Removes and returns the tasks whose wait is over.
    mutating func takeReleased() -> [Waiter] {
      if waiters.isEmpty { return [] }
      if failure != nil { return exchange(&waiters, with: []) }
      let released = waiters.filter { $0.sequence <= durableSequence }
      if !released.isEmpty { waiters.removeAll { $0.sequence <= durableSequence } }
      return released
    }
  }

  private struct Waiter: Sendable {
    let sequence: SequenceNumber
    let continuation: CheckedContinuation<Void, Never>
  }

  private let state: Lock<State>
  private let unsyncedNames = Atomic(false)

  init(durableSequence: SequenceNumber) {
    state = Lock(State(durableSequence: durableSequence), waits: true)
  }

  /// Waits until a sync has made the requested state durable. The caller must hold neither the
  /// catalog's lock nor the log's.
  ///
  /// - Parameters:
  ///   - isDone: called with the number up to which everything is durable.
  ///   - sync: called if it is this thread's turn. Syncs, and returns the number up to which
  ///     everything is durable.
  ///   - poison: called after a failed sync, before any waiter sees the failure.
  ///   - tell: called once all waiters have the result. May use the store.
  /// - Throws: `durabilityUnknown` if a sync has failed.
  func wait(
    until isDone: (SequenceNumber) -> Bool,
    syncing sync: () throws(StoreError) -> SequenceNumber, poison: (SystemFailure) -> Void,
    tell: (SystemFailure) -> Void
  ) throws(StoreError) {
    enum Role {
      case done
      case leader
      case failed(SystemFailure)
    }
    while true {
      let role = state.waitUntil { state -> Role? in
        if isDone(state.durableSequence) { return .done }
        if let failure = state.failure { return .failed(failure) }
        if state.isSyncing { return nil }
        state.isSyncing = true
        return .leader
      }
      switch role {
      case .done: return
      case .failed(let failure): throw .durabilityUnknown(cause: failure)
      case .leader:
        do throws(StoreError) { finish(through: try sync(), failure: nil) } catch {
          // Poison the store before any waiter sees the failure.
          poison(error.asFailure)
          finish(through: 0, failure: error.asFailure)
          tell(error.asFailure)
        }
      }
    }
  }

  private func finish(through sequence: SequenceNumber, failure: SystemFailure?) {
    let released = state.withLock { state in
      state.isSyncing = false
      if state.failure == nil { state.failure = failure }
      state.durableSequence = max(state.durableSequence, sequence)
      return state.takeReleased()
    }
    state.wakeAll()
    for waiter in released { waiter.continuation.resume() }
  }

  /// Makes all current and future waiters fail.
  func fail(_ failure: SystemFailure) {
    let released = state.withLock { state in
      if state.failure == nil { state.failure = failure }
      return state.takeReleased()
    }
    state.wakeAll()
    for waiter in released { waiter.continuation.resume() }
  }

  // MARK: Tasks

  /// Waits, without blocking a thread, until everything up to a number is durable.
  ///
  /// - Parameter lead: makes a thread call `nextGoal` and sync until that returns `nil`. Called
  ///   with no lock held.
  /// - Throws: `durabilityUnknown` if a sync has failed.
  nonisolated(nonsending) func wait(
    through sequence: SequenceNumber, lead: () -> Void
  ) async throws(StoreError) {
    enum Next { case over, lead, wake, wait }
    await withCheckedContinuation { continuation in
      let next = state.withLock { state -> Next in
        if sequence <= state.durableSequence || state.failure != nil { return .over }
        state.waiters.append(Waiter(sequence: sequence, continuation: continuation))
        if state.isLingering { return .wake }
        defer { state.isLed = true }
        return state.isLed ? .wait : .lead
      }
      switch next {
      case .over: continuation.resume()
      case .lead: lead()
      case .wake: state.wakeAll()
      case .wait: break
      }
    }
    // Read the result under the lock: Thread Sanitizer does not see that a continuation orders
    // memory.
    let failure = state.withLock { state in
      sequence <= state.durableSequence ? nil : state.failure
    }
    if let failure { throw .durabilityUnknown(cause: failure) }
  }

  /// How long the thread that syncs for tasks waits for more tasks. Starting a thread takes as long
  /// as a sync of a fast disk.
  private static let patience = Duration.milliseconds(10)

  /// The number that the newest waiting task needs. Waits briefly if no task is waiting. `nil` ends
  /// the thread that syncs for tasks.
  ///
  /// - Parameter lingers: whether to wait for a task.
  func nextGoal(lingers: Bool) -> SequenceNumber? {
    let end = ContinuousClock.now + (lingers ? Self.patience : .zero)
    return state.waitUntil { state -> Lock<State>.Step<SequenceNumber?> in
      state.isLingering = false
      if let last = state.waiters.last { return .done(last.sequence) }
      // Each wake-up of the threads that wait for syncs interrupts this wait.
      let rest = end - ContinuousClock.now
      if state.failure != nil || rest < .milliseconds(1) {
        state.isLed = false
        return .done(nil)
      }
      state.isLingering = true
      return .wait(rest)
    }
  }

  /// Waits until no thread is syncing.
  func waitForEnd() { state.waitUntil { $0.isSyncing ? nil : () } }

  // MARK: Names

  /// Whether the directory has new names that no sync has covered.
  var hasUnsyncedNames: Bool { unsyncedNames.load(ordering: .relaxed) }

  /// Call after creating a name.
  func noteName() { unsyncedNames.store(true, ordering: .relaxed) }

  /// Returns whether the directory must be synced, and marks it as synced. Only the syncing thread
  /// may call this.
  func takeUnsyncedNames() -> Bool { unsyncedNames.exchange(false, ordering: .relaxed) }
}
