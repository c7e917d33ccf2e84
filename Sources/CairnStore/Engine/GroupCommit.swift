internal import Synchronization

/// Group commit: threads and tasks that wait for durability share syncs. The first thread that comes syncs for all that
/// have appended by then; those that come meanwhile wait, and one of them syncs next. For tasks, which hold no thread
/// while they wait, a background thread comes.
///
/// 1. One thread syncs at a time: of two syncs of a file the kernel tells only one of an error.
/// 2. `durableSequence` never goes back. It rises only after a sync of all records up to it, and of the names that
///    they rely on.
/// 3. After a sync that failed none is tried: the kernel forgets what it could not write, and the next sync would
///    report success.
/// 4. A name counts as unsynced from the moment that it is given. A sync of the directory takes note of that before
///    it begins, so a name that is given in its course is left for the next.
/// 5. While tasks wait, a thread is on its way to sync for them: `isLed`.
final class GroupCommit: Sendable {
  private struct State {
    var durableSequence: SequenceNumber
    var isSyncing = false
    var failure: SystemFailure?
    /// Tasks that wait, and for which number.
    var waiters: [Waiter] = []
    var isLed = false
    /// Whether that thread waits for tasks.
    var isLingering = false

    /// Takes out the tasks whose wait is over.
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

  /// Waits until a sync has brought about what is asked for. Under neither the catalog's lock nor the log's.
  ///
  /// - Parameters:
  ///   - isDone: asked with the number up to which everything is durable.
  ///   - sync: syncs, if it is this thread's turn, and returns up to which number.
  ///   - poison: called after a sync that failed, before anybody is told.
  ///   - tell: called when all who wait were told. It may use the store.
  /// - Throws: `durabilityUnknown` where one has failed.
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
          // The store is poisoned before anybody learns of the failure.
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

  /// Has all who wait fail, and all who come.
  func fail(_ failure: SystemFailure) {
    let released = state.withLock { state in
      if state.failure == nil { state.failure = failure }
      return state.takeReleased()
    }
    state.wakeAll()
    for waiter in released { waiter.continuation.resume() }
  }

  // MARK: Tasks

  /// Waits, without a thread, until everything up to a number is durable.
  ///
  /// - Parameter lead: has a thread call `nextGoal` and sync until there is none. Called with no lock held.
  /// - Throws: `durabilityUnknown` where a sync has failed.
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
    // What came of it is read under the lock: Thread Sanitizer does not see that a continuation orders memory.
    let failure = state.withLock { state in
      sequence <= state.durableSequence ? nil : state.failure
    }
    if let failure { throw .durabilityUnknown(cause: failure) }
  }

  /// For so long the thread that syncs for tasks waits for more of them. To start one takes as long as a fast disk syncs.
  private static let patience = Duration.milliseconds(10)

  /// The number that the last of the waiting tasks waits for. Waits a moment for one; `nil` ends the thread that syncs for
  /// them.
  ///
  /// - Parameter lingers: whether to wait.
  func nextGoal(lingers: Bool) -> SequenceNumber? {
    let end = ContinuousClock.now + (lingers ? Self.patience : .zero)
    return state.waitUntil { state -> Lock<State>.Step<SequenceNumber?> in
      state.isLingering = false
      if let last = state.waiters.last { return .done(last.sequence) }
      // Threads that wait for syncs are woken in between.
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

  /// Whether names were given in the directory that no sync has reached.
  var hasUnsyncedNames: Bool { unsyncedNames.load(ordering: .relaxed) }

  /// To be called after a name was given.
  func noteName() { unsyncedNames.store(true, ordering: .relaxed) }

  /// Whether the directory has to be synced; from here on it counts as synced. By the thread that syncs only.
  func takeUnsyncedNames() -> Bool { unsyncedNames.exchange(false, ordering: .relaxed) }
}
