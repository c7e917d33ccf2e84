internal import CairnStore
internal import Synchronization

/// Loads in progress: one per key, shared by all callers that want its value.
///
/// A load runs in its own task, which has the priority and the task-local values of the first
/// caller but is not cancelled with it. A cancelled caller leaves at once. When the last caller has
/// left, the load is cancelled, unless it runs in the background. If a load fails, all waiters
/// receive the error, which is not kept. No lock is held while caller code runs.
@usableFromInline
final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct State {
    var flights: [Key: Flight<Value>] = [:]
    var counts = LoadCounts()
    var isClosed = false
  }

  /// A load that may begin.
  struct Load: Sendable {
    /// Checks again for a value, because a load may have ended since the caller's lookup.
    let found: @Sendable () throws -> Value?
    /// Loads the value, and keeps it unless the flight has become outdated.
    let load: @Sendable (Flight<Value>) async throws -> Value
    /// How long the load may take, or `nil` for no limit.
    var timeLimit: Duration?
    /// Called when the load exceeds the limit, before any waiter is resumed.
    var noteTimeOut: @Sendable (Flight<Value>) -> Void = { _ in }
    /// Called if the caller joins a load in progress instead.
    var noteJoined: @Sendable () -> Void = {}
    /// Called with the error of a load for which no caller waited.
    var noteUnheard: @Sendable (any Error) -> Void = { _ in }
  }

  /// A load until its waiters continue. The load refers to the cache, which must then have no
  /// reference but those of callers: the last of these closes it.
  private final class HeldLoad: Sendable {
    private let load: Lock<Load?>

    init(_ load: Load) { self.load = Lock(load) }

    func callAsFunction() -> Load? { load.withLock { $0 } }

    func end(_ outcome: Result<Value, any Error>, isUnheard: Bool) {
      let load = load.withLock { $0.take() }
      if isUnheard, case .failure(let error) = outcome { load?.noteUnheard(error) }
    }
  }

  /// What a write has noted under a lock.
  @usableFromInline
  struct Outdated: Sendable {
    /// The load that it has outdated.
    let flight: Flight<Value>?
    /// Whether a load may be keeping a value of the key.
    let mayKeep: Bool
  }

  private let state = Lock(State())
  /// The number of removals of tags.
  private let tagRemovalCount = Atomic(0)
  /// The number of flights.
  private let activeCount = Atomic(0)
  /// The number of loads that are keeping a value, including those whose flight has left the table.
  private let keepingCount = Atomic(0)

  /// The number of stale values returned.
  let staleCount = Counter()
  let history = LoadHistory<Key>()
  /// The longest time, in milliseconds, for which any policy may return a value after its lifetime
  /// ends. Only grows.
  private let retention = Atomic<Int64>(0)
  let timers: LoadTimers
  private let background: any BackgroundQueue
  /// Returns a random number from 0 up to 1.
  let random: @Sendable () -> Double
  /// Called when a loader has ended, with no lock held.
  private let noteLoad: @Sendable (Duration) -> Void

  init(
    clock: StoreClock, timers queue: any BackgroundQueue, background: any BackgroundQueue,
    random: @escaping @Sendable () -> Double,
    noteLoad: @escaping @Sendable (Duration) -> Void = { _ in }
  ) {
    timers = LoadTimers(clock: clock, background: queue)
    self.background = background
    self.random = random
    self.noteLoad = noteLoad
  }

  var counts: LoadCounts {
    var counts = state.withLock { $0.counts }
    counts.staleServedCount = staleCount.value
    return counts
  }

  func count(_ body: (inout LoadCounts) -> Void) { state.withLock { body(&$0.counts) } }

  /// Whether any load is in progress or is keeping a value.
  var isActive: Bool {
    activeCount.load(ordering: .acquiring) != 0 || keepingCount.load(ordering: .acquiring) != 0
  }

  /// How long expired values are retained, in milliseconds.
  var retained: Int64 { retention.load(ordering: .relaxed) }

  /// Whether values are retained for less time than a policy needs.
  @usableFromInline
  func lacksRetention(for policy: LoadPolicy) -> Bool { policy.retention > retained }

  /// Makes the cache retain expired values for as long as a policy needs.
  ///
  /// - Returns: the new retention, or `nil` if it was already long enough.
  func retain(_ policy: LoadPolicy) -> Int64? {
    let wanted = policy.retention
    if wanted <= retained { return nil }
    return retention.max(wanted, ordering: .relaxed).newValue
  }

  /// Whether writes must be noted.
  var isNoting: Bool { isActive || !history.isEmpty }

  /// Ends background loads without waiters, and begins no new ones.
  func close() {
    let flights = state.withLock { state in
      state.isClosed = true
      return state.flights
    }
    for (key, flight) in flights where flight.leaveBackground() {
      remove(flight, key, isCancelled: true)
    }
  }

  // MARK: Writes

  /// Call before a key is written or removed. The result of a load of the key is then not kept, and
  /// no more callers join the load.
  ///
  /// - Returns: `false` if no load can be keeping a value of the key.
  @discardableResult
  func noteWrite(_ key: Key) -> Bool {
    guard let outdated = outdate(key) else { return false }
    finish(outdated, key)
    return outdated.mayKeep
  }

  /// The first half of `noteWrite`. May be called under a lock: the load is then outdated from the
  /// moment of the change.
  ///
  /// - Returns: what to pass to `finish` after the lock is released.
  @usableFromInline
  func outdate(_ key: Key) -> Outdated? {
    if !isNoting { return nil }
    return state.withLock { state in
      guard let flight = state.flights[key] else {
        return Outdated(flight: nil, mayKeep: keepingCount.load(ordering: .acquiring) > 0)
      }
      flight.noteWrite()
      take(flight, key, from: &state)
      return Outdated(flight: flight, mayKeep: true)
    }
  }

  /// The second half of `noteWrite`. Cancels a load that nobody waits for.
  @usableFromInline
  func finish(_ outdated: Outdated, _ key: Key) {
    if outdated.flight?.leaveBackground() == true { count { $0.cancelledCount += 1 } }
    history.forget(key)
  }

  /// Like `noteWrite`, for all keys.
  func noteRemovalOfAll() {
    defer { history.forgetAll() }
    if !isActive { return }
    let flights = state.withLock { state in
      for flight in state.flights.values { flight.noteWrite() }
      activeCount.store(0, ordering: .releasing)
      return exchange(&state.flights, with: [:])
    }
    // Release the flights, and everything they refer to, outside the lock.
    for flight in flights.values where flight.leaveBackground() {
      count { $0.cancelledCount += 1 }
    }
  }

  /// Call after the removal of a tag, before it returns. Later callers do not receive the values of
  /// earlier loads, which may have the tag, and absences with the tag end.
  func noteRemoval(ofTag tag: String) {
    // Must come first: a load that notes an absence afterwards sees the new count.
    tagRemovalCount.add(1, ordering: .sequentiallyConsistent)
    history.forget(tag: tag)
  }

  /// Whether a tag has been removed since a load began.
  func hasRemovedTag(since flight: Flight<Value>) -> Bool {
    flight.tagRemovalCount < tagRemovalCount.load(ordering: .sequentiallyConsistent)
  }

  /// Runs `body`, which keeps a loaded value unless the flight is outdated.
  func keeping<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    keepingCount.add(1, ordering: .sequentiallyConsistent)
    defer { keepingCount.subtract(1, ordering: .sequentiallyConsistent) }
    return try body()
  }

  /// Counts a loaded value that was not kept.
  func noteOutdated() { state.withLock { $0.counts.outdatedCount += 1 } }

  /// Counts a loaded value that could not be kept.
  func noteUnkept() { state.withLock { $0.counts.unkeptCount += 1 } }

  // MARK: Loading

  /// Waits for the value of a key, from the load in progress or else from a new one.
  ///
  /// - Parameter softLimit: how long to wait before throwing `SoftTimeLimit` while the load
  ///   continues. `nil` means no limit.
  func value(
    forKey key: Key, softLimit: Duration? = nil, _ load: Load
  ) async throws -> Value {
    let began = softLimit == nil ? 0 : timers.now()
    var rest = softLimit
    // The removals of tags that this caller must see.
    let removalCount = tagRemovalCount.load(ordering: .sequentiallyConsistent)
    while true {
      let (value, flight) = try await joinedValue(forKey: key, softLimit: rest, load)
      if flight.tagRemovalCount >= removalCount { return value }
      // The load began earlier. If its value was kept, the next load finds it.
      rest = softLimit.map {
        max(.zero, $0 - .milliseconds(timers.now().subtracting(clamped: began)))
      }
    }
  }

  /// - Returns: the value, and the load that it is from.
  private func joinedValue(
    forKey key: Key, softLimit: Duration?, _ load: Load
  ) async throws -> (Value, Flight<Value>) {
    try Task.checkCancellation()
    let waiter = Flight<Value>.Waiter()
    let (flight, isNew) = enter(key, waiter)
    let waiting = LoadNode.waiting
    if let waiting, !LoadGraph.add(waiting, waitsFor: flight.node) {
      leave(flight, waiter, key)
      throw StoreError.circularLoad
    }
    defer { if let waiting { LoadGraph.remove(waiting, waitsFor: flight.node) } }
    if isNew {
      start(flight, key, load)
    } else {
      flight.escalate(to: Task.currentPriority)
      load.noteJoined()
    }
    let timer = softLimit.map { limit in
      timers.add(after: limit) { [weak self] in
        // After a close, no load may continue without waiters.
        guard let self else { return }
        if state.withLock({ $0.isClosed }) {
          leave(flight, waiter, key, cancelElsewhere)
        } else if flight.detach(waiter, cancelElsewhere) {
          remove(flight, key, isCancelled: true)
        }
        // The close may have ended just before the waiter left.
        if state.withLock({ $0.isClosed }), flight.leaveBackground(cancelElsewhere) {
          remove(flight, key, isCancelled: true)
        }
      }
    }
    defer { if let timer { timers.remove(timer) } }
    let value = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { flight.wait(waiter, $0) }
    } onCancel: {
      leave(flight, waiter, key)
    }
    return (value, flight)
  }

  /// Begins a load without waiters, unless the key already has a load.
  func begin(_ key: Key, _ load: Load) {
    let flight = state.withLock { state -> Flight<Value>? in
      if state.isClosed || state.flights[key] != nil { return nil }
      let flight = Flight<Value>(
        inBackground: true,
        tagRemovalCount: tagRemovalCount.load(ordering: .sequentiallyConsistent))
      state.flights[key] = flight
      activeCount.add(1, ordering: .acquiringAndReleasing)
      return flight
    }
    if let flight { start(flight, key, load) }
  }

  private func start(_ flight: Flight<Value>, _ key: Key, _ load: Load) {
    let timeLimit = load.timeLimit
    let load = HeldLoad(load)
    let timer = timeLimit.map { limit in
      timers.add(after: limit) { [weak self] in self?.endByTimeLimit(flight, key, load, limit) }
    }
    let task = Task(executorPreference: LoadExecutor.shared) {
      await self.run(flight, key, load)
      if let timer { self.timers.remove(timer) }
    }
    flight.start(task, priority: Task.currentPriority)
  }

  private func endByTimeLimit(
    _ flight: Flight<Value>, _ key: Key, _ load: HeldLoad, _ limit: Duration
  ) {
    // The load may have ended before its timer was removed. That is not a failure.
    if flight.hasOutcome { return }
    load()?.noteTimeOut(flight)
    // A late result is not kept.
    flight.noteWrite()
    remove(flight, key, isCancelled: false)
    // Counted before any waiter continues.
    count { $0.timedOutCount += 1 }
    let outcome = Result<Value, any Error>.failure(StoreError.loadTimedOut(limit: limit))
    flight.finish(
      outcome, cancelElsewhere,
      preparing: { isUnheard in
        if !isUnheard { return load.end(outcome, isUnheard: false) }
        // Observers may block, like the loader's handlers.
        background.run { load.end(outcome, isUnheard: true) }
      })
  }

  /// Cancels a load whose time is over. The loader's handlers may block, and other time limits must
  /// not wait for them.
  private func cancelElsewhere(_ task: Task<Void, Never>) { background.run { task.cancel() } }

  private func enter(_ key: Key, _ waiter: Flight<Value>.Waiter) -> (Flight<Value>, isNew: Bool) {
    state.withLock { state in
      if let flight = state.flights[key], flight.enter(waiter) {
        state.counts.joinedCount += 1
        return (flight, false)
      }
      let flight = Flight<Value>(
        tagRemovalCount: tagRemovalCount.load(ordering: .sequentiallyConsistent))
      _ = flight.enter(waiter)
      if state.flights.updateValue(flight, forKey: key) == nil {
        activeCount.add(1, ordering: .acquiringAndReleasing)
      }
      return (flight, true)
    }
  }

  private func leave(
    _ flight: Flight<Value>, _ waiter: Flight<Value>.Waiter, _ key: Key,
    _ cancel: Flight<Value>.Cancelling = { $0.cancel() }
  ) {
    if flight.leave(waiter, cancel) { remove(flight, key, isCancelled: true) }
  }

  private func remove(_ flight: Flight<Value>, _ key: Key, isCancelled: Bool) {
    state.withLock { state in
      if isCancelled { state.counts.cancelledCount += 1 }
      take(flight, key, from: &state)
    }
  }

  /// Removes a flight from the table, so that no more callers join it.
  private func take(_ flight: Flight<Value>, _ key: Key, from state: inout State) {
    guard state.flights[key] === flight else { return }
    state.flights[key] = nil
    activeCount.subtract(1, ordering: .acquiringAndReleasing)
  }

  private func run(_ flight: Flight<Value>, _ key: Key, _ load: HeldLoad) async {
    let (outcome, hasFailed) = await outcome(of: flight, key, load)
    // Remove the flight from the table first. A caller that arrives now then finds the value or
    // starts a new load.
    remove(flight, key, isCancelled: false)
    // Counted before any waiter continues.
    if hasFailed, !flight.hasOutcome { count { $0.failedCount += 1 } }
    flight.finish(outcome, preparing: { load.end(outcome, isUnheard: $0) })
  }

  /// - Returns: the outcome, and whether the loader failed.
  private func outcome(
    of flight: Flight<Value>, _ key: Key, _ load: HeldLoad
  ) async -> (Result<Value, any Error>, hasFailed: Bool) {
    // Only a time limit can have ended the load before.
    guard let load = load() else { return (.failure(CancellationError()), false) }
    do {
      if let value = try load.found() { return (.success(value), false) }
    } catch { return (.failure(error), false) }
    state.withLock { $0.counts.startedCount += 1 }
    let start = timers.now()
    let outcome: Result<Value, any Error>
    do {
      outcome = .success(
        try await LoadNode.$starter.withValue(flight.node) { try await load.load(flight) })
    } catch { outcome = .failure(error) }
    let duration = Duration.milliseconds(timers.now().subtracting(clamped: start))
    count { $0.durations.note(duration) }
    noteLoad(duration)
    return (outcome, outcome.isFailure)
  }
}
